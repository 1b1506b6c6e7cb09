"""tile-gemm: neighbouring programs of a product become one task, with a larger tile.

    scf.parallel (%x, %y) = ... to (%gx, %gy) {
      %m = arith.muli %x, 64
      %c = xsmm.brgemm.tile (A at [%m, 0], 64 x 32), %b      -> vector<64x64xf32>
      store_tile %c, (C at [%m, %n], [%rows, %cols])
    }
    ->
    %some = max(1, min(4, %gx * %gy / (8 * threads)))        one thread: 4
    %stride = %some * 64
    scf.parallel (%t, %y) = ... to (ceil(%gx / %some), %gy) {
      %m = arith.muli %t, %stride
      %end = min(%m + %stride, %gx * 64)
      %c = xsmm.brgemm.tile (A at [%m, 0], 256 x 32), %b     -> vector<256x64xf32>
      store_tile %c, (C at [%m, %n], [min(%rows, %end), %cols])
    }

Why: the user's tile is no cache block. A panel of B is read from L2 or beyond for each
program, and is packed for each that does not share it; memory gives long pieces of B's
rows faster than short ones (1 x 4096 x 4096 in f32 by 512 columns: 12 GB/s, by 4096: 27
GB/s, one core of Zen 4).

Columns come first, then rows. Before: ``plan-gemm``, whose numbers are then those of
the task. How many programs a task has is known at run time; the tile is of the most
there may be, and ends earlier. The columns that are read are then ``min(%cols,
%stride)``: by this ``plan-gemm`` and ``pack-operands`` know the task's width.

Left alone: programs that do more than one product and its store, rows of tiles of few
rows (their plans are others), short rows of B, columns where a library computes the
product: it computes whole tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.affine import multiple_of
from xetl.codegen.types import byte_width
from xetl.dialects.base import Index
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith, scf
from xetl.dialects.walk import operations_in
from xetl.dialects.xetile import InitTileOp, StoreTileOp, TileType
from xetl.ir.builder import Builder
from xetl.ir.passes import Pass
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp, ThreadCountOp, element_name
from xetl_cpu.lowering.tiles import longer, tile_like, way_to_store
from xetl_cpu.microkernels.blocking import LOW_ROWS, SKINNY_ROWS
from xetl_cpu.targets import INLINE, Target, find_target

_ROWS = _COLUMNS = 256
"""Of a task: wider blocks gain nothing (`benchmarks/gemm.py --part tiles`)."""

_PIECE = 512
"""Bytes of a row of a tile of B, at least: a task that packs B itself takes as many."""

_TASKS = 8
"""For each of several threads at least; of products that memory bounds, one."""


@dataclass(frozen=True)
class TileGemmPass(Pass):
    """See the module docstring."""

    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        target = find_target(self.target)
        for loop in operations_in(op, scf.ParallelOp):
            most = 1
            for find in (_along_columns, _along_rows):
                plain = _plain_product(loop)
                found = None if plain is None else find(*plain, loop, target)
                if plain is not None and found is not None and found.most > 1:
                    most *= found.most
                    _widen(loop, *plain, found)
            for product in operations_in(loop, BrgemmTileOp) if most > 1 else ():
                text = f"up to {most} programs run as one, with a larger tile"
                remark(product, "programs", text)


@record()
class _Widening:
    """Programs along one axis of the grid become one.

    Attributes:
        axis: of the grid.
        offset: where a program's tile begins.
        operand: the tile of A or B that is widened.
        dims: which dimensions of the operand, and of the result.
        most: how many programs become one.
        tasks: there are for each thread, at least.
    """

    axis: int
    offset: SSAValue
    operand: InitTileOp
    dims: tuple[int, int]
    most: int
    tasks: int


def _plain_product(loop: scf.ParallelOp) -> tuple[BrgemmTileOp, StoreTileOp] | None:
    """The product and the store, if programs do nothing else."""
    ops = [*loop.body.block.ops]
    products = [op for op in ops if isinstance(op, BrgemmTileOp)]
    way = way_to_store(products[0]) if len(products) == 1 else None
    if way is None or products[0].acc is not None or products[0].count is None:
        return None
    known = (*way[0], way[1])
    for op in ops:
        is_index = op.name.startswith("arith.") and not any(
            is_vector(result.type) for result in op.results
        )
        is_done = isinstance(op, InitTileOp | scf.ReduceOp) or op in known
        if not is_index and not is_done and not _is_unread(op):
            return None
    return products[0], way[1]


def _is_unread(op: Operation) -> bool:
    """A constant of zeros that nobody adds to, say."""
    return isinstance(op, arith.ConstantOp) and not op.result.uses


def _along_rows(
    product: BrgemmTileOp, store: StoreTileOp, loop: scf.ParallelOp, _target: Target
) -> _Widening | None:
    """Of A: a task that needs B alone packs it chunk by chunk, in its cache."""
    m, n, _ = product.shape()
    type_ = product.b.type
    if m <= LOW_ROWS or not isinstance(type_, TileType):
        return None
    if n * byte_width(type_.element_type) < _PIECE:
        return None
    dims = (0 if product.trans_a is None else 1, 0)
    return _found(product.a, store, loop, dims, m, (_ROWS // m, _TASKS))


def _along_columns(
    product: BrgemmTileOp, store: StoreTileOp, loop: scf.ParallelOp, target: Target
) -> _Widening | None:
    """Of B; where it is streamed, C's part stays in half of L1."""
    m, n, _ = product.shape()
    init = product.b.owner
    if m > SKINNY_ROWS and target.calls == INLINE and product.cols is not None:
        dims = (1 if product.trans_b is None else 0, 1)
        return _found(product.b, store, loop, dims, n, (_COLUMNS // n, _TASKS))
    is_by_rows = isinstance(init, InitTileOp) and init.mixed_strides[-1:] == (1,)
    if not is_by_rows or product.trans_b is not None:
        return None
    if element_name(product.b) not in ("f32", "f64", "bf16", "f16"):
        return None
    width = target.machine.l1.size // 2 // (4 * m)
    most = max(1, (1 << width.bit_length() - 1) // n)
    return _found(product.b, store, loop, (1, 1), n, (most, 1))


def _found(
    operand: SSAValue,
    store: StoreTileOp,
    loop: scf.ParallelOp,
    dims: tuple[int, int],
    extent: int,
    how: tuple[int, int],
) -> _Widening | None:
    """The widening, if all that a program does with its number is known."""
    init, to = operand.owner, store.tile.owner
    if not (isinstance(init, InitTileOp) and isinstance(to, InitTileOp)):
        return None
    if not all(_is_matrix(each) for each in (init, to)):
        return None
    offset = init.mixed_offsets[dims[0]]
    number = multiple_of(offset, extent)
    if not isinstance(number, BlockArgument) or number.block is not loop.body.block:
        return None
    if to.mixed_offsets[dims[1]] is not offset or len([*number.uses]) != 1:
        return None
    assert isinstance(offset, SSAValue)
    users = {use.operation for use in offset.uses} - {init, to}
    if not all(_is_rest(user, offset) for user in users):
        return None
    return _Widening(number.index, offset, init, dims, *how)


def _is_rest(op: Operation, offset: SSAValue) -> bool:
    """Whether it is how far a matrix reaches from the offset on."""
    return isinstance(op, arith.SubiOp) and op.operands[1] is offset


def _is_matrix(init: InitTileOp) -> bool:
    """Whether one operation reads or writes the tile, of a matrix with known sizes."""
    is_plain = init.indices is None and len(init.mixed_offsets) == 2
    return is_plain and len(init.mixed_sizes) == 2 and len([*init.result.uses]) == 1


def _widen(
    loop: scf.ParallelOp, product: BrgemmTileOp, store: StoreTileOp, how: _Widening
) -> None:
    to = store.tile.owner
    assert isinstance(to, InitTileOp)
    extent, way = product.shape()[how.dims[1]], way_to_store(product)
    assert way is not None
    stride, whole = _share(loop, how, extent)
    old = how.offset.owner
    assert isinstance(old, Operation)
    users = [use.operation for use in how.offset.uses]
    inner = Builder.before(old)
    offset = inner.insert(arith.MuliOp(loop.body.block.args[how.axis], stride))
    end = inner.minimum(inner.plus(offset, stride), whole)
    Rewriter.replace_op(old, [], [offset])
    for each in users:
        if _is_rest(each, offset):  # how much of the result is read
            build = Builder.before(each)
            each.operands[0] = build.index(build.minimum(each.operands[0], end))
    widened = [(op.results[0], how.dims[1]) for op in way[0]]
    for value, dim in ((how.operand.result, how.dims[0]), *widened):
        new = longer(value.type, dim, how.most)
        Rewriter.replace_value_with_new_type(value, new)
    if product.cols is not None and how.dims[1] == 1:
        # Tiles of packed B are counted by it.
        cols = Builder.before(product).pure(arith.MinsiOp, product.cols, stride)
        Rewriter.replace_op(product, product.changed(cols=cols))
    sizes = list(to.mixed_sizes)
    sizes[how.dims[1]] = Builder.before(to).minimum(sizes[how.dims[1]], end)
    type_ = longer(to.result.type, how.dims[1], how.most)
    Rewriter.replace_value_with_new_type(to.result, type_)
    Rewriter.replace_op(to, tile_like(to, sizes=sizes))


def _share(loop: scf.ParallelOp, how: _Widening, extent: int) -> tuple[SSAValue, Index]:
    """Let a task have some programs; how far it gets, and how far all get."""
    build, extents = Builder.before(loop), list(loop.upper_bounds)
    programs = build.product(extents)
    threads = build.insert(ThreadCountOp())
    tasks = build.times(threads, how.tasks)
    alone = build.compare("sle", threads, 1)
    fitting = build.select(alone, how.most, build.divided(programs, tasks))
    some = build.maximum(build.minimum(fitting, how.most), 1)
    count = build.index(build.ceil_divided(extents[how.axis], some))
    loop.operands[len(extents) + how.axis] = count
    whole = build.times(extents[how.axis], extent)
    return build.index(build.times(some, extent)), whole
