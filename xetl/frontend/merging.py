"""Values that cross into and out of run-time regions: as SSA values and back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from xdsl.ir import SSAValue

from xetl.frontend.casts import runtime
from xetl.frontend.context import Context
from xetl.frontend.types import (
    Scalar,
    Tile,
    Value,
    Vector,
    describe,
    is_number,
    is_scalar,
    items_of,
    scalar_kind,
)


def can_cross(value: Value) -> bool:
    """Whether a region can carry ``value``: numbers, vectors, tiles, tuples of them."""
    if isinstance(value, tuple):
        return all(can_cross(item) for item in items_of(value) or ())
    return isinstance(value, Scalar | Vector | Tile) or is_number(value)


def same(one: Value, other: Value) -> bool:
    """Whether two values are one: the same object, or equal constants."""
    if one is other:
        return True
    if isinstance(one, Scalar | Vector | Tile):
        return type(one) is type(other) and one.ssa is other.ssa
    pairs = _pairs(one, other)
    if pairs is not None:
        return all(same(a, b) for a, b in pairs)
    # 0.0 and -0.0 are equal but not one, and NaN is one but not equal.
    if is_number(one) and is_number(other):
        return type(one) is type(other) and repr(one) == repr(other)
    return isinstance(one, str) and isinstance(other, str) and one == other


def _pairs(one: Value, other: Value) -> list[tuple[Value, Value]] | None:
    """The items of two tuples of one length, pairwise; None of anything else."""
    if not (isinstance(one, tuple) and isinstance(other, tuple)):
        return None
    first, second = items_of(one) or [], items_of(other) or []
    return list(zip(first, second)) if len(first) == len(second) else None


def same_kind(one: Value, other: Value) -> bool:
    """Whether two values can stand behind one name: same kind, shape and dtype."""
    pairs = _pairs(one, other)
    if pairs is not None:
        return all(same_kind(a, b) for a, b in pairs)
    if is_scalar(one) and is_scalar(other):
        return scalar_kind(one) == scalar_kind(other)
    if isinstance(one, Vector) and isinstance(other, Vector):
        return (one.shape, one.dtype) == (other.shape, other.dtype)
    if isinstance(one, Tile) and isinstance(other, Tile):
        alike = (one.shape, one.dtype) == (other.shape, other.dtype)
        return alike and one.ssa.type == other.ssa.type
    return False


def to_ssa(ctx: Context, value: Value) -> list[SSAValue]:
    """The SSA values of something that can cross; constants are materialised."""
    if isinstance(value, tuple):
        return [ssa for item in items_of(value) or () for ssa in to_ssa(ctx, item)]
    if isinstance(value, Vector | Tile):
        return [value.ssa]
    return [runtime(ctx, value).ssa]


def from_ssa(like: Value, values: Iterator[SSAValue]) -> Value:
    """What ``like`` is, made of other SSA values."""
    if isinstance(like, tuple):
        return tuple(from_ssa(item, values) for item in items_of(like) or ())
    if isinstance(like, Vector | Tile):
        return replace(like, ssa=next(values))
    return Scalar(next(values), scalar_kind(like))


def describe_kind(value: Value) -> str:
    """``value`` as a kind: a constant counts as the number it is."""
    if is_number(value):
        return {"int": "an int", "float": "a float", "bool": "a condition"}[
            scalar_kind(value)
        ]
    if isinstance(value, tuple):
        return f"({', '.join(describe_kind(item) for item in items_of(value) or ())})"
    return describe(value)


def line_of(node: ast.AST | None) -> str:
    """`` at line 5``; empty if the place is not known."""
    line = getattr(node, "lineno", None)
    return f" at line {line}" if line else ""
