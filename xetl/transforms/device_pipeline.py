"""The passes from a kernel of a workgroup to blocks of a device, for any backend.

A comment says where the order of two passes matters; docs/design/0003 describes the
whole pipeline. A kernel at subgroup level goes through the pipeline unchanged.
"""

from __future__ import annotations

from xdsl.passes import ModulePass

from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.check_workgroup import SLM_LIMIT
from xetl.transforms.choose_inner_blocks import ChooseInnerBlocksPass
from xetl.transforms.cse import CSEPass
from xetl.transforms.distribute_to_subgroups import DistributeToSubgroupsPass
from xetl.transforms.drop_breakpoints import DropBreakpointsPass
from xetl.transforms.expand_scans import ExpandScansPass
from xetl.transforms.expand_small_floats import ExpandSmallFloatsPass
from xetl.transforms.expand_sorts import ExpandSortsPass
from xetl.transforms.fold_add_into_mma import FoldAddIntoMmaPass
from xetl.transforms.inline_calls import InlineCallsPass
from xetl.transforms.insert_prefetches import InsertPrefetchesPass
from xetl.transforms.normalize_tiles import NormalizeTilesPass
from xetl.transforms.place_barriers import PlaceBarriersPass
from xetl.transforms.propagate_wg_maps import PropagateWgMapsPass

STAGE_AFTER = {
    "propagate-wg-maps": "xetile-mapped",
    "distribute-to-subgroups": "xetile-sg",
    "choose-inner-blocks": "xetile-blocked",
}
"""The stage that begins after a pass."""


def device_passes(
    device: str = "pvc", slm_limit: int = SLM_LIMIT, prefetch: int | None = None
) -> list[ModulePass]:
    """The passes from stage ``xetile`` to ``xetile-blocked``, in order.

    Args:
        device: the device for which maps and blocks are chosen, see `xetl.devices`.
        slm_limit: bytes of shared memory that a workgroup may use.
        prefetch: the prefetch distance in loop iterations; None: a model chooses it.
    """
    return [
        DropBreakpointsPass(),
        InlineCallsPass(),
        ExpandScansPass(),
        ExpandSortsPass(),
        ExpandSmallFloatsPass(device),
        NormalizeTilesPass(),
        CanonicalizePass(),
        CSEPass(),
        # A separate sum would take as many registers as the product again.
        FoldAddIntoMmaPass(),
        PropagateWgMapsPass(device),
        InsertPrefetchesPass(device, -1 if prefetch is None else prefetch),
        # Needs the maps: distribution hides the accesses of other subgroups.
        PlaceBarriersPass(),
        DistributeToSubgroupsPass(slm_limit),
        CanonicalizePass(),
        CSEPass(),
        ChooseInnerBlocksPass(device),
    ]
