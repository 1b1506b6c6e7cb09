"""Parts of vectors: taken out, put in, shuffled; also at places that are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, ints_of, vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith, vector
from xetl_xegpu.lowering.to_xegpu.dynamic import extract_at, insert_at
from xetl_xegpu.lowering.to_xegpu.emitter import known
from xetl_xegpu.lowering.to_xegpu.moves import (
    Find,
    Origin,
    built_of,
    element_at,
    give_built,
    scalar_of,
)
from xetl_xegpu.lowering.to_xegpu.values import Pieces
from xetl_xegpu.lowering.to_xegpu.walker import Converter, Rule


def _extract(c: Converter, op: vector.ExtractOp) -> None:
    source, at = c.pieces(op.source), [known(each) for each in op.position]
    if not all(isinstance(each, int) for each in at):
        _extract_somewhere(c, op, source, at)
        return
    place = [each for each in at if isinstance(each, int)]
    if not is_vector(op.result.type):
        c.bind(op.result, scalar_of(c, element_at(source, place)))
        return
    give_built(c, op.result, lambda index: element_at(source, [*place, *index]))


def _insert(c: Converter, op: vector.InsertOp) -> None:
    dest, at = c.pieces(op.dest), [known(each) for each in op.position]
    if not all(isinstance(each, int) for each in at):
        _insert_somewhere(c, op, dest, at)
        return
    place = [each for each in at if isinstance(each, int)]
    value = c.pieces(op.value) if is_vector(op.value.type) else op.value
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
    found = c.emit.both(
        *[
            c.emit.once("eq", pair, lambda: arith.CmpiOp("eq", *pair))  # noqa: B023 (called at once)
            for pair in [(value, c.index(number)) for value, number in tests]
        ]
    )
    assert found is not None
    return found


def _extract_somewhere(
    c: Converter, op: vector.ExtractOp, source: Pieces, at: Sequence[Index]
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
        found = [c.emit.value(arith.SelectOp(here, *pair)) for pair in pairs]
    c.give_parts(op.result, found)


def _from(source: Pieces, place: Sequence[int]) -> Find:
    return lambda index: element_at(source, [*place, *index])


def _insert_somewhere(
    c: Converter, op: vector.InsertOp, dest: Pieces, at: Sequence[Index]
) -> None:
    """A part put at a place that is computed: at each place, if it is that one."""
    if not is_vector(op.value.type):
        insert_at(c, op, dest)
        return
    found = list(dest.parts)
    for place, tests in _places(dest.shape, at):
        before = Pieces(dest.shape, dest.element, found)
        find = _with(before, c.pieces(op.value), place)
        parts = built_of(c, dest.shape, dest.element, find)
        here = _holds(c, tests)
        found = [
            new if new is old else c.emit.value(arith.SelectOp(here, new, old))
            for new, old in zip(parts, found)
        ]
    c.give_parts(op.result, found)


def _with(dest: Pieces, value: Pieces | SSAValue, place: Sequence[int]) -> Find:
    """What is in ``dest``, but for ``value`` at a place."""
    count, wanted = len(place), list(place)

    def find(index: list[int]) -> Origin | SSAValue:
        if index[:count] != wanted:
            return element_at(dest, index)
        return element_at(value, index[count:]) if isinstance(value, Pieces) else value

    return find


def _extract_slice(c: Converter, op: vector.ExtractStridedSliceOp) -> None:
    source = c.pieces(op.source)
    missing = len(source.shape) - len(op.offsets)
    offsets = [*op.offsets, *[0] * missing]

    def find(index: list[int]) -> Origin:
        there = [first + place for first, place in zip(offsets, index)]
        return element_at(source, there)

    give_built(c, op.result, find)


def _insert_slice(c: Converter, op: vector.InsertStridedSliceOp) -> None:
    value, dest = c.pieces(op.value), c.pieces(op.dest)
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
    left, right = c.pieces(op.v1), c.pieces(op.v2)
    picks = ints_of(op.mask)
    first = left.shape[0] if left.shape else 1

    def find(index: list[int]) -> Origin:
        at = max(picks[index[0]], 0)
        source, place = (left, at) if at < first else (right, at - first)
        return element_at(source, [place, *index[1:]] if source.shape else [])

    give_built(c, op.result, find)


def _from_elements(c: Converter, op: vector.FromElementsOp) -> None:
    shape = vector_type(op.result).get_shape()

    def find(index: list[int]) -> SSAValue:
        linear = 0
        for extent, place in zip(shape, index):
            linear = linear * extent + place
        return op.elements[linear]

    give_built(c, op.result, find)


RULES: dict[type[Operation], Rule] = {
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.ExtractStridedSliceOp: _extract_slice,
    vector.InsertStridedSliceOp: _insert_slice,
    vector.ShuffleOp: _shuffle,
    vector.FromElementsOp: _from_elements,
}
