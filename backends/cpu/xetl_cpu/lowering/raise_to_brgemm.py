"""raise-to-brgemm: a K loop of loads and a ``tile_mma`` becomes one batch-reduce GEMM.

Why: the blocking that makes a GEMM fast (registers, L1, L2, packed panels) has
nothing to do with the tile the user chose. ``xsmm.brgemm.tile`` says what is computed;
the passes after this one choose how.

Before::

    %r:3 = scf.for %k = %c0 to %K step %c32 iter_args(%acc = %z, %a = %a0, %b = %b0) {
      %d = xetile.tile_mma (xetile.load_tile %a), (xetile.load_tile %b), %acc
      scf.yield %d, (update_tile_offset %a, [0, 32]), (update_tile_offset %b, [32, 0])
    }

After: ``%r = xsmm.brgemm(%a0, %b0, %z, %count)``

A ``tile_mma`` outside of such a loop becomes a BRGEMM of one step, on the tiles that it
loads from or on values. A loop of several products, with one accumulator each or one
for all, becomes as many BRGEMMs; other operations of the loop stay in it.

Left alone: operands that are computed or may be written in the loop, accumulators that
are used between the steps, tiles whose offset may be negative, padding other than 0.

Loop-carried sums of products leave the loop if possible. With AMX, an accumulator that
was loaded is added after the product: ``%c = arith.addf (xsmm.brgemm ...), %z``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign

from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.affine import dominates, is_defined_outside, multiple_of
from xetl.analysis.control_flow import yielded
from xetl.dialects import xetile
from xetl.dialects.base import constant_index, operations_in, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, func, scf
from xetl.ir.builder import Builder, Pass
from xetl.records import record
from xetl.transforms.cse import merge_equal
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp, element_name
from xetl_cpu.lowering import tiles
from xetl_cpu.lowering.loops.state import element_of
from xetl_cpu.lowering.pruning import prune_loop
from xetl_cpu.microkernels.blocking import SKINNY_ROWS
from xetl_cpu.targets import Target, find_target


class NotRaisedError(Exception):
    """The reason why a product in a loop is not a BRGEMM over all of its iterations."""


@record()
class Accumulation:
    """A loop-carried value that each iteration adds products to, one after the other.

    Attributes:
        index: the index of the carried value.
        products: in the order in which they are added.
        operands: a and b of each product, as they are in the first iteration.
    """

    index: int
    products: Sequence[xetile.TileMmaOp]
    operands: Sequence[tuple[Operand, Operand]]


def chain_of(
    mma: xetile.TileMmaOp, loop: scf.ForOp
) -> tuple[int, list[xetile.TileMmaOp]]:
    """Return the index of the carried value that ``mma`` adds to, and all products.

    Raises:
        NotRaisedError: no value is carried, or it is used between the steps.
    """
    body = loop.body.block
    products = [mma]
    while (before := _product(products[0].c, loop)) is not None:
        products.insert(0, before)
    carried = products[0].c
    if not isinstance(carried, BlockArgument) or carried.block is not body:
        raise NotRaisedError("what it adds to is computed in each step")
    while (after := _reader(products[-1].result)) is not None:
        products.append(after)
    between = [carried, *(each.result for each in products)]
    is_yielded = yielded(body)[carried.index - 1] is products[-1].result
    if not is_yielded or not all(len(list(value.uses)) == 1 for value in between):
        raise NotRaisedError("the accumulator is used between the steps")
    return carried.index - 1, products


def accumulation_of(
    index: int, products: Sequence[xetile.TileMmaOp], loop: scf.ForOp
) -> Accumulation:
    """Return the sum of products in a carried value, if its operands are in memory.

    Raises:
        NotRaisedError: an operand is computed, or may be written in the loop.
    """
    operands = [(_operand(x, "a", loop), _operand(x, "b", loop)) for x in products]
    written = [tiles.written_root(op) for op in loop.walk() if tiles.may_write(op)]
    for one in [each for pair in operands for each in pair]:
        if any(tiles.may_alias(tiles.tile_root(one.tile), base) for base in written):
            raise NotRaisedError("the loop may write what it multiplies")
    return Accumulation(index, products, operands)


def _product(value: SSAValue | None, loop: scf.ForOp) -> xetile.TileMmaOp | None:
    """Return the product in the loop's body that computes a value, or None."""
    owner = None if value is None else value.owner
    if isinstance(owner, xetile.TileMmaOp) and owner.parent is loop.body.block:
        return owner
    return None


def _reader(value: SSAValue) -> xetile.TileMmaOp | None:
    """Return the only reader of a value, if it is a product that adds to the value."""
    reader = tiles.only_reader(value)
    return (
        reader if isinstance(reader, xetile.TileMmaOp) and reader.c is value else None
    )


def _operand(mma: xetile.TileMmaOp, name: str, loop: scf.ForOp) -> Operand:
    value, k_dim = (mma.a, 1) if name == "a" else (mma.b, 0)
    depth = vector_type(mma.a).get_shape()[1]
    found = stream_of(value, loop, depth, k_dim)
    if found is None:
        raise NotRaisedError(
            f"`{name}` is not simply loaded from a tile that moves by {depth} along k"
        )
    return found


