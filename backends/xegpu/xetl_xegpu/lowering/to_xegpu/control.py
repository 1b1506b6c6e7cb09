"""Loops and conditionals: what they carry becomes as many values as stand for it.

A vector is its fragments; a tile is a row and a column as long as it stays on one
matrix, else all of address, sizes and strides as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from xetl.analysis.ranges import Range
from xetl.dialects.base import Index, ints_of, memref_type
from xetl.dialects.kinds_of_types import is_memref, is_vector
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import arith, scf
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.ir.conversion import (
    Carried,
    bind,
    convert_for,
    convert_if,
    convert_while,
    flatten,
    types_of,
)
from xetl_xegpu.lowering.to_xegpu.conversion import Converter, Rule, is_replaced
from xetl_xegpu.lowering.to_xegpu.fragments import (
    Found,
    Matrix,
    Pieces,
    Scattered,
    Start,
    Tile,
    View,
    fragment_types,
    vector_of,
)
from xetl_xegpu.lowering.to_xegpu.plan import stays, tile_origins
from xetl_xegpu.lowering.to_xegpu.tiles import described
from xetl_xegpu.lowering.to_xegpu.views import SHARED, address, stored_bytes

_INDEX = IndexType()


def _carried(
    c: Converter,
    types: Sequence[Attribute],
    flatten: Callable[[SSAValue], Sequence[SSAValue]],
    made: Callable[[Sequence[SSAValue]], Found],
) -> Carried:
    """A value that several stand for; ``made`` says what they are together."""
    return Carried(types, flatten, lambda old, parts: c.give(old, made(parts)))


def carried(c: Converter, value: SSAValue, op: Operation) -> Carried:
    """How a value of control flow is carried.

    Args:
        c: the conversion.
        value: a block argument or a result, of which nothing is known yet.
        op: the loop or conditional.
    """
    type_ = value.type
    if isinstance(op, scf.ForOp) and value is op.body.block.args[0]:
        return Carried([type_], lambda new: [new], partial(_bind_counter, c, op))
    if not is_replaced(value):
        return Carried([type_], lambda new: [new], lambda old, new: c.bind(old, new[0]))
    if is_vector(type_):
        shape, element = type_.get_shape(), type_.element_type
        return _carried(
            c,
            fragment_types(type_),
            lambda new: list(c.pieces(new).parts),
            lambda parts: Pieces(shape, element, list(parts)),
        )
    if is_memref(type_):
        return _memref(c, value, op)
    assert isinstance(type_, TileType)
    if type_.scattered:
        return _scattered(c, value, op)
    matrix = _only_matrix(c, value)
    if matrix is None:
        return _any_tile(c, value, op)
    return _moving_tile(c, value, matrix)


def _bind_counter(
    c: Converter, op: scf.ForOp, old: SSAValue, new: Sequence[SSAValue]
) -> None:
    """A counter goes from the first number to the last one."""
    low, high = c.ranges.of(op.lower_bound), c.ranges.of(op.upper_bound)
    if low is not None and high is not None and isinstance(old.type, IndexType):
        c.ranges.say(new[0], Range(low.low, max(high.high - 1, low.low)))
    c.bind(old, new[0])


# Tiles ------------------------------------------------------------------------------


def _only_matrix(c: Converter, value: SSAValue) -> Matrix | None:
    """The matrix of a tile, if there is but one and it is known here."""
    origins = list(tile_origins(value))
    if not origins or any(_key(each) != _key(origins[0]) for each in origins[1:]):
        return None
    if not _is_known(c, origins[0]):
        return None
    found = described(c, origins[0])
    return found.matrix if isinstance(found, Tile) else None


def _key(op: InitTileOp) -> tuple[object, ...]:
    """What tiles of one matrix have in common: all but the last two offsets."""
    return (op.source, *op.mixed_offsets[:-2], op.mixed_sizes, op.mixed_strides)


def _is_known(c: Converter, op: InitTileOp) -> bool:
    """Whether what a tile is described with can be seen from here."""
    if is_memref(op.source.type):
        if not c.has(op.source):
            return False
        view = c.view(op.source)
        parts: list[Index] = [view.start.root, view.start.offset]
        parts += [*view.sizes, *view.strides]
    else:
        parts = [op.source]
    parts += [*op.mixed_offsets[:-2], *op.mixed_sizes, *op.mixed_strides]
    return all(isinstance(each, int) or c.emit.is_outside(each) for each in parts)


def _moving_tile(c: Converter, value: SSAValue, matrix: Matrix) -> Carried:
    """A tile of a known matrix: of row and column those that change."""
    first = _first(value)
    fixed: dict[int, Index] = {}
    if first is not None and c.has(first):
        start = c.tile(first)
        for dim, at in enumerate((start.row, start.column)):
            if isinstance(value, BlockArgument) and stays(value, dim):
                fixed[dim] = at
    moving = [dim for dim in (0, 1) if dim not in fixed]

    def flat(found: SSAValue) -> list[SSAValue]:
        tile = c.tile(found)
        return [c.index((tile.row, tile.column)[dim]) for dim in moving]

    def whole(parts: Sequence[SSAValue]) -> Tile:
        at: dict[int, Index] = {**fixed, **dict(zip(moving, parts))}
        return Tile(matrix, at[0], at[1])

    return _carried(c, [_INDEX] * len(moving), flat, whole)


def _first(value: SSAValue) -> SSAValue | None:
    """What a loop carries at first in one of its arguments."""
    if not isinstance(value, BlockArgument):
        return None
    loop = value.block.parent_op()
    return loop.init_args[value.index - 1] if isinstance(loop, scf.ForOp) else None


def _any_tile(c: Converter, value: SSAValue, op: Operation) -> Carried:
    """A tile of one matrix or another: all of what describes it."""
    type_ = value.type
    assert isinstance(type_, TileType)
    element = type_.element_type
    root = _shared_root(c, value, op) if type_.memory_space == SHARED else None

    def flat(found: SSAValue) -> list[SSAValue]:
        tile = c.tile(found)
        matrix = tile.matrix
        some = (*matrix.sizes, *matrix.strides, tile.row, tile.column)
        return [_base(c, matrix.start, element, root), *map(c.index, some)]

    def whole(parts: Sequence[SSAValue]) -> Tile:
        base, rows, columns, down, right, row, column = parts
        start = _start(base, root)
        return Tile(Matrix(start, element, (rows, columns), (down, right)), row, column)

    return _carried(c, [i64 if root is None else _INDEX, *[_INDEX] * 6], flat, whole)


def _shared_root(c: Converter, value: SSAValue, op: Operation) -> SSAValue:
    """The shared memory that a tile lies in: there must be but one."""
    roots = {
        c.view(each.source).start.root if c.has(each.source) else None
        for each in tile_origins(value)
    }
    (root,) = roots if len(roots) == 1 else (None,)
    if root is None:
        raise c.refusal(op, "it carries tiles of several shared memories")
    return root


def _base(
    c: Converter, start: Start, element: Attribute, root: SSAValue | None
) -> SSAValue:
    if root is None:
        return address(c, start, stored_bytes(element))
    return c.index(start.offset)


def _start(base: SSAValue, root: SSAValue | None) -> Start:
    return Start(base) if root is None else Start(root, base, SHARED)


def _scattered(c: Converter, value: SSAValue, op: Operation) -> Carried:
    """A scattered tile: its indices, and the base if there may be several."""
    type_ = value.type
    assert isinstance(type_, TileType)
    shape, element = type_.shape, type_.element_type
    indices = fragment_types(vector_of(_INDEX, *shape))
    origins = list(tile_origins(value))
    root = _shared_root(c, value, op) if type_.memory_space == SHARED else None
    bounded = all(each.mixed_sizes or _rank(each) for each in origins)

    def flat(found: SSAValue) -> list[SSAValue]:
        tile = c.scattered(found)
        base = _base(c, tile.start, element, root)
        size = tile.size if bounded and tile.size is not None else 0
        return [base, c.index(size), c.index(tile.stride), *tile.indices.parts]

    def whole(parts: Sequence[SSAValue]) -> Scattered:
        base, size, stride, *rest = parts
        found = Pieces(shape, _INDEX, rest)
        start = _start(base, root)
        return Scattered(start, element, size if bounded else None, stride, found)

    head = [i64 if root is None else _INDEX, _INDEX, _INDEX]
    return _carried(c, [*head, *indices], flat, whole)


def _rank(op: InitTileOp) -> int:
    type_ = op.source.type
    return len(type_.get_shape()) if is_memref(type_) else 0


def _memref(c: Converter, value: SSAValue, op: Operation) -> Carried:
    """A memref: address, sizes and strides."""
    type_ = memref_type(value)
    if memory_space_of(type_) == SHARED:
        raise c.refusal(op, "it carries a view of shared memory")
    rank, element = len(type_.get_shape()), type_.element_type

    def flat(found: SSAValue) -> list[SSAValue]:
        view = c.view(found)
        base = _base(c, view.start, element, None)
        return [base, *map(c.index, (*view.sizes, *view.strides))]

    def whole(parts: Sequence[SSAValue]) -> View:
        start, sizes = Start(parts[0]), tuple(parts[1 : 1 + rank])
        return View(start, element, sizes, tuple(parts[1 + rank :]), start)

    return _carried(c, [i64, *[_INDEX] * (2 * rank)], flat, whole)


# Operations -------------------------------------------------------------------------


def _execute(c: Converter, op: scf.ExecuteRegionOp) -> None:
    """A region that runs once: its operations, here."""
    block = op.regions[0].block
    c.convert(block)
    for result, value in zip(op.results, _last(block).operands):
        if is_replaced(result):
            c.give(result, c.found(value))
        else:
            c.bind(result, value)


def _index_switch(c: Converter, op: scf.IndexSwitchOp) -> None:
    """One conditional in the other, the first case outermost."""
    carriers = [carried(c, each, op) for each in op.results]
    default, *cases = [region.block for region in op.regions]
    numbers = ints_of(op.cases)

    def choose(turn: int) -> list[SSAValue]:
        if turn == len(cases):
            c.convert(default)
            return flatten(carriers, _last(default).operands)
        pair = op.arg, c.index(numbers[turn])
        test = c.emit.value(arith.CmpiOp("eq", *pair))
        yes, no = Block(), Block()
        with c.inside(yes):
            c.convert(cases[turn])
            c.emit.add(scf.YieldOp(*flatten(carriers, _last(cases[turn]).operands)))
        with c.inside(no):
            c.emit.add(scf.YieldOp(*choose(turn + 1)))
        c.at(op)
        made = scf.IfOp(test, types_of(carriers), Region(yes), Region(no))
        return list(c.emit.add(made).results)

    bind(carriers, op.results, choose(0))


def _parallel(c: Converter, op: scf.ParallelOp) -> None:
    """Trips in any order: one loop in the other, reductions as carried values."""
    carriers = [carried(c, each, op) for each in op.results]
    end = _last(op.body.block)
    assert isinstance(end, scf.ReduceOp)

    def give(before: Sequence[SSAValue]) -> list[SSAValue]:
        c.convert(op.body.block)
        found: list[SSAValue] = []
        rest = list(before)
        for each, value, region in zip(carriers, end.arguments, end.reductions):
            some, rest = rest[: len(each.types)], rest[len(each.types) :]
            left, right = region.block.args
            each.bind(left, some)
            each.bind(right, each.flatten(value))
            c.convert(region.block)
            found += each.flatten(_last(region.block).operands[0])
        return found

    bounds = list(zip(op.lower_bounds, op.upper_bounds, op.steps))
    inits = flatten(carriers, op.init_vals)
    found = _nest(c, op, op.body.block.args, bounds, inits, give)
    bind(carriers, op.results, found)


def _forall(c: Converter, op: scf.ForallOp) -> None:
    block = op.region.block

    def give(before: Sequence[SSAValue]) -> list[SSAValue]:
        c.convert(block)
        return []

    _nest(c, op, block.args, list(zip(*op.mixed_bounds)), [], give)


def _nest(
    c: Converter,
    op: Operation,
    counters: Sequence[SSAValue],
    bounds: Sequence[Sequence[Index]],
    inits: Sequence[SSAValue],
    give: Callable[[Sequence[SSAValue]], list[SSAValue]],
) -> list[SSAValue]:
    """Loops in one another; ``give`` makes the inside and its new carried values."""
    if not bounds:
        return give(inits)
    body = Block(arg_types=[_INDEX, *[each.type for each in inits]])
    lower, upper, step = (c.index(each) for each in bounds[0])
    with c.inside(body):
        c.bind(counters[0], body.args[0])
        values = _nest(c, op, counters[1:], bounds[1:], body.args[1:], give)
        c.emit.add(scf.YieldOp(*values))
    c.at(op)
    loop = scf.ForOp(lower, upper, step, inits, Region(body))
    return list(c.emit.add(loop).results)


def _end(c: Converter, op: Operation) -> None:
    """The values it gives are read by who replaces the operation around it."""


def _last(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op


RULES: dict[type[Operation], Rule] = {
    scf.ForOp: convert_for,
    scf.WhileOp: convert_while,
    scf.IfOp: convert_if,
    scf.IndexSwitchOp: _index_switch,
    scf.ParallelOp: _parallel,
    scf.ForallOp: _forall,
    scf.ExecuteRegionOp: _execute,
    scf.YieldOp: _end,
    scf.ConditionOp: _end,
    scf.ReduceOp: _end,
    scf.ReduceReturnOp: _end,
    scf.ForallInParallelOp: _end,
}
