"""Text of memref types: layouts by `affine_map`, and the RFC's ``slm``.

A layout that is linear in the indices is read as strides, ``strided<...>``; one that
permutes whole dimensions stays as it is. Others cannot be launched, and are refused.

Source: MLIR, "MemRefType", layout; XeTile RFC, appendix 2.4 (``slm``).
"""

from __future__ import annotations

from typing import NoReturn

from xdsl.dialects.builtin import (
    AffineMapAttr,
    IntegerAttr,
    MemRefLayoutAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    UnrankedMemRefType,
    i64,
)
from xdsl.ir import Attribute
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