@record()
class Operand:
    """A tile to start from (or a value), and whether the operand is its transpose."""

    tile: SSAValue
    transposed: bool


def stream_of(value: SSAValue, loop: scf.ForOp, k: int, k_dim: int) -> Operand | None:
    """Return the tile of an operand's first load, if it moves by ``k`` per iteration.

    ``k_dim``: the dimension of the operand that is summed over. Return None otherwise.
    """
    transposed = isinstance(value.owner, xetile.TileTransposeOp)
    if isinstance(value.owner, xetile.TileTransposeOp):
        value, k_dim = value.owner.source, 1 - k_dim
    load = value.owner
    if not isinstance(load, xetile.LoadTileOp) or not tiles.loads_zero_padded(load):
        return None
    if load.parent is not loop.body.block:
        return None
    tile = load.tile
    if isinstance(tile, BlockArgument):
        start = _carried_start(tile, loop, k, k_dim)
    else:
        start = _rebuilt_start(tile, loop, k, k_dim)
    if start is None or not tiles.is_streamable(start):
        return None
    return Operand(start, transposed)


def _carried_start(
    tile: BlockArgument, loop: scf.ForOp, k: int, k_dim: int
) -> SSAValue | None:
    """Return the initial tile, if the loop moves it by ``update_tile_offset``."""
    if tile.block is not loop.body.block or tile.index == 0:
        return None
    update = yielded(tile.block)[tile.index - 1].owner
    if not isinstance(update, xetile.UpdateTileOffsetOp) or update.tile is not tile:
        return None
    steps = [constant_index(step) for step in update.mixed_offsets]
    if steps != ([k, 0] if k_dim == 0 else [0, k]):
        return None
    return loop.init_args[tile.index - 1]


