"""The passes of the backend in order, and the artifact made from their result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Dialect
from xdsl.passes import ModulePass

from xetl.backend import Artifact
from xetl.devices import DEVICES, find_device
from xetl.dialects.base import element_type, ints_of, operations_in
from xetl.dialects.upstream import vector
from xetl.imports import import_whole
from xetl.settings import config
from xetl.transforms import device_pipeline
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.cse import CSEPass
from xetl.transforms.diagnostics import remark
from xetl.transforms.legalize_vectors import LegalizeVectorsPass
from xetl_xegpu import simt
from xetl_xegpu.dialect import XeGPU, XeGPUExtensions
from xetl_xegpu.dialect.stage import XEGPU
from xetl_xegpu.emit import module as emission
from xetl_xegpu.emit.workgroup import own_bytes
from xetl_xegpu.limits import (
    BASE_ALIGNMENT,
    FIRST,
    LEAST_WIDTH,
    OTHER,
    REST,
    WIDTH_STEP,
)
from xetl_xegpu.lowering import record_arguments
from xetl_xegpu.lowering.add_unaligned_kernel import AddUnalignedKernelPass
from xetl_xegpu.lowering.align_block_bases import AlignBlockBasesPass
from xetl_xegpu.lowering.clamp_block_offsets import ClampBlockOffsetsPass
from xetl_xegpu.lowering.convert_xetile_to_xegpu import ConvertXetileToXegpuPass
from xetl_xegpu.lowering.distribute_to_lanes import DistributeToLanesPass
from xetl_xegpu.lowering.drop_spare_kernel import DropSpareKernelPass
from xetl_xegpu.lowering.fit_registers import FitRegistersPass
from xetl_xegpu.lowering.fit_registers.graph import register_file
from xetl_xegpu.lowering.gather_barriers import GatherBarriersPass
from xetl_xegpu.lowering.narrow_scalar_floats import NarrowScalarFloatsPass
from xetl_xegpu.lowering.order_by_use import OrderByUsePass
from xetl_xegpu.lowering.reduce_after_loops import ReduceAfterLoopsPass
from xetl_xegpu.lowering.rotate_loops import RotateLoopsPass
from xetl_xegpu.lowering.share_prefetches import SharePrefetchesPass
from xetl_xegpu.lowering.split_barriers import SplitBarriersPass
from xetl_xegpu.lowering.take_xegpu_text import TakeXegpuTextPass
from xetl_xegpu.roofline.count import Work, work_of
from xetl_xegpu.roofline.model import choose_walk, expected
from xetl_xegpu.simt import LANES, SIMT, WALK, FuncOp

DIALECTS: tuple[Dialect, ...] = (XeGPU, XeGPUExtensions, SIMT)

STAGE_AFTER = {
    **device_pipeline.STAGE_AFTER,
    "convert-xetile-to-xegpu": XEGPU.name,
    "distribute-to-lanes": LANES.name,
}


def passes(target: str) -> list[ModulePass]:
    """Return the passes from the ``xetile`` stage to ``lanes``."""
    device, is_first = find_device(target), target.endswith((FIRST, REST))
    add = [AddUnalignedKernelPass(target.endswith(OTHER))]
    if is_first and not device.emulated:  # emulated: drop-spare-kernel needs both
        add = []
    moves_rest, target = target.endswith(REST), device.name
    # Narrow before arguments are recorded: launches must see the narrowed types.
    narrow = [] if device.has_fp64 else [NarrowScalarFloatsPass(target)]
    gather = [GatherBarriersPass()] if device.emulated else []
    return [
        *narrow,
        record_arguments.RecordArgumentsPass(),
        *device_pipeline.device_passes(target, device.shared_bytes, config.prefetch),
        LegalizeVectorsPass(),
        *add,
        ConvertXetileToXegpuPass(moves_rest),
        TakeXegpuTextPass(target),
        DropSpareKernelPass(is_first),
        ReduceAfterLoopsPass(),
        CanonicalizePass(),
        CSEPass(),
        DistributeToLanesPass(target),
        CanonicalizePass(),
        CSEPass(),
        ClampBlockOffsetsPass(),
        AlignBlockBasesPass(),
        SharePrefetchesPass(),
        OrderByUsePass(),
        FitRegistersPass(target),
        RotateLoopsPass(),
        *gather,
        SplitBarriersPass(),
    ]


def opt_passes() -> dict[str, type[ModulePass]]:
    """Return the passes by name. Those that need a target take it as an option."""
    every = [each for target in DEVICES for each in passes(target)]
    return {each.name: type(each) for each in every}


def build(module: ModuleOp, target: str) -> Artifact:
    """Return the SPIR-V of a module at stage ``lanes``, and the facts for launches.

    Each kernel becomes a program of its own, so that a driver builds only those that
    are launched. The kernels are detached from the module.
    """
    is_first, is_rest = target.endswith(FIRST), target.endswith(REST)
    target = find_device(target).name
    kernels = [op for op in module.ops if isinstance(op, FuncOp)]
    moved = record_arguments.moved_arguments(kernels[0])
    is_part = is_first and len(kernels) == 1 and bool(moved)
    is_folded = record_arguments.FOLDED in kernels[0].attributes
    parts = [target + part for part in ([REST, OTHER] if is_folded else [OTHER])]
    step = WIDTH_STEP if is_rest else LEAST_WIDTH
    # Dtypes that some devices cannot compute with.
    values = (value for op in module.walk() for value in op.results)
    names = {str(element_type(value.type)) for value in values}
    needs = sorted(names & {"f64", "f16"})
    arguments = record_arguments.recorded_arguments(module)
    grf = planned_registers(kernels, target)
    explain_plan(kernels)
    work = _planned_walk(kernels, target)
    for each in kernels:
        each.detach()
    programs = [emission.emit(ModuleOp([each]), target) for each in kernels]
    pairs = zip(kernels, programs)
    meta = {
        "stored": list(ints_of(module.attributes[record_arguments.STORED])),
        "target": target,
        "kernels": [_described(*pair, arguments, step) for pair in pairs],
        "arguments": arguments,
        "code_bytes": sum(len(each.spirv) for each in programs),
        "slm_bytes": max(k.slm_bytes.value.data + own_bytes(k) for k in kernels),
        "grf": grf,
        "needs": needs,
        "work": work,
        "parts": parts if is_part else [],
    }
    artifact = Artifact(b"".join(each.spirv for each in programs), meta)
    for each in expected(artifact, None, None)[:1]:
        full = "arrays of 4096 in each dimension, more programs than run at once"
        remark(kernels[0], "roofline", f"{each}; {full}")
    return artifact


def text(module: ModuleOp, target: str, stage: str) -> str:
    """Return LLVM IR, SPIR-V or machine code of a module at stage ``lanes``."""
    kernels = [op for op in module.ops if isinstance(op, FuncOp)]
    _planned_walk(kernels, target)
    if stage == "asm":
        return _machine_code(module, target)
    show = emission.llvm_text if stage == "llvm" else emission.spirv_text
    return show(module, target)


def _planned_walk(kernels: Sequence[FuncOp], target: str) -> Work:
    """Choose the order in which programs walk the grid; return the kernel's work.

    The first kernel is marked if the order differs from the order of starts. The twin
    never is: its grids may have more programs than 32 bits can count. [measured] ocloc
    26.27, bmg: a kernel that reads the size of the grid takes 83 instructions a step of
    a GEMM of bf16 with A transposed, others 82.
    """
    device = find_device(target)
    if not device.cards:
        return {}
    kernel, work = kernels[0], work_of(kernels[0], device)
    moved = record_arguments.moved_arguments(kernel)
    may_walk = moved and not operations_in(kernel, vector.ShuffleOp)
    walk = choose_walk(work, device) if may_walk else 0
    if walk:
        kernel.attributes[WALK] = IntegerAttr(walk, 64)
        text = f"{walk} programs along x, then the next along y: those that run at once"
        remark(kernel, "walk", f"{text} share more of what they read")
    return {**work, "walk": walk}


def planned_registers(kernels: Sequence[FuncOp], target: str) -> int:
    """Return how many registers a thread gets: the most that any kernel needs."""
    return max(register_file(each, find_device(target)) for each in kernels)


def _machine_code(module: ModuleOp, target: str) -> str:
    """Return the assembly by Intel's compiler, with the register file planned."""
    kernels = [op for op in module.ops if isinstance(op, FuncOp)]
    is_large = planned_registers(kernels, target) > min(find_device(target).registers)
    spirv = emission.emit(module, target).spirv
    isa = import_whole("xetl_xegpu.offline.isa")  # launches do without
    return isa.assembly_text(spirv, target, large_registers=is_large)


