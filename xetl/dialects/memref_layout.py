"""What the type of a memref says of its strides, and the text of such types.

A layout that is linear in the indices is read as strides, ``strided<...>``; one that
permutes whole dimensions stays as it is.  Others cannot be launched, and are refused.
Source: MLIR, "MemRefType", layout; XeTile RFC, appendix 2.4 (``slm``).
"""

from __future__ import annotations

from typing import NoReturn

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    IntegerAttr,
    MemRefLayoutAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    UnrankedMemRefType,
    UnregisteredAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)
from xdsl.parser import AttrParser

from .kinds_of_types import is_integer_attr

_KEEP_THE_NUMBER = ("arith.index_cast", "arith.extsi", "index.casts")
"""Casts of signed integers to wider ones; of constants no other can be met."""


_NAMED_SPACES = {
    **{("gpu.address_space", name): 0 for name in ("global", "private")},
    **{("spirv.storage_class", name): 0 for name in ("CrossWorkgroup", "Function")},
    ("gpu.address_space", "workgroup"): 3,
    ("spirv.storage_class", "Workgroup"): 3,
}
"""Memory of a subgroup alone is like any other, but for who knows its address."""


def memory_space_of(type_: MemRefType[Attribute]) -> int | None:
    """The number of the memory space; 0 if none is given, None if it is no number."""
    space = type_.memory_space
    if isinstance(space, NoneAttr):
        return 0
    if isinstance(space, UnregisteredAttr):
        return _NAMED_SPACES.get((space.attr_name.data, space.value.data))
    return space.value.data if is_integer_attr(space) else None


def strides_of(type_: MemRefType[Attribute]) -> list[int | None] | None:
    """Strides in elements, None where unknown; None if the layout has no strides."""
    layout, shape = type_.layout, type_.get_shape()
    rank = len(shape)
    if isinstance(layout, StridedLayoutAttr):
        return [None if isinstance(s, NoneAttr) else s.data for s in layout.strides]
    order = list(range(rank))
    if isinstance(layout, AffineMapAttr):
        results = layout.data.results
        if len(results) != rank:
            return None
        dims = [e.position for e in results if isinstance(e, AffineDimExpr)]
        if sorted(dims) != order:
            return None
        order = dims
    strides: list[int | None] = [None] * rank
    step: int | None = 1
    for dim in reversed(order):
        strides[dim] = step
        extent = shape[dim]
        step = None if step is None or extent == DYNAMIC_INDEX else step * extent
    return strides


def has_static_layout(type_: MemRefType[Attribute]) -> bool:
    """Whether shape and strides are all known from the type."""
    strides = strides_of(type_)
    known = strides is not None and None not in strides
    return known and DYNAMIC_INDEX not in type_.get_shape()


def constant_index(value: SSAValue | int) -> int | None:
    """The number of a constant, of whatever dialect; None if it is not constant."""
    if isinstance(value, int):
        return value
    owner = value.owner
    while isinstance(owner, Operation) and owner.name in _KEEP_THE_NUMBER:
        owner = owner.operands[0].owner
    properties = getattr(owner, "properties", {})
    attribute = properties.get("value")
    return attribute.value.data if is_integer_attr(attribute) else None


_SHARED = IntegerAttr(3, i64)
"""Where the RFC writes ``slm``."""

_Terms = dict[int | None, int | None]
"""Factor of each dimension, and of 1 under None; a factor of None is not known."""


class MemRefTextParser(AttrParser):
    """Reads memref types."""

    def _parse_memref_attrs(self) -> MemRefType | UnrankedMemRefType:
        shape, element = self.parse_shape()
        if shape is None:
            space = self._space() if self.parse_optional_punctuation(",") else None
            return UnrankedMemRefType.from_type(element, space or NoneAttr())
        layout: MemRefLayoutAttr | NoneAttr = NoneAttr()
        space = None
        if self.parse_optional_punctuation(","):
            position = self.pos
            space = self._space()
            if isinstance(space, MemRefLayoutAttr):
                layout = self._strided(space, len(shape), position)
                space = self._space() if self.parse_optional_punctuation(",") else None
        return MemRefType(element, shape, layout, space or NoneAttr())

    def _space(self) -> Attribute:
        if self.parse_optional_keyword("slm"):
            return _SHARED
        position = self.pos
        try:
            return self.parse_attribute()
        except NotImplementedError:  # of xDSL, for products of dimensions
            self._refuse_layout(position)

    def _refuse_layout(self, position: int) -> NoReturn:
        self.raise_error(
            "a layout is a sum of its dimensions times numbers, or names each once",
            position,
        )

    def _strided(
        self, layout: MemRefLayoutAttr, rank: int, position: int
    ) -> MemRefLayoutAttr:
        """The layout, as strides where they follow from a map."""
        if not isinstance(layout, AffineMapAttr):
            return layout
        map_ = layout.data
        if map_.num_dims != rank:
            self.raise_error(
                f"the layout is of rank {map_.num_dims}, the memref of rank {rank}",
                position,
            )
        if sorted(str(each) for each in map_.results) == [f"d{i}" for i in range(rank)]:
            return layout
        found = _strides(map_)
        if found is None:
            self._refuse_layout(position)
        return found


def _strides(map_: AffineMap) -> StridedLayoutAttr | None:
    """The strides and the offset of a linear map with one result."""
    terms = _terms(map_.results[0]) if len(map_.results) == 1 else None
    if terms is None:
        return None
    strides = [terms.get(dim, 0) for dim in range(map_.num_dims)]
    return StridedLayoutAttr(strides, terms.get(None, 0))


def _terms(expr: AffineExpr) -> _Terms | None:
    """The factors of a linear expression; None if it is not linear."""
    match expr:
        case AffineConstantExpr():
            return {None: expr.value}
        case AffineDimExpr():
            return {expr.position: 1}
        case AffineSymExpr():
            return {None: None}
        case AffineBinaryOpExpr():
            left, right = _terms(expr.lhs), _terms(expr.rhs)
            if left is None or right is None:
                return None
            if expr.kind is AffineBinaryOpKind.Add:
                return {dim: _sum(left, right, dim) for dim in {**left, **right}}
            if expr.kind is AffineBinaryOpKind.Mul:
                return _product(left, right)
            return None
        case _:
            return None


def _sum(left: _Terms, right: _Terms, dim: int | None) -> int | None:
    first, second = left.get(dim, 0), right.get(dim, 0)
    return None if first is None or second is None else first + second


def _product(left: _Terms, right: _Terms) -> _Terms | None:
    """One of both must be a number."""
    if set(right) != {None}:
        left, right = right, left
    if set(right) != {None}:
        return None
    factor = right[None]
    return {
        dim: None if factor is None or each is None else factor * each
        for dim, each in left.items()
    }
