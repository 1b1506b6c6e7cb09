"""What was decided about a kernel as a whole, said for ``explain()``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xetl.dialects.base import ints_of
from xetl.transforms.remarks import remark
from xetl_xegpu import simt
from xetl_xegpu.lowering.to_xegpu.surfaces import BLOCK_ARGUMENTS

_MESSAGES: dict[type, str] = {
    simt.DpasOp: "dpas",
    simt.BlockLoadOp: "block loads",
    simt.BlockStoreOp: "block stores",
    simt.BlockPrefetchOp: "block prefetches",
}


def explain_plan(kernels: Sequence[simt.FuncOp]) -> None:
    """Leave remarks about workgroups and messages of a kernel and its twin.

    Args:
        kernels: at stage ``lanes``; the one with block messages first.
    """
    kernel = kernels[0]
    subgroups = kernel.lanes[0] // simt.SUBGROUP_SIZE
    slm = kernel.slm_bytes.value.data
    shared = f", with {slm} bytes of shared memory" if slm else ""
    counted = f"{subgroups} subgroup{'s' if subgroups > 1 else ''}"
    remark(kernel, "workgroup", f"a program is {counted} of 16 lanes{shared}")
    counts = Counter(type(op) for op in kernel.walk())
    found = [
        f"{counts[kind]} {name}" for kind, name in _MESSAGES.items() if counts[kind]
    ]
    moved = ints_of(kernel.attributes.get(BLOCK_ARGUMENTS))
    if not moved:
        found.append("no block of an array; lanes move elements")
    text = f"the code of a subgroup has {', '.join(found)}"
    if moved:
        names = ", ".join(map(str, moved))
        text += (
            f"; a launch whose arguments {names} do not fit block messages takes a "
            "second kernel, in which lanes move elements (XETL_LOG=1 says when)"
        )
    remark(kernel, "messages", text)
