"""pack-operands: B is packed once for a launch, in parallel, before the programs run.

Why: all programs of a column of the grid read the same panels of B. Packed once, they
are read linearly by all of them; packed by each program, the copy costs 1/BM of the
arithmetic: 10 % at BM = 64.

Before: ``scf.parallel (%x, %y) { xsmm.brgemm(%a, %b at [0, %y * 256], ...) }``
After::

    %packed, %is_missing = cpu.packed_memory(...)
    scf.parallel (%tile, %chunk) { xsmm.pack_b ... }
    scf.parallel (%x, %y) { xsmm.brgemm(...) packed (%packed, tile %y) }

A launch may bring that memory with the operand in it; then there are no tiles to pack.
One operand, the first that is part of an argument, has this; the memory of others is a
`memref.alloc`.

Left alone: operands that the kernel writes, whose offset along n is not a program's
number times the tile, or whose start along k depends on the program; those are packed
chunk by chunk in each program.

On memrefs, both operands of a `linalg.matmul` are packed into ``blocks`` of m, n and k:
linalg/packing.py.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.passes import ModulePass

from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.upstream import func, memref, scf
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.transforms.remarks import remark
from xetl_cpu.dialect import (
    BrgemmTileOp,
    PackBOp,
    PackedMemoryOp,
    UserTile,
    element_attribute,
)
from xetl_cpu.lowering.affine import constant_of, is_defined_outside, multiple_of
from xetl_cpu.lowering.loops.build import Build, Index, at_end, before
from xetl_cpu.lowering.loops.state import Matrix, matrix_of, static_strides
from xetl_cpu.lowering.tiles import may_alias, may_write, root, tile_sizes, written_root
from xetl_cpu.microkernels import Blocking, choose_blocking
from xetl_cpu.microkernels.skinny import is_skinny
from xetl_cpu.targets import Target, find_target

_LINE = 32
"""Panels start at multiples of this many elements: whole cache lines."""

_DTYPES = ("f64", "f32", "f16", "bf16", "i32", "i16", "i8")
"""Their places in it are how the memory of a packed operand names them."""

_CHUNK = 256
"""Steps of k that one task packs."""


@dataclass(frozen=True)
class PackOperandsPass(ModulePass):
    """See the module docstring."""

    target: str = "host"
    blocks: tuple[int, ...] = (32, 32, 32)

    name = "pack-operands"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        machine = find_target(self.target)
        for function in [o for o in op.walk() if isinstance(o, func.FuncOp)]:
            _pack_for_programs(function, machine)
        for matmul in [o for o in op.walk() if o.name == "linalg.matmul"]:
            # Only then: importing `linalg` takes as long as a small compilation.
            linalg = importlib.import_module("xetl_cpu.lowering.linalg.packing")
            linalg.pack_matmul(matmul, self.blocks)


def _pack_for_programs(function: func.FuncOp, machine: Target) -> None:
    """Pack before each loop over programs what is the same for all of them."""
    may_bring = True
    for loop in [o for o in function.walk() if isinstance(o, scf.ParallelOp)]:
        found = [o for o in loop.walk() if isinstance(o, BrgemmTileOp)]
        found = [o for o in found if not _stays(o, machine)]
        plans = [(brgemm, _plan_or_say_why(brgemm, loop)) for brgemm in found]
        packings: list[_Packing] = []
        for brgemm, plan in plans:
            if plan is not None:
                new = _reserve(plan, brgemm, loop, machine, may_bring)
                packings.append(new)
                may_bring = may_bring and new.is_missing is None
        # All memory stands first: how much is needed must be known before anything
        # runs.
        for packing in packings:
            _emit_packing(packing, before(loop))


def _stays(op: BrgemmTileOp, target: Target) -> bool:
    """Whether b is used too rarely to be packed, and lies so that it need not be."""
    type_ = op.b.type
    init = op.b.owner
    if not isinstance(type_, TileType) or not isinstance(init, InitTileOp):
        return False
    name = str(type_.element_type)
    if not is_skinny(choose_blocking(target, name, *op.user_tile())):
        return False
    if not is_memref(init.source.type) or 1 not in static_strides(init.source.type):
        return False
    remark(op, "packing", "b is not packed: few rows are multiplied by it")
    return True


@dataclass
class _Plan:
    """Where the packed operand comes from; ``axis``: the grid axis of its tiles."""

    init: InitTileOp
    k_start: Index
    axis: int | None
    n_dim: int

    def argument(self) -> int | None:
        """The number of the argument that it is part of, if it is."""
        base = root(self.init.source)
        if not isinstance(base, BlockArgument):
            return None
        is_argument = isinstance(base.block.parent_op(), func.FuncOp)
        return base.index if is_argument else None


class _NotPackedError(Exception):
    """Why an operand is not packed for the whole launch."""


def _plan_or_say_why(op: BrgemmTileOp, loop: scf.ParallelOp) -> _Plan | None:
    try:
        plan = _plan(op, loop)
    except _NotPackedError as reason:
        text = f"b is packed by each program, chunk by chunk: {reason}"
        remark(op, "packing", text)
        return None
    remark(op, "packing", "b is packed once, before the programs run")
    return plan


def _plan(op: BrgemmTileOp, loop: scf.ParallelOp) -> _Plan:
    """What to pack.

    Raises:
        _NotPackedError: it is not the same for all programs of the launch.
    """
    init = op.b.owner
    if not isinstance(init, InitTileOp) or op.count is None or init.indices is not None:
        raise _NotPackedError("it is not loaded from a tile made for this product")
    sizes = tile_sizes(init)
    if sizes is None or len(init.mixed_offsets) != 2 or not is_memref(init.source.type):
        raise _NotPackedError("its matrix is not an array")
    n_dim = 0 if op.trans_b is not None else 1
    offsets = init.mixed_offsets
    fixed = [init.source, op.count, offsets[1 - n_dim], *sizes, *init.mixed_strides]
    if not all(is_defined_outside(v, loop) for v in fixed):
        raise _NotPackedError("where it starts along k differs between programs")
    if _is_written(init.source, loop):
        raise _NotPackedError("the kernel may write its matrix")
    found, axis = _tile_axis(offsets[n_dim], op.shape()[1], loop)
    if not found:
        raise _NotPackedError("its place along n is not a program number times BN")
    return _Plan(init, offsets[1 - n_dim], axis, n_dim)


def _is_written(source: SSAValue, loop: scf.ParallelOp) -> bool:
    """True if a program may store to the operand (or if nobody can tell)."""
    base = root(source)
    return not isinstance(base, BlockArgument) or any(
        may_alias(base, written_root(op)) for op in loop.walk() if may_write(op)
    )


def _tile_axis(
    offset: Index, extent: int, loop: scf.ParallelOp
) -> tuple[bool, int | None]:
    """The program number that counts the tiles along n; None: there is one tile."""
    if constant_of(offset) == 0:
        return True, None
    number = multiple_of(offset, extent)
    if isinstance(number, BlockArgument) and number.block is loop.body.block:
        return True, number.index
    return False, None


@dataclass
class _Packing:
    """A buffer of the launch and what goes into it.

    Attributes:
        block: the user's tile.
        source: the operand as a (k, n) matrix.
        k_start: where in it the packed part starts.
        total: its extent along k.
        per_panel: elements of a panel.
        tiles: how many tiles of n there are.
        buffer: the memory.
        is_missing: whether it has to be packed; None: always.
    """

    block: UserTile
    blocking: Blocking
    source: Matrix
    k_start: Index
    total: Index
    per_panel: Index
    tiles: Index
    buffer: SSAValue | None = None
    is_missing: SSAValue | None = None

    def facts(self) -> list[Index]:
        """What decides, with source and layout, about the packed elements."""
        source = self.source
        return [source.rows, source.cols, self.k_start, self.total, self.tiles]

    def layout(self) -> list[int]:
        """As `facts`, what is known when compiling."""
        how, tile = self.blocking, self.block
        unsigned = 2 * tile.unsigned[0] + tile.unsigned[1]
        dtypes = [_DTYPES.index(how.dtype), _DTYPES.index(how.compute)]
        return [tile.n, how.nr, how.k_pack, how.k_step, unsigned, *dtypes]


def _reserve(
    plan: _Plan,
    op: BrgemmTileOp,
    loop: scf.ParallelOp,
    target: Target,
    may_bring: bool,
) -> _Packing:
    """Memory for the packed operand; the product reads that from now on."""
    _, n, depth = op.shape()
    type_ = op.b.type
    assert isinstance(type_, TileType)
    tile = op.user_tile()
    blocking = choose_blocking(target, str(type_.element_type), *tile)
    build = before(loop)
    assert op.count is not None
    total = build.mul(op.count, depth)
    line = max(_LINE, blocking.k_step)
    per_panel = build.mul(build.round_up(total, line), blocking.nr)
    source = _source(plan, build)
    inner = before(op)
    tiles: Index = 1
    number: Index = 0
    if plan.axis is not None:
        # All tiles past the last column are alike: one stands for them.
        most = build.add(build.ceildiv(source.cols, n), 1)
        tiles = build.minimum(loop.upper_bounds[plan.axis], most)
        last = build.sub(tiles, 1)
        number = inner.minimum(loop.body.block.args[plan.axis], last)
    size = build.mul(build.mul(tiles, blocking.panels), per_panel)
    packing = _Packing(tile, blocking, source, plan.k_start, total, per_panel, tiles)
    buffer = _memory(packing, build, size, plan.argument() if may_bring else None)
    buffer.name_hint = "packed"
    packing.buffer = buffer
    new = op.with_packed(buffer, inner.value(number), build.value(per_panel))
    inner.emit(new)
    op.result.replace_all_uses_with(new.result)
    op.detach()
    op.erase()
    return packing


def _memory(
    packing: _Packing, build: Build, size: Index, argument: int | None
) -> SSAValue:
    """Memory of the launch, which the launch may bring if it is for an argument."""
    element = element_attribute(packing.blocking.compute)
    type_ = MemRefType(element, [DYNAMIC_INDEX])
    count = build.value(size)
    if argument is None:
        return build.insert(memref.AllocOp(type_, [count]))
    facts = [build.value(fact) for fact in packing.facts()]
    source, layout = packing.source.memref, packing.layout()
    op = PackedMemoryOp(count, source, facts, argument, layout, type_)
    build.emit(op)
    packing.is_missing = op.is_missing
    op.is_missing.name_hint = "is_missing"
    return op.memory


def _source(plan: _Plan, build: Build) -> Matrix:
    """The operand as a (k, n) matrix, outside the programs."""
    matrix = matrix_of(plan.init, build)
    return matrix.transposed() if plan.n_dim == 0 else matrix


def _emit_packing(packing: _Packing, build: Build) -> None:
    """A parallel loop over (tile of n, chunk of k)."""
    blocking, source = packing.blocking, packing.source
    chunk = _CHUNK * blocking.k_pack
    chunks = build.ceildiv(packing.total, chunk)
    index = build.value(0).type
    body = Block(arg_types=[index, index])
    tile, part = body.args
    inner = at_end(body)
    skip = inner.mul(part, chunk)
    first = inner.add(packing.k_start, skip)
    column = inner.mul(tile, packing.block.n)
    length = inner.minimum(inner.sub(packing.total, skip), chunk)
    k_valid = inner.maximum(inner.sub(source.rows, first), 0)
    if blocking.k_step > 1:
        # What is packed besides, up to a whole step, is padding.
        k_valid = inner.minimum(k_valid, length)
        length = inner.round_up(length, blocking.k_step)
    n_valid = inner.maximum(inner.sub(source.cols, column), 0)
    start = inner.add(
        inner.mul(tile, inner.mul(packing.per_panel, blocking.panels)),
        inner.mul(skip, blocking.nr),
    )
    scalars = [inner.value(v) for v in (first, column, k_valid, length, n_valid)]
    assert packing.buffer is not None
    tail = [inner.value(start), inner.value(packing.per_panel)]
    operands = [source.memref, *scalars, packing.buffer, *tail]
    inner.emit(PackBOp(packing.block, operands))
    inner.emit(scf.ReduceOp())
    zero, one = build.value(0), build.value(1)
    tiles = packing.tiles
    if packing.is_missing is not None:
        tiles = build.select(packing.is_missing, tiles, 0)
    uppers = [build.value(tiles), build.value(chunks)]
    build.emit(scf.ParallelOp([zero, zero], uppers, [one, one], Region(body)))
