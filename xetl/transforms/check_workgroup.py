"""Check the rules that hold for a kernel as a whole; errors are on the user's lines.

*What*: all maps have the same number of subgroups, and shared memory fits the device.
A warning is given if the maps make all subgroups repeat the whole work.
*Why*: verifiers see one operation at a time. The pass runs before simplification, so
unused operations are checked, too.
*Left alone*: everything; the module is not changed.

Source: docs/xetile.md, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xetl.dialects import xetile
from xetl.dialects.base import is_memref, operations_in, vector_type
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import func, gpu, memref
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.xetile.types import SHARED
from xetl.dialects.xetile.used_maps import used_maps
from xetl.errors import TileMapError, TileShapeError
from xetl.ir.builder import Pass
from xetl.language.distribution import Layout, problem_with, rounds
from xetl.transforms.diagnostics import DiagnosticEmitter, DiagnosticKind, remark

SLM_LIMIT = 1 << 20
"""The default limit of shared memory of a workgroup, in bytes."""

_SHARED_MEMORY = DiagnosticKind(TileShapeError, "X0211", "X0706")


@dataclass(frozen=True)
class CheckWorkgroupPass(Pass):
    slm_limit: int = SLM_LIMIT

    def rewrite(self, op: ModuleOp) -> None:
        """Check a module.

        Raises:
            CompileError: a kernel from Python breaks a rule.
            IRError: one from a text does.
        """
        for kernel in operations_in(op, gpu.FuncOp):
            report = DiagnosticEmitter(kernel)
            _check_maps(kernel, report)
            report_shared_work(kernel)
            _check_shared_memory(functions_of(op, kernel), report, self.slm_limit)


def _check_maps(kernel: gpu.FuncOp, report: DiagnosticEmitter) -> None:
    found: tuple[int, Operation] | None = None
    for map_, op in used_maps(kernel).items():
        count = prod(map_.sg_layout)
        if found is None:
            found = count, op
        elif count != found[0]:
            raise report.error(
                DiagnosticKind(TileMapError, "X0505", "X0704"),
                op,
                f"its map is for {count} subgroups, another one of the kernel for"
                f" {found[0]}",
                notes=[f"the other map is that of {report.place(found[1])}"],
                help="the product of sg_layout is the same for all maps of a kernel",
            )


def functions_of(module: ModuleOp, kernel: gpu.FuncOp) -> list[Operation]:
    """Return a kernel and, if it calls functions, all functions of its module."""
    if not operations_in(kernel, func.CallOp):
        return [kernel]
    others = (op for op in module.walk() if isinstance(op, func.FuncOp))
    return [kernel, *others]


def _check_shared_memory(
    functions: list[Operation], report: DiagnosticEmitter, limit: int
) -> None:
    before = 0
    for op in (op for function in functions for op in function.walk()):
        if not isinstance(op, memref.AllocOp | memref.AllocaOp):
            continue
        size = shared_bytes(op)
        if before + size > limit:
            earlier = f" beside {before} bytes of other arrays" if before else ""
            problem = (
                f"asks for {size} bytes of shared memory{earlier}, but {limit} are"
                " allowed"
            )
            help_ = "use a smaller shape or element type"
            raise report.error(_SHARED_MEMORY, op, problem, help=help_)
        before += size


def shared_bytes(op: memref.AllocOp | memref.AllocaOp) -> int:
    """Return the bytes of shared memory of a static allocation, else 0."""
    type_ = op.results[0].type
    if not is_memref(type_) or memory_space_of(type_) != SHARED:
        return 0
    shape, bits = type_.get_shape(), bit_width(type_.element_type)
    return prod(shape) * -(-bits // 8) if min(shape, default=1) >= 0 else 0


def report_shared_work(kernel: Operation) -> None:
    """Give a remark and a warning if all products (or else all stores) are repeated."""
    products = operations_in(kernel, xetile.TileMmaOp)
    stores = operations_in(kernel, xetile.StoreTileOp, xetile.AtomicRmwTileOp)
    spread = [_spread(op) for op in products or stores]
    repeats = [1 if each is None else _repeats(*each) for each in spread]
    least = min(repeats, default=1)
    if least == 1:
        return
    first = repeats.index(least)
    found = spread[first]
    assert found is not None
    shape, layout = found
    text = (
        f"{least} subgroups each do the same work: wg_map({list(layout.sg_layout)}, "
        f"{list(layout.sg_data)}) is larger than what it spreads, {tuple(shape)}; use "
        "fewer subgroups, less sg_data or a larger tile"
    )
    remark((products or stores)[first], "maps", text, is_warning=True)


def _spread(
    op: xetile.TileMmaOp | xetile.StoreTileOp | xetile.AtomicRmwTileOp,
) -> tuple[Sequence[int], Layout] | None:
    """Return the shape that an operation computes or stores, and its map, or None."""
    map_: xetile.WorkgroupMap | None
    if isinstance(op, xetile.TileMmaOp):
        shape, map_ = vector_type(op.result).get_shape(), op.wg_map
    else:
        type_ = xetile.tile_type(op.tile)
        shape, map_ = type_.shape, type_.wg_map
    if map_ is None or len(shape) != 2 or problem_with(shape, xetile.layout_of(map_)):
        return None
    return shape, xetile.layout_of(map_)


def _repeats(shape: Sequence[int], layout: Layout) -> int:
    """Return how many subgroups hold each element."""
    parts = prod(extent // size for extent, size in zip(shape, layout.sg_data))
    return layout.subgroups * prod(rounds(shape, layout)) // parts
