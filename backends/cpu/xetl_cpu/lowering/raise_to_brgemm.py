"""raise-to-brgemm: a K loop of loads and a ``tile_mma`` is one batch-reduce GEMM.

Why: the blocking that makes a GEMM fast (registers, L1, L2, packed panels) has
nothing to do with the tile the user chose. ``xsmm.brgemm.tile`` says what is computed;
the passes after this one choose how.

Before::

    %r:3 = scf.for %k = %c0 to %K step %c32 iter_args(%acc = %z, %a = %a0, %b = %b0) {
      %d = xetile.tile_mma (xetile.load_tile %a), (xetile.load_tile %b), %acc
      scf.yield %d, (update_tile_offset %a, [0, 32]), (update_tile_offset %b, [32, 0])
    }

After: ``%r = xsmm.brgemm(%a0, %b0, %z, %count)``

A ``tile_mma`` outside such a loop becomes a BRGEMM of one step, on the tiles it loads
from or on values. Left alone: element types without a micro-kernel, loops that do
anything else beside, tiles whose offset may be negative, other padding than 0.

On memrefs, a batch-reduce `linalg.generic` becomes ``xsmm.brgemm``: linalg/raising.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from xetl.dialects.base import vector_type
from xetl.dialects.upstream import arith, scf
from xetl.dialects.xetile import (
    InitTileOp,
    LoadTileOp,
    PrefetchTileOp,
    TileMmaOp,
    TileTransposeOp,
    UpdateTileOffsetOp,
)
from xetl.transforms.remarks import remark
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.affine import constant_of, dominates, is_defined_outside
from xetl_cpu.lowering.demand import demanded_extent
from xetl_cpu.lowering.linalg.raising import GENERIC, raise_generic
from xetl_cpu.lowering.tiles import is_streamable, loads_zero_padded, writes_between

_ACCUMULATORS = {"f32": "f32", "bf16": "f32", "f16": "f32", "f64": "f64", "i8": "i32"}
"""Element types of A and B that have micro-kernels, and what these add up in."""


class RaiseToBrgemmPass(ModulePass):
    """See the module docstring."""

    name = "raise-to-brgemm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for loop in [o for o in op.walk() if isinstance(o, scf.ForOp)]:
            try:
                raised = _match_loop(loop)
            except _NotRaisedError as reason:
                remark(reason.mma, "brgemm", f"the loop around it stays: {reason}")
                continue
            if raised is not None:
                _replace_loop(loop, raised)
        for mma in [o for o in op.walk() if isinstance(o, TileMmaOp)]:
            if _has_micro_kernel(mma):
                _replace_single(mma)
            else:
                element = element_of(mma.a)
                text = f"plain loops: there is no micro-kernel for {element}"
                remark(mma, "brgemm", text)
        for generic in [o for o in op.walk() if o.name == GENERIC]:
            raise_generic(generic)


class _NotRaisedError(Exception):
    """Why a loop with a product in it is not a BRGEMM."""

    def __init__(self, mma: TileMmaOp, reason: str) -> None:
        super().__init__(reason)
        self.mma = mma


def _has_micro_kernel(mma: TileMmaOp) -> bool:
    type_ = vector_type(mma.a)
    return len(type_.get_shape()) == 2 and _ACCUMULATORS.get(
        str(element_of(mma.a))
    ) == str(element_of(mma.result))


def _signs(mma: TileMmaOp) -> tuple[bool, bool]:
    return mma.a_unsigned is not None, mma.b_unsigned is not None


def element_of(value: SSAValue) -> Attribute:
    """The element type of a vector value."""
    return vector_type(value).element_type


@dataclass
class Operand:
    """A tile to start from, and whether its transpose is the operand."""

    tile: SSAValue
    transposed: bool


@dataclass
class Raised:
    """What a K loop computes."""

    mma: TileMmaOp
    a: Operand
    b: Operand
    acc_index: int


def _match_loop(loop: scf.ForOp) -> Raised | None:
    """The single product of a loop that does nothing else; None without a product.

    Raises:
        _NotRaisedError: there is a product, but more than that happens.
    """
    body = loop.body.block
    products = [op for op in body.ops if isinstance(op, TileMmaOp)]
    if not products or not _has_micro_kernel(products[0]):
        return None
    mma, acc = products[0], products[0].c
    if len(products) > 1:
        raise _NotRaisedError(mma, "it holds several products")
    if not isinstance(acc, BlockArgument) or acc.block is not body or acc.index == 0:
        raise _NotRaisedError(mma, "what is added to is not carried by the loop")
    last = body.last_op
    assert last is not None
    carried = last.operands[acc.index - 1]
    if carried is not mma.result or not _used_once(acc) or not _used_once(mma.result):
        raise _NotRaisedError(mma, "the accumulator is used between the steps")
    k = _depth(mma)
    a = _stream(mma.a, loop, k, k_dim=1)
    b = _stream(mma.b, loop, k, k_dim=0)
    for name, operand in (("a", a), ("b", b)):
        if operand is None:
            text = (
                f"`{name}` is not simply loaded from a tile that moves by {k} along k"
            )
            raise _NotRaisedError(mma, text)
    if not _nothing_else(loop, acc.index - 1):
        raise _NotRaisedError(mma, "the loop computes or writes something else, too")
    assert a is not None
    assert b is not None
    return Raised(mma, a, b, acc.index - 1)


def _depth(mma: TileMmaOp) -> int:
    return vector_type(mma.a).get_shape()[1]


def _used_once(value: SSAValue) -> bool:
    return len(list(value.uses)) == 1


def _stream(value: SSAValue, loop: scf.ForOp, k: int, k_dim: int) -> Operand | None:
    """The tile an operand is loaded from, if it moves by k in each iteration."""
    transposed = False
    op = value.owner
    if isinstance(op, TileTransposeOp) and _used_once(value):
        transposed, value, k_dim = True, op.source, 1 - k_dim
        op = value.owner
    if not isinstance(op, LoadTileOp) or not loads_zero_padded(op):
        return None
    if op.parent is not loop.body.block or not _used_once(value):
        return None
    tile = op.tile
    if isinstance(tile, BlockArgument):
        start = _carried_start(tile, loop, k, k_dim)
    else:
        start = _rebuilt_start(tile, loop, k, k_dim)
    if start is None or not is_streamable(start):
        return None
    return Operand(start, transposed)


def _carried_start(
    tile: BlockArgument, loop: scf.ForOp, k: int, k_dim: int
) -> SSAValue | None:
    """A tile carried by the loop and moved by ``update_tile_offset``."""
    if tile.block is not loop.body.block or tile.index == 0:
        return None
    last = loop.body.block.last_op
    assert last is not None
    update = last.operands[tile.index - 1].owner
    if not isinstance(update, UpdateTileOffsetOp) or update.tile is not tile:
        return None
    steps = [constant_of(step) for step in update.mixed_offsets]
    if steps != ([k, 0] if k_dim == 0 else [0, k]):
        return None
    return loop.init_args[tile.index - 1]


def _rebuilt_start(
    tile: SSAValue, loop: scf.ForOp, k: int, k_dim: int
) -> SSAValue | None:
    """A tile made anew in each iteration at the loop's counter."""
    init = tile.owner
    counter = loop.body.block.args[0]
    if not isinstance(init, InitTileOp) or constant_of(loop.step) != k:
        return None
    offsets = list(init.mixed_offsets)
    if len(offsets) != 2 or offsets[k_dim] is not counter:
        return None
    others: list[SSAValue | int] = [init.source, offsets[1 - k_dim]]
    others += [*init.mixed_sizes, *init.mixed_strides]
    if not all(is_defined_outside(other, loop) for other in others):
        return None
    offsets[k_dim] = loop.lower_bound
    start = InitTileOp(
        init.source,
        offsets,
        init.result.type,
        sizes=init.mixed_sizes,
        strides=init.mixed_strides,
        location=init.location,
    )
    parent = loop.parent_block()
    assert parent is not None
    parent.insert_op_before(start, loop)
    return start.result