def _rebuilt_start(
    tile: SSAValue, loop: scf.ForOp, k: int, k_dim: int
) -> SSAValue | None:
    """Return the initial tile, if each iteration makes the tile at its counter."""
    init = tile.owner
    counter = loop.body.block.args[0]
    step = constant_index(loop.step)
    if not isinstance(init, xetile.InitTileOp) or not step or k % step:
        return None
    offsets = list(init.mixed_offsets)
    if len(offsets) != 2 or multiple_of(offsets[k_dim], k // step) is not counter:
        return None
    others: list[SSAValue | int] = [init.source, offsets[1 - k_dim]]
    others += [*init.mixed_sizes, *init.mixed_strides]
    if not all(is_defined_outside(other, loop) for other in others):
        return None
    build = Builder.before(loop)
    offsets[k_dim] = build.times(loop.lower_bound, k // step)
    return build.insert(tiles.tile_like(init, offsets=offsets))


@dataclass(frozen=True)
class RaiseToBrgemmPass(Pass):
    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        # Store offsets that are recomputed behind the loop are then known before it.
        for function in operations_in(op, func.FuncOp):
            merge_equal(function.body.block)
        loops = operations_in(op, scf.ForOp)
        # Inner loops first: a loop that is removed takes its inner loops with it.
        for loop in reversed(loops):
            _raise_loop(loop)
        target = find_target(self.target)
        for mma in operations_in(op, xetile.TileMmaOp):
            _replace_single(mma, target)
        for product in operations_in(op, BrgemmTileOp):
            if tiles.on_tiles(product, target) and _is_loaded(product.acc):
                _add_behind(product)


def _is_loaded(acc: SSAValue | None) -> bool:
    """Whether a value is loaded from memory, perhaps cast."""
    owner = None if acc is None else acc.owner
    if isinstance(owner, arith.ExtfOp):
        owner = owner.operands[0].owner
    return isinstance(owner, xetile.LoadTileOp)


def _add_behind(product: BrgemmTileOp) -> None:
    """Add the accumulator after the product: sums on tiles then start at zero."""
    acc, alone = product.acc, product.changed(acc=None)
    assert acc is not None
    is_float = isinstance(element_of(acc), AnyFloat)
    Builder.before(product).add(alone)
    kind = arith.AddfOp if is_float else arith.AddiOp
    Rewriter.replace_op(product, kind(alone.result, acc, location=product.location))


def _raise_loop(loop: scf.ForOp) -> None:
    """Take sums of products over all iterations out of a loop."""
    found: dict[int, Accumulation] = {}
    for mma in [o for o in loop.body.block.ops if isinstance(o, xetile.TileMmaOp)]:
        if mma.c is None:
            continue
        try:
            index, products = chain_of(mma, loop)
            if index not in found:
                found[index] = accumulation_of(index, products, loop)
        except NotRaisedError as reason:
            remark(mma, "brgemm", f"the loop around it stays: {reason}")
    for accumulation in found.values():
        _take_out(loop, accumulation)
    if found:
        prune_loop(loop)


def _take_out(loop: scf.ForOp, accumulation: Accumulation) -> None:
    """Put the products of all iterations before the loop, and use their results."""
    result = loop.results[accumulation.index]
    total = loop.init_args[accumulation.index]
    build = Builder.before(loop)
    build.location = accumulation.products[0].location
    count, demand = _trip_count(loop, build), tiles.demanded_extent(result, loop, build)
    for mma, operands in zip(accumulation.products, accumulation.operands):
        brgemm = build.add(_brgemm(mma, operands, total, count, demand))
        remark(brgemm, "brgemm", "the loop over k is one batch-reduce GEMM")
        total = brgemm.result
    result.replace_all_uses_with(total)


def _brgemm(
    mma: xetile.TileMmaOp,
    operands: tuple[Operand, Operand],
    acc: SSAValue | None,
    count: SSAValue,
    demand: tiles.Demand,
) -> BrgemmTileOp:
    """Return ``acc`` plus ``count`` products like ``mma``."""
    a, b = operands
    brgemm = BrgemmTileOp(
        a.tile,
        b.tile,
        None if acc is None or _is_zero(acc) else acc,
        count,
        mma.result.type,
        rows=demand.rows,
        cols=demand.cols,
        trans_a=a.transposed,
        trans_b=b.transposed,
        a_unsigned=mma.a_unsigned,
        b_unsigned=mma.b_unsigned,
        location=mma.location,
    )
    brgemm.result.name_hint = "brgemm"
    return brgemm


def _is_zero(value: SSAValue) -> bool:
    """True for a constant of zeros: then no accumulator is needed."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return False
    number = splat_value(owner.value)
    # -0.0 equals 0, but as an accumulator it is the result of a sum of no products.
    return number == 0 and copysign(1, number) > 0


def _trip_count(loop: scf.ForOp, build: Builder) -> SSAValue:
    """Return max(0, ceil((upper - lower) / step))."""
    span = _known_span(loop)
    if span is None:
        span = build.pure(arith.SubiOp, loop.upper_bound, loop.lower_bound)
    steps = build.pure(arith.CeildivsiOp, span, loop.step)
    return build.pure(arith.MaxsiOp, steps, 0)


def _known_span(loop: scf.ForOp) -> SSAValue | None:
    """Return what the upper bound adds to the lower one, if it is such a sum."""
    end, start = loop.upper_bound.owner, loop.lower_bound
    if isinstance(end, arith.AddiOp) and start in end.operands:
        return end.rhs if end.lhs is start else end.lhs
    return None


def _replace_single(mma: xetile.TileMmaOp, target: Target) -> None:
    """Replace a product outside a K loop by one step, on memory where possible."""
    a, build = _single(mma.a, mma), Builder.before(mma)
    operands = a, _narrow(mma, a, target) or _single(mma.b, mma)
    one, demand = build.index(1), tiles.demanded_extent(mma.result, mma, build)
    brgemm = _brgemm(mma, operands, mma.c, one, demand)
    remark(mma, "brgemm", _what_a_single_is(mma, operands))
    Rewriter.replace_op(mma, brgemm)


def _what_a_single_is(mma: xetile.TileMmaOp, operands: tuple[Operand, Operand]) -> str:
    """Describe where the product is computed, and which operands are computed first."""
    loop = mma.parent_op()
    while isinstance(loop, scf.IfOp):
        loop = loop.parent_op()
    is_step = isinstance(loop, scf.ForOp | scf.WhileOp)
    text = f"a GEMM of its own in each {'step of the loop' if is_step else 'program'}"
    values = [
        f"`{name}`"
        for name, operand in zip("ab", operands)
        if not isinstance(operand.tile.type, xetile.TileType)
    ]
    if values:
        text += f", on {' and '.join(values)} in scratch"
    if isinstance(loop, scf.WhileOp):
        text += "; a loop that is `while` or has `break` or `return` is not raised"
    return text


def _narrow(mma: xetile.TileMmaOp, a: Operand, target: Target) -> Operand | None:
    """Return B before its cast, if panels widen it as the program does, or None."""
    cast, rows = mma.b.owner, vector_type(mma.a).get_shape()[0]
    is_loaded = isinstance(a.tile.type, xetile.TileType)
    if is_loaded or not isinstance(cast, arith.ExtfOp) or rows <= SKINNY_ROWS:
        return None
    widens = target.widens(element_name(cast.source))
    found = _single(cast.source, mma)
    fits = widens and isinstance(found.tile.type, xetile.TileType)
    return found if fits and element_name(mma.b) == "f32" else None


def _single(value: SSAValue, mma: xetile.TileMmaOp) -> Operand:
    """Return the tile of an operand if a later load reads the same; else the value."""
    transposed, source = False, value
    if isinstance(source.owner, xetile.TileTransposeOp):
        transposed, source = True, source.owner.source
    load = source.owner
    if (
        isinstance(load, xetile.LoadTileOp)
        and load.parent is mma.parent
        and tiles.loads_zero_padded(load)
        and tiles.is_streamable(load.tile)
        and dominates(load.tile, mma)
        and not tiles.writes_between(load, mma)
    ):
        return Operand(load.tile, transposed)
    return Operand(value, transposed=False)
