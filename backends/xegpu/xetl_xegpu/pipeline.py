"""The passes of the backend in order, and what becomes of their result."""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.passes import ModulePass

from xetl.devices import DEVICES
from xetl.transforms import device_pipeline
from xetl_xegpu.dialect import XeGPU, XeGPUExtensions
from xetl_xegpu.lowering.record_arguments import RecordArgumentsPass
from xetl_xegpu.simt import SIMT

DIALECTS: tuple[Dialect, ...] = (XeGPU, XeGPUExtensions, SIMT)

SLM_LIMIT = 128 << 10
"""Bytes of shared memory that a workgroup may have.

Source: Intel's oneAPI optimisation guide, "shared local memory": 128 KiB for each Xe
core of PVC; of Battlemage's 256 KiB of core memory the driver gives as much.
"""

STAGE_AFTER = {
    **device_pipeline.STAGE_AFTER,
    "convert-xetile-to-xegpu": "xegpu",
    "distribute-to-lanes": "lanes",
}


def passes(target: str) -> list[ModulePass]:
    """From the ``xetile`` stage to ``lanes``."""
    return [
        RecordArgumentsPass(),
        *device_pipeline.device_passes(target, SLM_LIMIT),
    ]


def opt_passes() -> dict[str, type[ModulePass]]:
    """By name; those that need a target take it as an option."""
    return {each.name: type(each) for each in passes(next(iter(DEVICES)))}
