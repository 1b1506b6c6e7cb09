"""Vectors of any rank through memory: strided parts of them are read and written.

An operation that moves elements (transpose, slice, insertion) becomes a copy between
two strided views of memory that is private to the subgroup; vectors are stored there
row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import MemRefType, StridedLayoutAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import Index, vector_type
from xetl.dialects.upstream import memref
from xetl.dialects.xetile import InitTileOp, LoadTileOp, StoreTileOp, TileType
from xetl.ir.builder import Builder
from xetl.language.strides import row_major
from xetl.records import record
from xetl.transforms.legalize_vectors.accesses import matrix_tile
from xetl.transforms.legalize_vectors.shapes import as_matrix, cast, matrix_shape
from xetl_cpu.dialect import ViewAddressOp


def loop_nest(build: Builder, sizes: Sequence[Index]) -> tuple[Builder, list[SSAValue]]:
    """Build nested loops over ``sizes``; return a builder for inside, the counters."""
    counters = list[SSAValue]()
    for size in sizes:
        build, counter = build.repeat(0, size, 1)
        counters.append(counter)
    return build, counters


def replace_by(op: Operation, *values: SSAValue) -> None:
    """Replace an operation by values of its results."""
    Rewriter.replace_op(op, [], list(values))


@record(frozen=True)
class Place:
    """A part of a memref: its first offset, and one stride for each dimension."""

    memory: SSAValue
    offset: Index
    strides: tuple[Index, ...]


def allocate(w: Builder, count: int, element: Attribute) -> SSAValue:
    """Allocate memory for elements, private to the subgroup."""
    return w.insert(memref.AllocaOp(MemRefType(element, [count])))


def spill(w: Builder, value: SSAValue) -> SSAValue:
    """Store the elements of a vector to new memory, row by row."""
    type_ = vector_type(value)
    memory = allocate(w, prod(type_.get_shape()), type_.element_type)
    shape = matrix_shape(type_.get_shape())
    write(w, as_matrix(w, value), Place(memory, 0, row_major(shape)))
    return memory


def fill(w: Builder, memory: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Load a vector that `spill` has stored."""
    rows, columns = matrix_shape(shape)
    found = read(w, Place(memory, 0, (columns, 1)), (rows, columns))
    return cast(w, found, shape)


def read(w: Builder, place: Place, shape: tuple[int, int]) -> SSAValue:
    """Load a matrix from memory."""
    return w.insert(LoadTileOp(_tile(w, place, shape)))


def read_as(
    w: Builder, memory: SSAValue, shape: tuple[int, int], element: Attribute
) -> SSAValue:
    """Load a matrix from the bytes of memory, as elements of another type."""
    address = w.insert(memref.ExtractAlignedPointerAsIndexOp(memory))
    layout = StridedLayoutAttr([shape[1], 1], 0)
    sizes, strides = ([w.index(n) for n in each] for each in (shape, (shape[1], 1)))
    type_ = MemRefType(element, list(shape), layout)
    base = w.insert(ViewAddressOp(address, sizes, strides, type_))
    tile = w.insert(InitTileOp(base, [0, 0], TileType(shape, element)))
    return w.insert(LoadTileOp(tile))


def write(w: Builder, value: SSAValue, place: Place) -> None:
    """Write a matrix to memory."""
    rows, columns = vector_type(value).get_shape()
    w.add(StoreTileOp(value, _tile(w, place, (rows, columns))))


def _tile(w: Builder, place: Place, shape: tuple[int, int]) -> SSAValue:
    return matrix_tile(w, place.memory, place.offset, shape, place.strides)


def merged(
    sizes: Sequence[int], *strides: Sequence[int]
) -> list[tuple[int, tuple[int, ...]]]:
    """Merge dimensions where strides allow it; return the size and strides of each."""
    kept: list[tuple[int, tuple[int, ...]]] = []
    for size, steps in zip(sizes, zip(*strides, strict=True), strict=True):
        if size == 1:
            continue
        if kept and kept[-1][1] == tuple(step * size for step in steps):
            kept[-1] = kept[-1][0] * size, steps
        else:
            kept.append((size, steps))
    return kept


def copy(w: Builder, sizes: Sequence[int], source: Place, target: Place) -> None:
    """Copy elements from one place to another, a matrix at a time."""
    steps = [tuple(int(s) for s in place.strides) for place in (source, target)]  # pyright: ignore[reportArgumentType]
    dims = merged(sizes, *steps)
    dims = [(1, (0, 1)[:1] * 2)] * (2 - len(dims)) + dims
    *outer, rows, columns = dims
    inner, counters = loop_nest(w, [size for size, _ in outer])
    places: list[Place] = []
    for number, place in enumerate((source, target)):
        offset = place.offset
        for counter, (_, strides) in zip(counters, outer):
            offset = inner.plus(offset, inner.times(counter, strides[number]))
        pitch = rows[1][number], columns[1][number]
        places.append(Place(place.memory, offset, pitch))
    write(inner, read(inner, places[0], (rows[0], columns[0])), places[1])


def take(
    w: Builder,
    value: SSAValue,
    shape: Sequence[int],
    strides: Sequence[int],
    offset: Index = 0,
) -> SSAValue:
    """Return a vector of elements of ``value``, which is taken as one long row.

    ``strides``: the distance in that row of neighbours along each dimension.
    """
    memory = spill(w, value)
    dims = merged(shape, strides)
    if len(dims) > 2:
        element = vector_type(value).element_type
        target = allocate(w, prod(shape), element)
        source = Place(memory, offset, tuple(strides))
        copy(w, shape, source, Place(target, 0, row_major(shape)))
        return fill(w, target, shape)
    (rows, (down,)), (columns, (right,)) = [(1, (1,))] * (2 - len(dims)) + dims
    found = read(w, Place(memory, offset, (down, right)), (rows, columns))
    return cast(w, found, shape)


def put(
    w: Builder,
    value: SSAValue,
    memory: SSAValue,
    strides: Sequence[int],
    offset: Index = 0,
) -> None:
    """Write the elements of a vector to memory, with a stride for each dimension."""
    shape = vector_type(value).get_shape()
    dims = merged(shape, strides)
    if len(dims) > 2:
        source = Place(spill(w, value), 0, row_major(shape))
        copy(w, shape, source, Place(memory, offset, tuple(strides)))
        return
    (rows, (down,)), (columns, (right,)) = [(1, (1,))] * (2 - len(dims)) + dims
    write(w, cast(w, value, (rows, columns)), Place(memory, offset, (down, right)))