def _nothing_else(loop: scf.ForOp, acc_index: int) -> bool:
    """No other result of the loop is used, and nothing in it writes."""
    for index, result in enumerate(loop.results):
        if index != acc_index and any(True for _ in result.uses):
            return False
    allowed = (
        TileMmaOp,
        LoadTileOp,
        TileTransposeOp,
        InitTileOp,
        UpdateTileOffsetOp,
        PrefetchTileOp,
        scf.YieldOp,
    )
    return all(
        isinstance(op, allowed) or op.name.startswith("arith.")
        for op in loop.body.block.ops
    )


def _replace_loop(loop: scf.ForOp, raised: Raised) -> None:
    mma, parent = raised.mma, loop.parent_block()
    assert parent is not None
    count = _trip_count(loop)
    result = loop.results[raised.acc_index]
    demand = demanded_extent(result, loop)
    brgemm = BrgemmTileOp(
        raised.a.tile,
        raised.b.tile,
        loop.init_args[raised.acc_index],
        count[-1].results[0],
        mma.result.type,
        rows=demand.rows,
        cols=demand.cols,
        trans_a=raised.a.transposed,
        trans_b=raised.b.transposed,
        unsigned=_signs(mma),
    )
    brgemm.location = mma.location
    for op in (*count, *demand.ops, brgemm):
        op.location = mma.location
        parent.insert_op_before(op, loop)
    brgemm.result.name_hint = "brgemm"
    remark(brgemm, "brgemm", "the loop over k is one batch-reduce GEMM")
    result.replace_all_uses_with(brgemm.result)
    loop.detach()
    loop.erase()