def _described(
    kernel: FuncOp,
    program: emission.Emitted,
    arguments: list[record_arguments.Described],
    folded: int,
) -> dict[str, Any]:
    """Return what `xetl_xegpu.launch.facts.KernelFacts` reads of a kernel."""
    moved = record_arguments.moved_arguments(kernel)
    free = ints_of(kernel.attributes.get(record_arguments.ANY_BASE))
    steps = dict(zip(free[::2], free[1::2]))
    sliced = ints_of(kernel.attributes.get(record_arguments.SLICED_ARGUMENTS))
    folded *= record_arguments.FOLDED in kernel.attributes
    return {
        "name": kernel.sym_name.data,
        "lanes": list(kernel.lanes),
        "surfaces": [
            [
                *(index, *arguments[index][-1]),
                *(steps.get(index, BASE_ALIGNMENT), index in sliced, folded),
            ]
            for index in moved
        ],
        "bytes": len(program.spirv),
        "log": program.log,
    }


_MESSAGES = (
    (simt.DpasOp, "dpas"),
    (simt.BlockLoadOp, "block loads"),
    (simt.BlockStoreOp, "block stores"),
    (simt.BlockPrefetchOp, "block prefetches"),
)


def explain_plan(kernels: Sequence[simt.FuncOp]) -> None:
    """Leave remarks about the workgroups and messages of a kernel.

    Args:
        kernels: at stage ``lanes``: the kernel with block messages, then its twin if
            there is one. The remarks are about the first.
    """
    kernel = kernels[0]
    subgroups = kernel.lanes[0] // simt.SUBGROUP_SIZE
    slm = kernel.slm_bytes.value.data
    shared = f", with {slm} bytes of shared memory" if slm else ""
    counted = f"{subgroups} subgroup{'s' if subgroups > 1 else ''}"
    remark(kernel, "workgroup", f"a program is {counted} of 16 lanes{shared}")
    counts = Counter(type(op) for op in kernel.walk())
    found = [f"{counts[kind]} {name}" for kind, name in _MESSAGES if counts[kind]]
    moved, more = record_arguments.moved_arguments(kernel), ""
    if moved:
        more = (
            f"; a launch whose arguments {', '.join(map(str, moved))} do not fit block "
            "messages takes a second kernel, in which lanes move elements (XETL_LOG=1 "
            "says when)"
        )
    else:
        found.append("no block of an array; lanes move elements")
    text = f"the code of a subgroup has {', '.join(found)}{more}"
    remark(kernel, "messages", text)
