"""Rules of products: by the matrix unit if it has the types, otherwise by the lanes.

Products accumulate in f32 (i32, f64). A narrower C is widened first, and the result is
rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import StringAttr, bf16, f32, f64
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import vector_type, with_element
from xetl.dialects.upstream import arith, math, vector
from xetl.dialects.upstream.elementwise import bit_width, is_float
from xetl.dialects.xetile import TileMmaOp
from xetl_xegpu.dialect import DpasOp

from . import plan
from .conversion import Converter, Rule
from .fragments import (
    LANES,
    Elements,
    Fragments,
    Grid,
    MmaOperand,
    grid_for,
    grid_of,
    matrix_shape,
    vector_of,
)
from .lines import filled_behind, rows_of, stacked
from .rearranging import elements_of, give, parted, rearranged

_FEW_STEPS = 5
"""A product of fewer steps is shorter if it is unrolled than if it is padded to 16."""


@dataclass(frozen=True, slots=True)
class Product:
    """The operands and attributes of a product.

    Attributes:
        depth: columns of A.
        a_unsigned, b_unsigned: whether the integers of an operand are unsigned.
        codes: formats of floats that are stored as i8; see `xetl.devices`.
    """

    a: Fragments | MmaOperand
    b: Fragments | MmaOperand
    grid: Grid
    depth: int
    a_unsigned: bool
    b_unsigned: bool
    codes: StringAttr | None = None


_Way: TypeAlias = Callable[[Converter, Product, Sequence[SSAValue]], list[SSAValue]]


def _mma(c: Converter, op: TileMmaOp) -> None:
    result = vector_type(op.result)
    a, sums = c.operand(op.a), None if op.c is None else c.operand(op.c)
    if isinstance(sums, MmaOperand) and isinstance(a, Fragments):
        a = parted(c, a)
    _, depth = matrix_shape(vector_type(op.a).get_shape())
    unsigned = op.a_unsigned is not None, op.b_unsigned is not None
    codes = op.precision if op.is_of_codes else None
    product = Product(a, c.operand(op.b), grid_for(result), depth, *unsigned, codes)
    addend = None if sums is None else sums.parts
    found = _product(c, product, plan.kind_of(op), addend, result.element_type)
    if isinstance(sums, MmaOperand):
        c.set(op.result, replace(sums, parts=found))
    else:
        c.set_fragments(op.result, found)


def _batch(c: Converter, op: vector.ContractOp) -> None:
    """Lower a batch of products; the batch is the first dimension of all operands."""
    sides = [c.fragments(value) for value in (op.lhs, op.rhs, op.acc)]
    found: list[Elements] = []
    for matrices in zip(*map(elements_of, sides)):
        pairs = zip(sides, matrices)
        a, b, addend = (rearranged(c, side.element, one) for side, one in pairs)
        product = Product(a, b, addend.grid, a.grid.columns, False, False)
        kind = plan.kind_of_types(a.element, addend.element)
        parts = _product(c, product, kind, addend.parts, addend.element)
        found.append(elements_of(Fragments(addend.shape, addend.element, parts)))
    give(c, op.result, np.stack(found))


def _product(
    c: Converter,
    p: Product,
    kind: plan.ProductKind,
    addend: Sequence[SSAValue] | None,
    element: Attribute,
) -> list[SSAValue]:
    """Compute a product in the accumulator type, and round once to the result type."""
    sums = element
    if is_float(element):
        sums = f64 if bit_width(_element(p.a)) == 64 else sums
        sums = f32 if bit_width(sums) < 32 else sums
    if addend is None:
        types = [vector_of(sums, h, p.grid.width) for h in p.grid.heights()]
        addend = [c.emit.constant(0, type_) for type_ in types]
    else:
        addend = [c.emit.widened(part, sums) for part in addend]
    rule = _RULES[kind]
    is_narrow = not p.grid.spread and rule is not _lanes
    found = _narrow(c, p, addend, rule) if is_narrow else rule(c, p, addend)
    return [c.emit.narrowed(part, element) for part in found]


def _matrix(c: Converter, p: Product, addend: Sequence[SSAValue]) -> list[SSAValue]:
    element = _element(p.a)
    depth = 256 // bit_width(element)
    left = _sides_a(c, p.a, p.depth, depth)
    right = _sides_b(c, p.b, p.depth, depth)
    return _dpas(c, p, left, right, addend)


def _element(side: Fragments | MmaOperand) -> Attribute:
    if isinstance(side, Fragments):
        return side.element
    return vector_type(side.parts[0]).element_type


def _dpas(
    c: Converter,
    p: Product,
    left: Sequence[Sequence[SSAValue]],
    right: Sequence[Sequence[SSAValue]],
    addend: Sequence[SSAValue],
) -> list[SSAValue]:
    """Accumulate over the steps of K by the matrix unit; see `_summed`."""
    said = {"a_unsigned": p.a_unsigned, "b_unsigned": p.b_unsigned, "codes": p.codes}
    return _summed(c, partial(DpasOp, **said), left, right, addend)


def _summed(
    c: Converter,
    make: Callable[[SSAValue, SSAValue, SSAValue], Operation],
    left: Sequence[Sequence[SSAValue]],
    right: Sequence[Sequence[SSAValue]],
    addend: Sequence[SSAValue],
) -> list[SSAValue]:
    """Accumulate over the steps of K; ``left[span][step]``, ``right[step][group]``."""
    parts = list(addend)
    for step, row in enumerate(right):
        pairs = product([column[step] for column in left], row)
        for number, pair in enumerate(pairs):
            parts[number] = c.emit.insert(make(*pair, parts[number]))
    return parts


# Sides for the matrix unit ----------------------------------------------------------


def _sides_a(
    c: Converter, a: Fragments | MmaOperand, columns: int, depth: int
) -> Sequence[Sequence[SSAValue]]:
    """Return the parts of A for single products: ``[span of rows][step of K]``."""
    if isinstance(a, MmaOperand):
        return a.rows()
    if not a.grid.spread:
        a = _widened_columns(c, a)
    firsts = range(0, columns, depth)
    return [
        [_columns_of_a(c, a, span, first, depth, columns) for first in firsts]
        for span in range(len(a.grid.spans))
    ]


def _columns_of_a(
    c: Converter, a: Fragments, span: int, first: int, depth: int, columns: int
) -> SSAValue:
    """Return ``depth`` columns of A; those from ``columns`` on are zeros.

    8 columns are a half of a fragment, 32 are two elements of each lane.
    """
    height = a.grid.spans[span].count
    groups = range(first // LANES, min(-(-(first + depth) // LANES), a.grid.groups))
    parts = (filled_behind(c, a.part(span, g), columns - g * LANES, 0) for g in groups)
    if depth == LANES:
        return next(parts)
    if depth < LANES:
        at, sizes = [0, first % LANES], [height, depth]
        return c.emit.insert(vector.ExtractStridedSliceOp(next(parts), at, sizes))
    whole = c.emit.constant(0, vector_of(a.element, height, depth))
    for number, part in enumerate(parts):
        at = [0, number * LANES]
        whole = c.emit.insert(vector.InsertStridedSliceOp(part, whole, at))
    return whole


def _widened_columns(c: Converter, a: Fragments) -> Fragments:
    """Return a value of one column with fragments of 16 columns, all the same."""
    parts = [
        c.spread(part, vector_type(part).get_shape()[0], LANES) for part in a.parts
    ]
    # Say 2 columns: they have fragments of 16 columns. Only the first one is used.
    return Fragments((a.grid.rows, 2), a.element, parts)


def _sides_b(
    c: Converter, b: Fragments | MmaOperand, rows: int, depth: int
) -> Sequence[Sequence[SSAValue]]:
    """Return the parts of B for single products: ``[step of K][group of columns]``."""
    if isinstance(b, MmaOperand):
        return b.rows()
    return [
        [stacked(c, b, first, depth, group) for group in range(b.grid.groups)]
        for first in range(0, rows, depth)
    ]


# Other ways -------------------------------------------------------------------------


def _tf32(c: Converter, p: Product, addend: Sequence[SSAValue]) -> list[SSAValue]:
    assert isinstance(p.a, Fragments)
    right = _sides_b(c, p.b, p.depth, 8)
    full = -(-p.grid.rows // 8) * 8
    grid = grid_of(full, p.grid.columns)
    a = _more_rows(c, p.a, full)
    sums = Fragments((p.grid.rows, p.grid.columns), f32, addend)
    left = _sides_a(c, a, p.depth, 8)
    whole = Product(a, p.b, grid, p.depth, False, False)
    found = _dpas(c, whole, left, right, _more_rows(c, sums, full).parts)
    pieces = Fragments((full, p.grid.columns), f32, found)
    # The first rows of a matrix.
    parts: list[SSAValue] = []
    for span, group in p.grid.blocks():
        part = pieces.part(span.first // 8, group)
        parts.append(rows_of(c, part, span.first % 8, span.count))
    return parts


def _more_rows(c: Converter, value: Fragments, rows: int) -> Fragments:
    """Pad a matrix with zero rows: the matrix unit needs 8 rows at a time for tf32."""
    grid = value.grid
    if grid.rows == rows:
        return value
    whole = (grid.rows // 8) * grid.groups
    parts = list(value.parts[:whole])
    parts += [stacked(c, value, rows - 8, 8, group) for group in range(grid.groups)]
    return Fragments((rows, grid.columns), value.element, parts)


def _bf16x3(c: Converter, p: Product, addend: Sequence[SSAValue]) -> list[SSAValue]:
    """Three products of bf16 parts: low by high, high by low, high by high.

    The loop over steps of K is outermost, so that the parts of a step die after it.
    """
    assert isinstance(p.a, Fragments)
    assert isinstance(p.b, Fragments)
    depth = 256 // bit_width(bf16)
    a_high, a_low = (_sides_a(c, a, p.depth, depth) for a in _halves(c, p.a))
    b_high, b_low = (_sides_b(c, b, p.depth, depth) for b in _halves(c, p.b))
    left = [
        [part for big, small in zip(high, low) for part in (small, big, big)]
        for high, low in zip(a_high, a_low)
    ]
    right = [part for big, small in zip(b_high, b_low) for part in (big, small, big)]
    whole = replace(p, a_unsigned=False, b_unsigned=False)
    return _dpas(c, whole, left, right, addend)


def _halves(c: Converter, side: Fragments) -> tuple[Fragments, Fragments]:
    """Split f32 into the nearest bf16 and the bf16 nearest to the rest."""
    high = c.narrowed(side, bf16)
    pairs = zip(side.parts, c.widened(high, f32).parts)
    rest = [c.emit.insert(arith.SubfOp(*pair)) for pair in pairs]
    return high, c.narrowed(Fragments(side.shape, f32, rest), bf16)


def _lanes(c: Converter, p: Product, addend: Sequence[SSAValue]) -> list[SSAValue]:
    """Multiply by lanes: each has its columns of B and C; A is broadcast."""
    assert isinstance(p.a, Fragments)
    assert isinstance(p.b, Fragments)
    sums = vector_type(addend[0]).element_type
    a = _cast(c, p.a, sums, p.a_unsigned)
    b = _cast(c, p.b, sums, p.b_unsigned)
    cast = Product(a, b, p.grid, p.depth, False, False)
    if p.grid.spread and is_float(sums) and p.depth >= _FEW_STEPS:
        return _contract(c, cast, addend)
    # Outer products: a column of A by a row of B, one after another.
    parts, grid = list(addend), cast.grid
    for k in range(cast.depth):
        row = [_row_of_b(c, b, k, group, grid.width) for group in range(grid.groups)]
        for span, each in enumerate(grid.spans):
            height = each.count
            left = c.spread(_one_column_of_a(c, a, span, k), height, grid.width)
            for group, right in enumerate(row):
                wide = c.spread(right, height, grid.width)
                number = grid.fragment(span, group)
                parts[number] = _multiply_add(c, left, wide, parts[number])
    return parts


def _contract(c: Converter, p: Product, addend: Sequence[SSAValue]) -> list[SSAValue]:
    """Multiply 16 steps of K at a time, by one operation each."""
    left = _sides_a(c, p.a, p.depth, LANES)
    right = _sides_b(c, p.b, p.depth, LANES)
    kinds, maps = ("parallel", "parallel", "reduction"), ((0, 2), (2, 1), (0, 1))

    def contraction(a: SSAValue, b: SSAValue, sums: SSAValue) -> Operation:
        return vector.ContractOp(a, b, sums, maps, kinds)

    return _summed(c, contraction, left, right, addend)


def _cast(c: Converter, side: Fragments, sums: Attribute, unsigned: bool) -> Fragments:
    """Convert elements to the accumulator type."""
    if side.element == sums:
        return side
    cast: type[arith.CastOp]
    if is_float(sums):
        cast = arith.ExtfOp
    elif bit_width(side.element) > bit_width(sums):
        cast = arith.TrunciOp
    else:
        cast = arith.ExtuiOp if unsigned else arith.ExtsiOp
    return side.mapped(
        sums, lambda part: c.emit.insert(cast(part, with_element(part.type, sums)))
    )


def _one_column_of_a(c: Converter, a: Fragments, span: int, k: int) -> SSAValue:
    if not a.grid.spread:
        return a.part(span, 0)
    group, lane = divmod(k, LANES)
    part = a.part(span, group)
    sizes = [a.grid.spans[span].count, 1]
    return c.emit.insert(vector.ExtractStridedSliceOp(part, [0, lane], sizes))


def _row_of_b(c: Converter, b: Fragments, k: int, group: int, width: int) -> SSAValue:
    place = b.grid.place(k, group)
    position = [place.row, 0] if width == 1 else [place.row]
    return c.emit.insert(vector.ExtractOp(b.parts[place.fragment], position))


def _multiply_add(
    c: Converter, left: SSAValue, right: SSAValue, addend: SSAValue
) -> SSAValue:
    if is_float(addend.type):
        return c.emit.insert(math.FmaOp(left, right, addend))
    product = c.emit.insert(arith.MuliOp(left, right))
    return c.emit.insert(arith.AddiOp(product, addend))


def _narrow(
    c: Converter, p: Product, addend: Sequence[SSAValue], rule: _Way
) -> list[SSAValue]:
    """Compute a result of one column as 16 columns, and keep one of them."""
    assert isinstance(p.b, Fragments)
    grid = grid_of(p.grid.rows, 2)
    wide = [c.spread(part, vector_type(part).get_shape()[0], LANES) for part in addend]
    b = _widened_columns(c, p.b)
    found = rule(c, Product(p.a, b, grid, p.depth, p.a_unsigned, p.b_unsigned), wide)
    element = vector_type(addend[0]).element_type
    all_ = Fragments((grid.rows, 2), element, found)
    return list(rearranged(c, element, elements_of(all_)[:, :1]).parts)


_RULES = {
    plan.ProductKind.MATRIX: _matrix,
    plan.ProductKind.TF32: _tf32,
    plan.ProductKind.BF16X3: _bf16x3,
    plan.ProductKind.LANES: _lanes,
}

RULES: dict[type[Operation], Rule] = {TileMmaOp: _mma, vector.ContractOp: _batch}
