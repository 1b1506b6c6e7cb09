"""Rules of elementwise operations, constants and conversions.

tf32 is an f32 in memory and in registers. `arith.truncf` to tf32 rounds to 10 bits of
fraction; products of tf32 round their operands themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import FloatTF32Type, IndexType, f32, f64
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects import base
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, math, vector
from xetl.dialects.xetile import TileBroadcastOp
from xetl.ir.builder import remade

from . import fragments
from .conversion import Converter, Rule
from .lines import assembled

_EXPONENTS = 14
"""A power of two below 2 ** 14 has an inverse in each type of floats."""


def each_part(c: Converter, op: Operation) -> None:
    """Apply the operation to each fragment; a scalar operand is used for all."""
    result = base.vector_type(op.results[0])
    count = fragments.grid_for(result).count
    columns = [
        c.fragments(operand).parts
        if base.is_vector(operand.type)
        else [operand] * count
        for operand in op.operands
    ]
    types = [fragments.fragment_types(base.vector_type(each)) for each in op.results]
    for name in ("map", "layout_result_0"):
        op.attributes.pop(name, None)
    made = [
        c.emit.add(remade(op, operands, results))
        for operands, results in zip(zip(*columns, strict=True), zip(*types))
    ]
    for number, value in enumerate(op.results):
        c.set_fragments(value, [each.results[number] for each in made])


def _maybe_scalar(rule: Rule) -> Rule:
    """Return a rule for vectors that keeps the operation on scalars."""

    def choose(c: Converter, op: Operation) -> None:
        if base.is_vector(op.results[0].type):
            rule(c, op)
        else:
            c.keep(op)

    return choose


def _select(c: Converter, op: arith.SelectOp) -> None:
    if base.is_vector(op.result.type):
        each_part(c, op)
    elif op.result.type == op.true_value.type and not c.has(op.true_value):
        c.keep(op)
    else:
        raise c.refusal(op, "it chooses between places in memory")


def _fma(c: Converter, op: vector.FmaOp) -> None:
    sides = [c.fragments(each).parts for each in op.operands]
    c.set_fragments(
        op.result, [c.emit.insert(math.FmaOp(*each)) for each in zip(*sides)]
    )


def _add(c: Converter, op: Operation) -> None:
    """Add a row to each row of a product by multiply-adds.

    Of the additions of one row to eight rows, Intel's compiler makes one of vectors,
    and copies seven registers for it first. It leaves multiply-adds as they are.
    """
    (result,) = op.results
    left, right = op.operands
    is_wide = base.element_type(result.type) in (f32, f64)
    for product, row in ((left, right), (right, left)):
        is_product = isinstance(product.owner, arith.MulfOp) and product.has_one_use()
        if is_wide and is_product and isinstance(row.owner, TileBroadcastOp):
            products = [part.owner for part in c.fragments(product).parts]
            rows, factors = c.fragments(row).parts, cast(list[Operation], products)
            sums = [math.FmaOp(*x.operands, y) for x, y in zip(factors, rows)]
            c.set_fragments(result, [c.emit.insert(each) for each in sums])
            return
    each_part(c, op)


def _divide(c: Converter, op: Operation) -> None:
    """Multiply by the inverse of a power of two instead: it is as exact."""
    (result,) = op.results
    left, right = op.operands
    divisor = right.owner
    number = splat_value(divisor.value) if isinstance(divisor, arith.ConstantOp) else 0
    half, exponent = frexp(number or 0)
    if abs(half) != 0.5 or abs(exponent) >= _EXPONENTS:
        each_part(c, op)
        return
    inverse = c.splat(1 / (number or 1), base.vector_type(result))
    pairs = zip(c.fragments(left).parts, inverse)
    products = [c.emit.insert(arith.MulfOp(*pair)) for pair in pairs]
    c.set_fragments(result, products)


def _constant(c: Converter, op: arith.ConstantOp) -> None:
    type_ = base.vector_type(op.result)
    number = splat_value(op.value)
    if number is not None:
        c.set_fragments(op.result, c.splat(number, type_))
        return
    assert base.is_dense(op.value)
    numbers = np.array([*op.value.get_values()], object).reshape(type_.get_shape())
    rows = fragments.as_matrix(numbers).tolist()
    c.set_fragments(op.result, from_numbers(c, rows, type_.element_type))


def from_numbers(
    c: Converter, numbers: Sequence[Sequence[Any]], element: Attribute
) -> list[SSAValue]:
    """Return the fragments of a constant matrix."""

    def scalar(number: Any) -> SSAValue:
        return c.emit.constant(number, element)

    def line(row: int, group: int) -> SSAValue:
        if len(numbers[0]) == 1:
            return scalar(numbers[row][0])
        some = [*numbers[row][group * fragments.LANES :][: fragments.LANES]]
        some += some[-1:] * (fragments.LANES - len(some))
        values = [scalar(each) for each in some]
        type_ = fragments.vector_of(element, fragments.LANES)
        return c.emit.shared(
            "elements", values, lambda: vector.FromElementsOp(values, type_)
        )

    return assembled(c, fragments.grid_of(len(numbers), len(numbers[0])), element, line)


def _step(c: Converter, op: vector.StepOp) -> None:
    """Lower a step: lane ids plus the first column of each group."""
    grid = fragments.grid_for(base.vector_type(op.result))
    if not grid.spread:
        c.set_fragments(op.result, c.splat(0, base.vector_type(op.result)))
        return
    lanes, parts = c.lane_ids(), list[SSAValue]()
    row = fragments.vector_of(IndexType(), 1, fragments.LANES)
    for group in range(grid.groups):
        first = c.emit.constant(
            group * fragments.LANES, fragments.vector_of(IndexType(), fragments.LANES)
        )
        numbers = c.emit.pure(arith.AddiOp, lanes, first)
        parts.append(
            c.emit.shared("row", [numbers], lambda: vector.ShapeCastOp(numbers, row))  # noqa: B023 (called at once)
        )
    c.set_fragments(op.result, parts)


def rounded(c: Converter, part: SSAValue) -> SSAValue:
    """Round a fragment of f32 to the nearest tf32, ties to even."""
    short = base.with_element(part.type, FloatTF32Type())
    cut = c.emit.insert(arith.TruncfOp(part, short))
    return c.emit.insert(arith.ExtfOp(cut, part.type))


def _truncf(c: Converter, op: arith.TruncfOp) -> None:
    if not base.is_tf32(op.result.type):
        each_part(c, op)
        return
    source = c.narrowed(c.fragments(op.source), f32)
    c.set_fragments(op.result, [rounded(c, part) for part in source.parts])


def _extf(c: Converter, op: arith.ExtfOp) -> None:
    if base.is_tf32(op.source.type) and base.element_type(op.result.type) == f32:
        c.set_fragments(op.result, c.fragments(op.source).parts)
    else:
        each_part(c, op)


RULES: dict[type[Operation], Rule] = {
    arith.SelectOp: _select,
    arith.ConstantOp: _maybe_scalar(_constant),
    arith.AddfOp: _maybe_scalar(_add),
    arith.DivfOp: _maybe_scalar(_divide),
    vector.FmaOp: _fma,
    vector.StepOp: _step,
    arith.TruncfOp: _maybe_scalar(_truncf),
    arith.ExtfOp: _maybe_scalar(_extf),
}
