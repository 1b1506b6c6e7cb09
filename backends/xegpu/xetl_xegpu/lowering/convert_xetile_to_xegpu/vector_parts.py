"""Extracts, inserts, slices and shuffles of vectors; positions may be computed.

`vector.bitcast` reads the bits of a row as elements of another width. Shifts split wide
elements and join narrow ones; the first narrow element has the lowest bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import Index, ints_of, is_vector, known, vector_type
from xetl.dialects.upstream import arith, vector
from xetl.dialects.upstream.elementwise import bit_width

from .conversion import Converter, Rule
from .fragments import BLOCKED, LANES, Fragments, vector_of
from .lines import from_lines, lines_of, to_lines
from .rearranging import elements_of, give, rearranged, scalar_of


def _extract_at(c: Converter, op: vector.ExtractOp, source: Fragments) -> None:
    """Extract one element: select its line, and broadcast its lane to all lanes."""
    number, lane = _place(c, source, op.position)
    lines = to_lines(c, source)
    found = lines[0]
    for turn, line in enumerate(lines[1:], 1):
        here = c.emit.insert(arith.CmpiOp("eq", number, c.index(turn)))
        found = c.emit.insert(arith.SelectOp(here, line, found))
    c.bind(op.result, c.emit.insert(vector.ExtractOp(found, [lane])))


def _insert_at(c: Converter, op: vector.InsertOp, dest: Fragments) -> None:
    """Insert one element by a select in its line and lane."""
    number, lane = _place(c, dest, op.position)
    new = c.spread(op.value, LANES)
    in_lane = c.emit.insert(arith.CmpiOp("eq", c.lane_ids(), c.spread(lane, LANES)))
    lines: list[SSAValue] = []
    for turn, line in enumerate(to_lines(c, dest)):
        in_line = c.emit.insert(arith.CmpiOp("eq", number, c.index(turn)))
        chosen = c.emit.insert(arith.AndiOp(in_lane, c.spread(in_line, LANES)))
        lines.append(c.emit.insert(arith.SelectOp(chosen, new, line)))
    element = vector_type(op.result).element_type
    c.set_fragments(op.result, from_lines(c, dest.grid, element, lines))


def _place(
    c: Converter, pieces: Fragments, position: Sequence[Index]
) -> tuple[SSAValue, SSAValue]:
    """Return the line and the lane that hold an element."""
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
    """Return row and column of an element in `fragments.as_matrix`."""
    if len(shape) == BLOCKED:
        a, b, row, column = position
        row = c.emit.plus(c.emit.times(a, shape[2]), row)
        return row, c.emit.plus(c.emit.times(b, shape[3]), column)
    row: Index = 0
    for extent, place in zip(shape[:-1], position[:-1]):
        row = c.emit.plus(c.emit.times(row, extent), place)
    return row, position[-1] if position else 0


def _places(
    shape: Sequence[int], position: Sequence[Index]
) -> list[tuple[tuple[int, ...], list[tuple[SSAValue, int]]]]:
    """Return all places that a position can mean, each with its condition.

    Returns:
        Pairs of a place, and the pairs of an index and a number that must be equal if
        the position is that place.
    """
    at = [known(each) for each in position]
    ranges = [
        [each] if isinstance(each, int) else range(n) for each, n in zip(at, shape)
    ]
    return [
        (place, [(v, n) for v, n in zip(at, place) if isinstance(v, SSAValue)])
        for place in product(*ranges)
    ]


def _chosen(
    c: Converter,
    tests: Sequence[tuple[SSAValue, int]],
    parts: Sequence[SSAValue],
    others: Sequence[SSAValue],
) -> Sequence[SSAValue]:
    """Return ``parts`` if the pairs of ``tests`` are equal, else ``others``."""
    if not tests:
        return parts
    here = c.emit.both(*[c.emit.compare("eq", *pair) for pair in tests])
    return [
        one if one is other else c.emit.insert(arith.SelectOp(here, one, other))
        for one, other in zip(parts, others)
    ]


def _extract(c: Converter, op: vector.ExtractOp) -> None:
    """Extract a part; select it among all parts if its position is computed."""
    source = c.fragments(op.source)
    places, elements = _places(source.shape, op.position), elements_of(source)
    if is_vector(op.result.type):
        found: Sequence[SSAValue] = []
        for place, tests in places:
            parts = rearranged(c, source.element, elements[place]).parts
            found = _chosen(c, tests, parts, found) if found else parts
        c.set_fragments(op.result, found)
    elif places[0][1]:
        _extract_at(c, op, source)
    else:
        c.bind(op.result, scalar_of(c, elements[places[0][0]]))


def _insert(c: Converter, op: vector.InsertOp) -> None:
    """Insert a part; if its position is computed, by a select at each place."""
    dest = c.fragments(op.dest)
    places, is_part = _places(dest.shape, op.position), is_vector(op.value.type)
    if places[0][1] and not is_part:
        _insert_at(c, op, dest)
        return
    for place, tests in places:
        elements = elements_of(dest)
        elements[place] = elements_of(c.fragments(op.value)) if is_part else op.value
        parts = rearranged(c, dest.element, elements).parts
        parts = _chosen(c, tests, parts, dest.parts)
        dest = Fragments(dest.shape, dest.element, parts)
    c.set_fragments(op.result, dest.parts)


def _extract_slice(c: Converter, op: vector.ExtractStridedSliceOp) -> None:
    cuts = zip(op.offsets, op.sizes, op.strides)
    where = tuple(slice(at, at + size * step, step) for at, size, step in cuts)
    give(c, op.result, elements_of(c.fragments(op.source))[where])


def _insert_slice(c: Converter, op: vector.InsertStridedSliceOp) -> None:
    value, found = (elements_of(c.fragments(each)) for each in op.operands)
    sizes = (*[1] * (found.ndim - value.ndim), *value.shape)
    found[tuple(slice(at, at + n) for at, n in zip(op.offsets, sizes))] = value
    give(c, op.result, found)


def _shuffle(c: Converter, op: vector.ShuffleOp) -> None:
    sides = [np.atleast_1d(elements_of(c.fragments(each))) for each in op.operands]
    give(c, op.result, np.concatenate(sides)[np.maximum(ints_of(op.mask), 0)])


def _interleave(c: Converter, op: vector.InterleaveOp) -> None:
    sides = [elements_of(c.fragments(each)) for each in op.operands]
    give(c, op.result, np.stack(sides, -1).reshape(vector_type(op.result).get_shape()))


def _from_elements(c: Converter, op: vector.FromElementsOp) -> None:
    shape = vector_type(op.result).get_shape()
    give(c, op.result, np.array(op.elements, object).reshape(shape))


def _bitcast(c: Converter, op: vector.BitcastOp) -> None:
    source, type_ = c.fragments(op.source), vector_type(op.result)
    old, new = bit_width(source.element), bit_width(type_.element_type)
    bits = _as_type(c, source, IntegerType(old))
    if old > new:
        bits = _apart(c, bits, new)
    elif old < new:
        bits = _together(c, bits, new)
    c.set_fragments(op.result, _as_type(c, bits, type_.element_type).parts)


def _as_type(c: Converter, value: Fragments, element: Attribute) -> Fragments:
    """Bitcast to elements of another type of the same width."""
    if value.element == element:
        return value

    def cast(part: SSAValue) -> SSAValue:
        return c.emit.insert(arith.BitcastOp(part, _like(part, element)))

    return value.mapped(element, cast)


def _like(part: SSAValue, element: Attribute) -> Attribute:
    return vector_of(element, *vector_type(part).get_shape())


def _apart(c: Converter, value: Fragments, width: int) -> Fragments:
    """Bitcast each element to several narrower ones, by shifts."""
    element, count = IntegerType(width), bit_width(value.element) // width

    def cut(place: int, part: SSAValue) -> SSAValue:
        by = c.emit.constant(place * width, part.type)
        shifted = c.emit.insert(arith.ShruiOp(part, by)) if place else part
        return c.emit.insert(arith.TrunciOp(shifted, _like(part, element)))

    narrow = [value.mapped(element, partial(cut, place)) for place in range(count)]
    elements = np.stack([elements_of(each) for each in narrow], -1)
    shape = (*value.shape[:-1], value.shape[-1] * count)
    return rearranged(c, element, elements.reshape(shape))


def _together(c: Converter, value: Fragments, width: int) -> Fragments:
    """Bitcast several elements to a wider one, each shifted to its place."""
    old = bit_width(value.element)
    element, count = IntegerType(width), width // old
    found: list[SSAValue] = []
    for place in range(count):
        part_of = elements_of(value)[..., place::count]
        for number, part in enumerate(rearranged(c, value.element, part_of).parts):
            wide = c.emit.insert(arith.ExtuiOp(part, _like(part, element)))
            if place == 0:
                found.append(wide)
                continue
            by = c.emit.constant(place * old, wide.type)
            shifted = c.emit.insert(arith.ShliOp(wide, by))
            found[number] = c.emit.insert(arith.OriOp(found[number], shifted))
    shape = (*value.shape[:-1], value.shape[-1] // count)
    return Fragments(shape, element, found)


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