def _trip_count(loop: scf.ForOp) -> list[Operation]:
    """max(0, ceil((upper - lower) / step)); the last operation holds it."""
    span = arith.SubiOp(loop.upper_bound, loop.lower_bound)
    steps = arith.CeildivsiOp(span.result, loop.step)
    zero = arith.ConstantOp.index(0)
    return [span, steps, zero, arith.MaxsiOp(steps.result, zero.result)]


def _replace_single(mma: TileMmaOp) -> None:
    """A product outside a K loop: one step, straight from memory where possible."""
    parent = mma.parent_block()
    assert parent is not None
    a, b = _single(mma.a, mma), _single(mma.b, mma)
    one = arith.ConstantOp.index(1)
    demand = demanded_extent(mma.result, mma)
    brgemm = BrgemmTileOp(
        a.tile,
        b.tile,
        mma.c,
        one.result,
        mma.result.type,
        rows=demand.rows,
        cols=demand.cols,
        trans_a=a.transposed,
        trans_b=b.transposed,
        unsigned=_signs(mma),
    )
    brgemm.result.name_hint = "brgemm"
    remark(mma, "brgemm", "a GEMM of its own in each program")
    for op in (one, *demand.ops, brgemm):
        op.location = mma.location
        parent.insert_op_before(op, mma)
    mma.result.replace_all_uses_with(brgemm.result)
    mma.detach()
    mma.erase()


def _single(value: SSAValue, mma: TileMmaOp) -> Operand:
    """The tile behind an operand if reading it late reads the same, else the value."""
    transposed, source = False, value
    if isinstance(source.owner, TileTransposeOp):
        transposed, source = True, source.owner.source
    load = source.owner
    if (
        isinstance(load, LoadTileOp)
        and load.parent is mma.parent
        and loads_zero_padded(load)
        and is_streamable(load.tile)
        and dominates(load.tile, mma)
        and not writes_between(load, mma)
    ):
        return Operand(load.tile, transposed)
    return Operand(value, transposed=False)
