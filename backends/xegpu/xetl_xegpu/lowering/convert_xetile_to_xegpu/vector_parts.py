"""Parts of vectors: taken out, put in, shuffled; also at places that are computed.

`vector.bitcast` reads the same bits as elements of another width, row by row: wide
elements are shifted apart, narrow ones together; the first one is lowest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import Index, ints_of, is_vector, known, vector_type
from xetl.dialects.upstream import arith, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl_xegpu.lowering.convert_xetile_to_xegpu.conversion import Converter, Rule
from xetl_xegpu.lowering.convert_xetile_to_xegpu.fragments import (
    BLOCKED,
    LANES,
    Fragments,
    matrix_shape,
    ravel,
    vector_of,
)
from xetl_xegpu.lowering.convert_xetile_to_xegpu.lines import (
    from_lines,
    lines_of,
    to_lines,
)
from xetl_xegpu.lowering.convert_xetile_to_xegpu.rearranging import (
    Find,
    Origin,
    built_of,
    element_at,
    give_built,
    rearranged,
    scalar_of,
)


def extract_at(c: Converter, op: vector.ExtractOp, source: Fragments) -> None:
    """One element: of all lines the right one, of which all learn one lane.

    Raises:
        IRError: more than an element is asked for.
    """
    if is_vector(op.result.type):
        raise c.refusal(op, "it takes a part at a place that is computed")
    number, lane = _place(c, source, op.position)
    lines = to_lines(c, source)
    found = lines[0]
    for turn, line in enumerate(lines[1:], 1):
        pair = number, c.index(turn)
        here = c.emit.insert(arith.CmpiOp("eq", *pair))
        found = c.emit.insert(arith.SelectOp(here, line, found))
    c.bind(op.result, c.emit.insert(vector.ExtractOp(found, [lane])))


def insert_at(c: Converter, op: vector.InsertOp, dest: Fragments) -> None:
    """One element: a select in the line and the lane where it goes.

    Raises:
        IRError: more than an element is given.
    """
    if is_vector(op.value.type):
        raise c.refusal(op, "it puts a part at a place that is computed")
    number, lane = _place(c, dest, op.position)
    new = c.spread(op.value, LANES)
    pair = c.lane_ids(), c.spread(lane, LANES)
    there = c.emit.insert(arith.CmpiOp("eq", *pair))
    lines: list[SSAValue] = []
    for turn, line in enumerate(to_lines(c, dest)):
        here = c.emit.insert(arith.CmpiOp("eq", number, c.index(turn)))
        chosen = c.emit.insert(arith.AndiOp(there, c.spread(here, LANES)))
        lines.append(c.emit.insert(arith.SelectOp(chosen, new, line)))
    element = vector_type(op.result).element_type
    c.set_fragments(op.result, from_lines(c, dest.grid, element, lines))


def _place(
    c: Converter, pieces: Fragments, position: Sequence[Index]
) -> tuple[SSAValue, SSAValue]:
    """The number of a line, and the lane."""
    row, column = _matrix_place(c, pieces.shape, position)
    if not pieces.grid.spread:
        return _divided(c, row)
    number, lane = _divided(c, column)
    first = c.emit.times(row, len(lines_of(pieces.grid)) // pieces.grid.rows)
    return c.index(c.emit.plus(first, number)), lane


def _divided(c: Converter, place: Index) -> tuple[SSAValue, SSAValue]:
    pair = c.index(place), LANES
    return c.emit.pure(arith.DivuiOp, *pair), c.emit.pure(arith.RemuiOp, *pair)


def _matrix_place(
    c: Converter, shape: Sequence[int], position: Sequence[Index]
) -> tuple[Index, Index]:
    """`fragments.position`, of numbers that are computed."""
    if len(shape) == BLOCKED:
        a, b, row, column = position
        row = c.emit.plus(c.emit.times(a, shape[2]), row)
        return row, c.emit.plus(c.emit.times(b, shape[3]), column)
    row: Index = 0
    for extent, place in zip(shape[:-1], position[:-1]):
        row = c.emit.plus(c.emit.times(row, extent), place)
    return row, position[-1] if position else 0


def _extract(c: Converter, op: vector.ExtractOp) -> None:
    source, at = c.fragments(op.source), [known(each) for each in op.position]
    if not all(isinstance(each, int) for each in at):
        _extract_somewhere(c, op, source, at)
        return
    place = [each for each in at if isinstance(each, int)]
    if not is_vector(op.result.type):
        c.bind(op.result, scalar_of(c, element_at(source, place)))
        return
    give_built(c, op.result, lambda index: element_at(source, [*place, *index]))


def _insert(c: Converter, op: vector.InsertOp) -> None:
    dest, at = c.fragments(op.dest), [known(each) for each in op.position]
    if not all(isinstance(each, int) for each in at):
        _insert_somewhere(c, op, dest, at)
        return
    place = [each for each in at if isinstance(each, int)]
    value = c.fragments(op.value) if is_vector(op.value.type) else op.value
    give_built(c, op.result, _with(dest, value, place))


def _places(
    shape: Sequence[int], at: Sequence[Index]
) -> Iterator[tuple[list[int], list[tuple[SSAValue, int]]]]:
    """All places that a position may mean, and what must be equal for each."""
    ranges = [
        [each] if isinstance(each, int) else range(n) for each, n in zip(at, shape)
    ]
    for place in product(*ranges):
        tests = [(v, n) for v, n in zip(at, place) if isinstance(v, SSAValue)]
        yield list(place), tests


def _holds(c: Converter, tests: Sequence[tuple[SSAValue, int]]) -> SSAValue:
    return c.emit.both(*[c.emit.compare("eq", *pair) for pair in tests])


def _extract_somewhere(
    c: Converter, op: vector.ExtractOp, source: Fragments, at: Sequence[Index]
) -> None:
    """A part at a place that is computed: one of all, by selects."""
    if not is_vector(op.result.type):
        extract_at(c, op, source)
        return
    found: list[SSAValue] = []
    shape = vector_type(op.result).get_shape()
    for place, tests in _places(source.shape, at):
        parts = built_of(c, shape, source.element, _from(source, place))
        if not found:
            found = parts
            continue
        here = _holds(c, tests)
        pairs = zip(parts, found)
        found = [c.emit.insert(arith.SelectOp(here, *pair)) for pair in pairs]
    c.set_fragments(op.result, found)


def _from(source: Fragments, place: Sequence[int]) -> Find:
    return lambda index: element_at(source, [*place, *index])


def _insert_somewhere(
    c: Converter, op: vector.InsertOp, dest: Fragments, at: Sequence[Index]
) -> None:
    """A part put at a place that is computed: at each place, if it is that one."""
    if not is_vector(op.value.type):
        insert_at(c, op, dest)
        return
    found = list(dest.parts)
    for place, tests in _places(dest.shape, at):
        before = Fragments(dest.shape, dest.element, found)
        find = _with(before, c.fragments(op.value), place)
        parts = built_of(c, dest.shape, dest.element, find)
        here = _holds(c, tests)
        found = [
            new if new is old else c.emit.insert(arith.SelectOp(here, new, old))
            for new, old in zip(parts, found)
        ]
    c.set_fragments(op.result, found)


def _with(dest: Fragments, value: Fragments | SSAValue, place: Sequence[int]) -> Find:
    """What is in ``dest``, but for ``value`` at a place."""
    count, wanted = len(place), list(place)

    def find(index: list[int]) -> Origin | SSAValue:
        if index[:count] != wanted:
            return element_at(dest, index)
        return (
            element_at(value, index[count:]) if isinstance(value, Fragments) else value
        )

    return find


def _extract_slice(c: Converter, op: vector.ExtractStridedSliceOp) -> None:
    source = c.fragments(op.source)
    missing = len(source.shape) - len(op.offsets)
    offsets, steps = [*op.offsets, *[0] * missing], [*op.strides, *[1] * missing]

    def find(index: list[int]) -> Origin:
        there = [
            first + step * place for first, step, place in zip(offsets, steps, index)
        ]
        return element_at(source, there)

    give_built(c, op.result, find)


def _insert_slice(c: Converter, op: vector.InsertStridedSliceOp) -> None:
    value, dest = c.fragments(op.value), c.fragments(op.dest)
    extra = len(dest.shape) - len(value.shape)
    offsets = list(op.offsets)

    def find(index: list[int]) -> Origin:
        if index[:extra] != offsets[:extra]:
            return element_at(dest, index)
        inner = [at - first for at, first in zip(index[extra:], offsets[extra:])]
        if not all(0 <= at < size for at, size in zip(inner, value.shape)):
            return element_at(dest, index)
        return element_at(value, inner)

    give_built(c, op.result, find)


def _shuffle(c: Converter, op: vector.ShuffleOp) -> None:
    left, right = c.fragments(op.v1), c.fragments(op.v2)
    picks = ints_of(op.mask)
    first = left.shape[0] if left.shape else 1

    def find(index: list[int]) -> Origin:
        at = max(picks[index[0]], 0)
        source, place = (left, at) if at < first else (right, at - first)
        return element_at(source, [place, *index[1:]] if source.shape else [])

    give_built(c, op.result, find)


def _interleave(c: Converter, op: vector.InterleaveOp) -> None:
    sides = c.fragments(op.lhs), c.fragments(op.rhs)

    def find(index: list[int]) -> Origin | SSAValue:
        number, side = divmod(index[-1], 2)
        return element_at(sides[side], [*index[:-1], number])

    give_built(c, op.result, find)


def _from_elements(c: Converter, op: vector.FromElementsOp) -> None:
    shape = vector_type(op.result).get_shape()

    give_built(c, op.result, lambda index: op.elements[ravel(shape, index)])


def _bitcast(c: Converter, op: vector.BitcastOp) -> None:
    source, type_ = c.fragments(op.source), vector_type(op.result)
    old, new = bit_width(source.element), bit_width(type_.element_type)
    bits = _as_type(c, source, IntegerType(old))
    rows, columns = matrix_shape(type_.get_shape())
    if old > new:
        bits = _apart(c, bits, rows, columns, new)
    elif old < new:
        bits = _together(c, bits, rows, columns, new)
    c.set_fragments(op.result, _as_type(c, bits, type_.element_type).parts)


def _as_type(c: Converter, value: Fragments, element: Attribute) -> Fragments:
    """The same bits as elements of another type of the same width."""
    if value.element == element:
        return value
    parts = [
        c.emit.insert(arith.BitcastOp(part, _like(part, element)))
        for part in value.parts
    ]
    return Fragments(value.shape, element, parts)


def _like(part: SSAValue, element: Attribute) -> Attribute:
    return vector_of(element, *vector_type(part).get_shape())


def _apart(
    c: Converter, value: Fragments, rows: int, columns: int, width: int
) -> Fragments:
    """Each element as several, by shifts of it."""
    element, count = IntegerType(width), bit_width(value.element) // width
    narrow: list[Fragments] = []
    for place in range(count):
        parts: list[SSAValue] = []
        for part in value.parts:
            by = c.emit.constant(place * width, part.type)
            shifted = c.emit.insert(arith.ShruiOp(part, by)) if place else part
            cut = arith.TrunciOp(shifted, _like(part, element))
            parts.append(c.emit.insert(cut))
        narrow.append(Fragments(value.shape, element, parts))

    def where(row: int, column: int) -> Origin:
        return Origin(narrow[column % count], row, column // count)

    parts = rearranged(c, rows, columns, element, where)
    return Fragments((rows, columns), element, parts)


def _together(
    c: Converter, value: Fragments, rows: int, columns: int, width: int
) -> Fragments:
    """Several elements as one, each shifted to its place."""
    old = bit_width(value.element)
    element, count = IntegerType(width), width // old
    found: list[SSAValue] = []
    for place in range(count):

        def where(row: int, column: int, place: int = place) -> Origin:
            return Origin(value, row, column * count + place)

        parts = rearranged(c, rows, columns, value.element, where)
        for number, part in enumerate(parts):
            wide = c.emit.insert(arith.ExtuiOp(part, _like(part, element)))
            if place == 0:
                found.append(wide)
                continue
            by = c.emit.constant(place * old, wide.type)
            shifted = c.emit.insert(arith.ShliOp(wide, by))
            found[number] = c.emit.insert(arith.OriOp(found[number], shifted))
    return Fragments((rows, columns), element, found)


RULES: dict[type[Operation], Rule] = {
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.ExtractStridedSliceOp: _extract_slice,
    vector.InsertStridedSliceOp: _insert_slice,
    vector.ShuffleOp: _shuffle,
    vector.InterleaveOp: _interleave,
    vector.FromElementsOp: _from_elements,
    vector.BitcastOp: _bitcast,
}
