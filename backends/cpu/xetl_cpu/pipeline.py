"""The passes of the CPU backend in order, and artifacts made of lowered modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from xetl.analysis.axes import defined_by
from xetl.backend import Artifact
from xetl.codegen.math import LIBRARY
from xetl.codegen.types import byte_width
from xetl.dialects.base import constant_index, ints_of, is_vector, operations_in
from xetl.dialects.kernel_attributes import SHARED, STORED, SUBGROUPS, TEXT
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import func, gpu, memref
from xetl.dialects.xetile import TileAssociativeScanOp, TileMmaOp, TileType
from xetl.dialects.xsmm import (
    DISPATCH,
    FUNCTIONS,
    BrgemmOp,
    DispatchOp,
    TileConfigDispatchOp,
    TileConfigOp,
)
from xetl.imports import import_whole, late
from xetl.language.signature import Signature
from xetl.pipeline import Condition, LaterPass, having
from xetl.transforms.canonicalize import CanonicalizePass
from xetl_cpu.build import assemble, assembly, llvm_text
from xetl_cpu.dialect import (
    CPU,
    XSMM,
    BlockOp,
    BrgemmTileOp,
    LogOp,
    PackedMemoryOp,
    ThreadTilesOp,
)
from xetl_cpu.emit.kernel import KERNEL, kernel_of
from xetl_cpu.image import DEFAULT_IMPORTS, build_image
from xetl_cpu.lowering.clamp_tile_offsets import ClampTileOffsetsPass
from xetl_cpu.lowering.collapse_rows import CollapseRowsPass
from xetl_cpu.lowering.convert_xetile_to_loops import ConvertXetileToLoopsPass
from xetl_cpu.lowering.fold_tile_offsets import FoldTileOffsetsPass
from xetl_cpu.lowering.fuse_row_loops import FuseRowLoopsPass
from xetl_cpu.lowering.grow_tiles import GrowTilesPass
from xetl_cpu.lowering.hoist_launch_invariants import HoistLaunchInvariantsPass
from xetl_cpu.lowering.materialize_grid import MaterializeGridPass
from xetl_cpu.lowering.order_programs import OrderProgramsPass
from xetl_cpu.lowering.place_values import PlaceValuesPass
from xetl_cpu.lowering.prefetch_rows import PrefetchRowsPass
from xetl_cpu.lowering.split_row_loops import SplitRowLoopsPass
from xetl_cpu.lowering.widen_programs import WidenProgramsPass
from xetl_cpu.targets import INLINE, Target, find_target

_later = partial(LaterPass, folder="xetl_cpu.lowering")


def _is_text(module: ModuleOp) -> bool:
    return any(TEXT in each.attributes for each in operations_in(module, gpu.FuncOp))


def _is_text_or_hinted(module: ModuleOp) -> bool:
    """Whether a module is MLIR text or has cache hints, as Python kernels may."""
    hints = {"l1_hint", "l2_hint", "l3_hint"}
    found = operations_in(module, Operation)
    return _is_text(module) or any(hints & op.properties.keys() for op in found)


def _has_subgroups(module: ModuleOp) -> bool:
    found = operations_in(module, func.FuncOp)
    return any(SUBGROUPS in each.attributes for each in found)


def _with_type(test: Callable[[Attribute], bool]) -> Condition:
    """Return a condition: some value in the module has a type that passes the test."""

    def wanted(module: ModuleOp) -> bool:
        operations = operations_in(module, Operation)
        return any(test(value.type) for op in operations for value in defined_by(op))

    return wanted


def _is_no_matrix(type_: Attribute) -> bool:
    if isinstance(type_, TileType):
        return type_.inner_blocks is not None
    return is_vector(type_) and type_.get_num_dims() not in (1, 2)


def _is_small_float(type_: Attribute) -> bool:
    element = getattr(type_, "element_type", type_)
    return isinstance(element, AnyFloat) and element.bitwidth == 8


_log_entry = late("xetl_cpu.emit.log", "entry_of")

IMPORTS = DEFAULT_IMPORTS | {"fmod", "fmodf"} | LIBRARY | frozenset(FUNCTIONS)
"""All C functions that kernels may call."""

DIALECTS = (XSMM, CPU)

_OF_PRODUCTS = having(TileMmaOp, BrgemmTileOp)
_OF_TILES = having(TileConfigOp, TileConfigDispatchOp, ThreadTilesOp)
_INSERT_CONFIG = _later("insert-amx-config", having(BrgemmTileOp, BrgemmOp, BlockOp))
_HOIST_DISPATCH = _later("hoist-dispatch", having(DispatchOp))

_OF_SOME_TARGETS = (
    "insert-amx-config",
    "convert-block-gemm-to-brgemm",
    "convert-xsmm-to-calls",
)
"""Passes of some targets only: for AMX tiles, and for products as library calls."""

STAGE_AFTER = {"order-programs": "xsmm", "convert-xetile-to-loops": "loops"}


def passes(target: str) -> list[ModulePass]:
    """Return the passes from stage ``xetile`` to ``loops``, and those after it."""
    return [
        LaterPass("inline-calls", having(func.CallOp)),
        # Functions whose bodies do more than elementwise operations.
        LaterPass("expand-scans", having(TileAssociativeScanOp), (False,)),
        LaterPass("expand-small-floats", _with_type(_is_small_float)),
        LaterPass("legalize-vectors", _is_text),
        _later("expand-text-forms", _is_text_or_hinted),
        _later("collapse-vectors", _with_type(_is_no_matrix)),
        LaterPass("unblock-values", _with_type(_is_no_matrix)),
        LaterPass("fold-add-into-mma", having(TileMmaOp)),
        MaterializeGridPass(),
        _later("materialize-subgroups", _has_subgroups),
        ClampTileOffsetsPass(),
        FoldTileOffsetsPass(),
        HoistLaunchInvariantsPass(),
        # After hoisting: the number of steps must be defined before the loop over
        # programs, so that operands can be computed or packed ahead of the programs.
        _later("compute-operands", _OF_PRODUCTS),
        _later("raise-to-brgemm", _OF_PRODUCTS, (target,)),
        _later("hoist-launch-invariants", _OF_PRODUCTS),
        CollapseRowsPass(target),
        GrowTilesPass(target),
        _later("plan-gemm", _OF_PRODUCTS, (target,)),
        _later("pack-operands", _OF_PRODUCTS, (target,)),
        _later("sink-products", _OF_PRODUCTS),
        *_tiles(target),
        _HOIST_DISPATCH,
        OrderProgramsPass(),
        PlaceValuesPass(target),
        ConvertXetileToLoopsPass(target),
        FuseRowLoopsPass(),
        WidenProgramsPass(),
        PrefetchRowsPass(target),
        _later("version-element-loops", having(memref.StoreOp)),
        _later("vectorize-element-loops", having(memref.StoreOp), (target,)),
        _later("forward-stored-elements", having(memref.StoreOp)),
        SplitRowLoopsPass(),
        *_calls(target),
        CanonicalizePass(),
    ]


def _tiles(target: str) -> list[ModulePass]:
    """Return the passes that configure AMX once per task, for our own micro-kernels."""
    machine = find_target(target)
    if machine.calls != INLINE or not machine.has_amx:
        return []
    return [_INSERT_CONFIG, _later("hoist-amx-config", _OF_TILES, ("task", True))]


def _calls(target: str) -> list[ModulePass]:
    """Return the passes for library calls, and those that set AMX up per thread."""
    machine = find_target(target)
    hoist = _later("hoist-amx-config", _OF_TILES, ("thread",))
    if machine.calls == INLINE:
        return [hoist]
    return [
        _later("convert-block-gemm-to-brgemm", having(BlockOp), (target,)),
        *([_INSERT_CONFIG] if machine.calls_configure else []),
        _HOIST_DISPATCH,
        hoist,
        _later("convert-xsmm-to-calls", having(DispatchOp, BrgemmOp, ThreadTilesOp)),
    ]


def opt_passes() -> dict[str, type[ModulePass]]:
    """Return the passes by name; some have an option: ``{target=avx2}``."""
    known = {
        each.name: each.load() if isinstance(each, LaterPass) else type(each)
        for each in passes("host")
    }
    return known | {name: _later(name).load() for name in _OF_SOME_TARGETS}


def build(module: ModuleOp, signature: Signature, target: str) -> Artifact:
    """Compile a lowered module to machine code, with facts for the runtime."""
    machine = find_target(target)
    # Operands that a launch may bring packed.
    packed = operations_in(module, PackedMemoryOp)
    code = assemble(llvm_text(module, machine), machine)
    image = build_image(code, [KERNEL], IMPORTS)
    meta = {
        "stored": stored_arguments(module),
        "packed": [op.argument.value.data for op in packed],
        "target": target,
        "code_bytes": len(image.code),
        "slm_bytes": shared_bytes(module),
        "tile_config": _tile_config(module, machine),
        "dispatches": dispatches(module),
        "log": [_log_entry(op) for op in operations_in(module, LogOp)],
    }
    return Artifact(image.to_bytes(), meta)


def _tile_config(module: ModuleOp, machine: Target) -> str | None:
    """Return the 64 bytes that our kernels pass to ldtilecfg, in hexadecimal."""
    if machine.calls != INLINE or not _OF_TILES(module):
        return None
    tiles = import_whole("xetl_cpu.microkernels.amx_tiles")
    return tiles.CONFIG.hex()


def text(module: ModuleOp, target: str, stage: str) -> str:
    """Return the LLVM IR or the assembly of a lowered module."""
    machine = find_target(target)
    llvm = llvm_text(module, machine)
    return llvm if stage == "llvm" else assembly(llvm, machine)


def stored_arguments(module: ModuleOp) -> list[int]:
    """Return the indices of the arguments whose memory the kernel writes."""
    function = kernel_of(module)
    return list(ints_of(function.attributes[STORED]))


def dispatches(module: ModuleOp) -> list[list[int]]:
    """Return the arguments of each call that looks up the kernel of a product."""
    calls = operations_in(module, func.CallOp)
    found = [one for one in calls if one.callee.root_reference.data == DISPATCH]
    return [[constant_index(value) or 0 for value in one.operands] for one in found]


def shared_bytes(module: ModuleOp) -> int:
    """Return the bytes of shared local memory that a program allocates."""
    found = operations_in(module, memref.AllocOp, memref.AllocaOp)
    types = [op.result.type for op in found]
    shared = [type_ for type_ in types if memory_space_of(type_) == SHARED]
    return sum(byte_width(t.element_type) * prod(t.get_shape()) for t in shared)
