"""Parse text to IR, with line and column, hex floats and both XeTile spellings.

The generic form of the released dialect differs: kinds are MLIR's enumerations
(`#vector.kind<add>`, `0 : i64` for an atomic `addf`), dimensions of a broadcast have
another name, and a scattered store has its mask last.

Memref types may have layouts by `affine_map`, and the RFC's ``slm``. A layout that is
linear in the indices is read as strides, ``strided<...>``; one that permutes whole
dimensions stays as it is. Other layouts cannot be launched, and are refused.

Source: MLIR, "MemRefType", layout; XeTile RFC, appendix 2.4 (``slm``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NoReturn

from xdsl import ir
from xdsl.context import Context
from xdsl.dialects import builtin
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)
from xdsl.parser import AttrParser, UnresolvedOperand
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from xetl.dialects.base import is_integer_attr
from xetl.dialects.reduction_kinds import CombiningKindAttr, normalize_kind
from xetl.dialects.xetile.memory_ops import StoreScatterOp
from xetl.dialects.xetile.syntax import MAP_SPELLINGS
from xetl.dialects.xetile.types import TileType
from xetl.imports import import_whole
from xetl.settings import config

from .host_code import HostCodeParser
from .upstream.affine import Affine
from .upstream.arith import Arith
from .upstream.cf import Cf
from .upstream.elementwise import FlagsAttr
from .upstream.func import Func
from .upstream.gpu import Gpu
from .upstream.index import Index
from .upstream.linalg import Linalg
from .upstream.math import Math
from .upstream.memref import MemRef
from .upstream.scf import Scf
from .upstream.ub import Ub
from .upstream.vector import Vector
from .upstream.xegpu import XeGPUHints
from .xetile import OTHER_SPELLINGS, XeTile

_SHARED = builtin.IntegerAttr(3, builtin.i64)
"""The memory space that the RFC writes as ``slm``."""

_Terms = dict[int | None, int | None]
"""The factor of each dimension, and the constant (key None). None: it is not known."""


class MemRefTextParser(AttrParser):
    """Reads memref types."""

    def _parse_memref_attrs(self) -> builtin.MemRefType | builtin.UnrankedMemRefType:
        shape, element = self.parse_shape()
        if shape is None:
            space = self._space() if self.parse_optional_punctuation(",") else None
            space = space or builtin.NoneAttr()
            return builtin.UnrankedMemRefType.from_type(element, space)
        layout: builtin.MemRefLayoutAttr | builtin.NoneAttr = builtin.NoneAttr()
        space = None
        if self.parse_optional_punctuation(","):
            position = self.pos
            space = self._space()
            if isinstance(space, builtin.MemRefLayoutAttr):
                layout = self._strided(space, len(shape), position)
                space = self._space() if self.parse_optional_punctuation(",") else None
        return builtin.MemRefType(element, shape, layout, space or builtin.NoneAttr())

    def _space(self) -> ir.Attribute:
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
        self, layout: builtin.MemRefLayoutAttr, rank: int, position: int
    ) -> builtin.MemRefLayoutAttr:
        """Return the layout, as strides if they follow from a map."""
        if not isinstance(layout, builtin.AffineMapAttr):
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


def _strides(map_: AffineMap) -> builtin.StridedLayoutAttr | None:
    """Return strides and offset of a linear map with one result, or None."""
    terms = _terms(map_.results[0]) if len(map_.results) == 1 else None
    if terms is None:
        return None
    strides = [terms.get(dim, 0) for dim in range(map_.num_dims)]
    return builtin.StridedLayoutAttr(strides, terms.get(None, 0))


def _terms(expr: AffineExpr) -> _Terms | None:
    """Return the factors of a linear expression. Return None if it is not linear."""
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
    """Multiply two expressions. Return None unless one of them is a number."""
    if set(right) != {None}:
        left, right = right, left
    if set(right) != {None}:
        return None
    factor = right[None]
    return {
        dim: None if factor is None or each is None else factor * each
        for dim, each in left.items()
    }


DIALECTS: tuple[ir.Dialect, ...] = (
    *(builtin.Builtin, Arith, Math, Scf, Cf, Func, Gpu, Index, MemRef, Vector),
    *(XeGPUHints, XeTile, Affine, Ub, Linalg),
)


_RFC_ATTRIBUTES = ("wg_map", "sg_map", "xe_map", "tile_attr")


class XetlContext(Context):
    """A context that accepts unknown attributes, but no unknown operations.

    Modules carry discardable attributes of other dialects (`#spirv....`): these are
    kept as text and ignored. An unknown name of our own dialect is an error.
    """

    def get_optional_attr(self, name: str) -> type[ir.Attribute] | None:
        """Return the attribute class, or one that keeps the text."""
        known = super().get_optional_attr(name)
        if known is None and not _is_ours(name):
            known = builtin.UnregisteredAttr.with_name_and_type(name, False)
            self._loaded_attrs[name] = known
        return known

    def get_optional_type(self, name: str) -> type[ir.TypeAttribute] | None:
        """Return the class of a type, or one that keeps the text."""
        known = super().get_optional_type(name)
        if known is None and not _is_ours(name):
            made = builtin.UnregisteredAttr.with_name_and_type(name, True)
            assert issubclass(made, ir.TypeAttribute)
            known = self._loaded_types[name] = made
        return known


def _is_ours(name: str) -> bool:
    return name.startswith(f"{XeTile.name}.")


def make_context(extra: Iterable[ir.Dialect] = ()) -> Context:
    """Return a context with all our dialects; ``extra`` dialects replace ours."""
    chosen = {dialect.name: dialect for dialect in (*DIALECTS, *extra)}
    context = XetlContext()
    for dialect in chosen.values():
        context.load_dialect(dialect)
    for name, load in _RARE.items():
        if name not in chosen:
            context.register_dialect(name, load)
    return context


_RARE: dict[str, Callable[[], ir.Dialect]] = {
    "xsmm": lambda: import_whole("xetl.dialects.xsmm").Xsmm,
    "llvm": lambda: import_whole("xetl.dialects.upstream.llvm").Llvm,
}
"""Rare dialects, which are loaded when the parser reads the first of their names."""


class _HexElement(AttrParser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """A hex number such as ``0xFF800000`` in a dense constant: the bits of a float."""

    def to_type(self, parser: AttrParser, type: ir.Attribute):
        """Return the bits as a number of ``type``."""
        if not isinstance(type, builtin.AnyFloat):
            return super().to_type(parser, type)  # pyright: ignore[reportArgumentType]
        assert isinstance(self.value, int)
        try:
            raw = self.value.to_bytes(type.compile_time_size, "little")
        except OverflowError:
            parser.raise_error(f"too many bits for {type}", self.span)
        return type.unpack(raw, 1)[0]


_MOST_BITS = 64


def _too_large(type_: ir.Attribute | None) -> str | None:
    """Return why a type has too many elements. Return None if it does not."""
    if isinstance(type_, builtin.VectorType):
        most, count = config.max_tile_elements, prod(type_.get_shape())
        if count > most:
            return f"{count} elements are too many, {most} (XETL_MAX_TILE_ELEMENTS)"
    if isinstance(type_, builtin.IntegerType) and type_.bitwidth > _MOST_BITS:
        return f"integers have at most {_MOST_BITS} bits, not {type_.bitwidth}"
    return None


class XetlParser(HostCodeParser, MemRefTextParser):
    """A parser that gives every operation the position of its name as location."""

    def __init__(
        self,
        ctx: Context,
        text: str,
        name: str = "<text>",
        *,
        keeps_locations: bool = True,
    ) -> None:
        """Read ``text``; ``keeps_locations``: whether its ``loc(...)`` are used."""
        super().__init__(ctx, text, name)
        self.read(text, name)
        self._keeps_locations = keeps_locations
        self._file = builtin.StringAttr(name)
        ends = [i for i, char in enumerate(text) if char == "\n"]
        self._line_starts = [0, *(end + 1 for end in ends)]
        self._name_positions: list[int] = []
        self.forward_positions: dict[str, int] = {}
        """The positions where values were used first, before their definition."""

    @property
    def operation_position(self) -> int:
        """The position of the name of the operation that is being parsed."""
        return self._name_positions[-1] if self._name_positions else self.pos

    def parse_optional_type(self) -> ir.TypeAttribute | None:
        """Parse a type; refuse one whose constants would take all memory."""
        start = self.pos
        found = super().parse_optional_type()
        problem = _too_large(found)
        if problem is not None:
            self.raise_error(problem, start)
        return found

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        # Results come first; what follows them is the name of the operation.
        results = super()._parse_op_result_list()
        self._name_positions.append(self._current_token.span.start)
        return results

    def resolve_operand(
        self, operand: UnresolvedOperand, type: ir.AttributeInvT
    ) -> ir.SSAValue[ir.AttributeInvT]:
        """Return the value, or a forward reference if it is not defined yet."""
        name = operand.operand_name
        if name not in self.ssa_values and name not in self.forward_ssa_references:
            self.forward_positions[name] = operand.span.start
        return super().resolve_operand(operand, type)

    def parse_operation(self) -> ir.Operation:
        """Parse an operation and set its location, unless the text states one."""
        op = super().parse_operation()
        position = self._name_positions.pop()
        if isinstance(op.location, builtin.UnknownLoc) or not self._keeps_locations:
            line = bisect_right(self._line_starts, position)
            column = position - self._line_starts[line - 1] + 1
            op.location = builtin.FileLineColLoc(
                self._file, builtin.IntAttr(line), builtin.IntAttr(column)
            )
        return op

    def _parse_generic_operation(self, op_type: type[ir.Operation]) -> ir.Operation:
        # MLIR writes flags that are not set. The custom form and our passes leave them
        # out, so this does the same: equal operations should look equal.
        op = super()._parse_generic_operation(op_type)
        for name, value in list(op.properties.items()):
            if isinstance(value, FlagsAttr) and not value.data:
                del op.properties[name]
        if _is_ours(op.name):
            settle(op)
        return op

    def _parse_extended_type_or_attribute(  # pyright: ignore[reportIncompatibleMethodOverride] - xDSL has overloads for is_type
        self, attr_or_dialect_name: str, is_type: bool
    ) -> Any:
        # The RFC writes `#wg_map<...>` for `#xetile.wg_map<...>`.
        name = attr_or_dialect_name
        if name in _RFC_ATTRIBUTES and f"#{name}" not in self.attribute_aliases:
            name = f"{XeTile.name}.{name}"
        return super()._parse_extended_type_or_attribute(name, is_type)

    def _parse_location(self) -> builtin.LocationAttr:
        # xDSL knows neither the metadata of `fused<"a pass">[...]` nor ranges.
        token = self._current_token.text
        if token.startswith("#") and token not in self.attribute_aliases:
            self._consume_token()  # MLIR prints aliases of locations at the end
            return builtin.UnknownLoc()
        if token != "fused":
            found = super()._parse_location()
            if self.parse_optional_keyword("to"):
                self.parse_optional_integer()
                self.parse_punctuation(":")
                self.parse_integer()
            return found
        self._consume_token()
        metadata: ir.Attribute = builtin.NoneAttr()
        if self.parse_optional_punctuation("<"):
            metadata = self.parse_attribute()
            self.parse_punctuation(">")
        parts = self.parse_comma_separated_list(
            self.Delimiter.SQUARE, self._parse_location
        )
        return builtin.FusedLoc(tuple(parts), metadata)

    def _parse_file_metadata_dictionary(self) -> None:
        """Skip ``{-# ... #-}``: metadata of other tools."""
        while not self._parse_optional_token(MLIRTokenKind.FILE_METADATA_END):
            if self._current_token.kind == MLIRTokenKind.EOF:
                self.raise_error("expected '#-}' at the end of the metadata")
            self._consume_token()

    def _get_op_by_name(self, name: str) -> type[ir.Operation]:
        if name.startswith("transform."):
            text = "scripts of `transform` are not read: backends choose tiles and"
            self.raise_error(f"{text} loops themselves; leave the script's module out")
        return super()._get_op_by_name(OTHER_SPELLINGS.get(name, name))

    def _parse_tensor_literal_element(self) -> AttrParser._TensorLiteralElement:
        is_hex = self._current_token.text[:2] in ("0x", "0X")
        element = super()._parse_tensor_literal_element()
        if not is_hex:
            return element
        return _HexElement(element.is_negative, element.value, element.span)


def parse_module(
    text: str, filename: str = "<text>", context: Context | None = None
) -> builtin.ModuleOp:
    """Parse a module without verifying it.

    Raises:
        ParseError: xDSL's; it has the position of the error in the text.
    """
    return XetlParser(context or make_context(), text, filename).parse_module()


# Generic form -------------------------------------------------------------------------


# In MLIR's order at the time of the dialect's release.
_ATOMIC_KINDS = (
    *("addf", "addi", "assign", "maximumf", "maxs", "maxu", "minimumf", "mins"),
    *("minu", "mulf", "muli", "ori", "andi", "maxnumf", "minnumf", "xori"),
)
_PROPERTIES = {"broadcast_dim": "broadcast_dims", "reduction_dim": "reduction_dims"}


def settle(op: ir.Operation) -> None:
    """Rewrite in place an operation of our dialect that was read in generic form."""
    for names, target in ((_PROPERTIES, op.properties), (MAP_SPELLINGS, op.attributes)):
        for old, new in names.items():
            for found in (op.properties, op.attributes):
                if old in found:
                    target[new] = found.pop(old)
    if "kind" in op.properties:
        op.properties["kind"] = _kind(op.properties["kind"])
    if isinstance(op, StoreScatterOp) and isinstance(op.operands[1].type, TileType):
        value, tile, mask = op.operands
        op.operands = (value, mask, tile)


def _kind(given: ir.Attribute) -> ir.Attribute:
    if isinstance(given, CombiningKindAttr):
        return builtin.StringAttr(given.kind)
    if is_integer_attr(given) and 0 <= given.value.data < len(_ATOMIC_KINDS):
        return builtin.StringAttr(normalize_kind(_ATOMIC_KINDS[given.value.data]))
    return given
