"""expand-small-floats: floats of eight bits become i8, and arithmetic on them f32.

*What*: `f8E4M3FN` and `f8E5M2` in memory, tiles and values are i8.  A conversion is
integer arithmetic; a product takes bf16, which holds every such number; any other
computation widens to f32 and rounds its result once.
*Why*: what backends do not know they need not be taught.
*Left alone*: what only moves elements; modules without such types.
Raises: IRError for atomics on them.

before: %p = xetile.tile_mma %a, %b : vector<8x32xf8E5M2>, vector<32x16xf8E5M2> -> ...
after:  %w = ... : vector<8x32xi8> to vector<8x32xbf16>
        %p = xetile.tile_mma %w, %v : vector<8x32xbf16>, vector<32x16xbf16> -> ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    bf16,
    f32,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from xetl.dialects import xetile
from xetl.dialects.base import with_element
from xetl.dialects.literals import wrap
from xetl.dialects.upstream import arith, memref, vector
from xetl.ir.builder import Builder
from xetl.ir.small_floats import (
    CODE,
    element_of,
    extended,
    format_of,
    is_small,
    truncated,
)
from xetl.language.dtypes import DType
from xetl.transforms.diagnostics import refusal

_MOVES = (arith.ConstantOp, arith.SelectOp, arith.BitcastOp)
_CONVERSIONS = (arith.ExtfOp, arith.TruncfOp)
_COMPUTES = (
    *(xetile.TileMmaOp, xetile.TileReduceOp, xetile.TileScanOp, xetile.PrintOp),
    *(vector.ReductionOp, vector.MultiReductionOp, vector.FmaOp),
    *(vector.ContractOp, vector.OuterproductOp),
)
_ATOMIC = (xetile.AtomicRmwTileOp, memref.AtomicRmwOp)


class ExpandSmallFloatsPass(ModulePass):
    """See the module docstring."""

    name = "expand-small-floats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ``op`` in place.

        Raises:
            IRError: an atomic updates such elements.
        """
        if not any(map(_has_small, op.walk())):
            return
        wide: dict[tuple[SSAValue, Attribute], SSAValue] = {}
        for each in list(op.walk()):
            _widen(each, wide)
        conversions = [(each, _conversion(each)) for each in op.walk()]
        for each, make in conversions:
            if make is not None:
                _replace(each, make)
        retype = _retyper()
        for each in op.walk():
            _retype(each, retype)


def _has_small(op: Operation) -> bool:
    return any(is_small(value.type) for value in _values(op))


def _values(op: Operation) -> list[SSAValue]:
    """The values that an operation defines, those of its regions as well."""
    blocks = [block for region in op.regions for block in region.blocks]
    return [*op.results, *(arg for block in blocks for arg in block.args)]


# What computes does so in a wider type ----------------------------------------------


def _widen(op: Operation, wide: dict[tuple[SSAValue, Attribute], SSAValue]) -> None:
    """Let an operation that computes read and give wider values."""
    if isinstance(op, _ATOMIC):
        _check_atomic(op)
    padding = op.properties.get("padding")
    if isinstance(padding, IntegerAttr | FloatAttr) and is_small(op.operands[0].type):
        number = float(padding.value.data)
        op.properties["padding"] = _code_of(number, element_of(op.operands[0].type))
    if not _computes(op):
        return
    for index, value in enumerate(op.operands):
        if is_small(value.type):
            to = bf16 if isinstance(op, xetile.TileMmaOp) and index < 2 else f32
            key = (value, to)
            if key not in wide:
                extend = arith.ExtfOp(value, with_element(value.type, to))
                wide[key] = Builder.after(value).insert(extend)
            op.operands[index] = wide[key]
    for result in op.results:
        if is_small(result.type):
            narrow = result.type
            new = Rewriter.replace_value_with_new_type(
                result, with_element(narrow, f32)
            )
            rounded = arith.TruncfOp(new, narrow)
            new.replace_all_uses_with(Builder.after(op).insert(rounded))
            rounded.operands[0] = new


def _computes(op: Operation) -> bool:
    if op.name.startswith(("arith.", "math.")):
        return not isinstance(op, (*_MOVES, *_CONVERSIONS))
    return isinstance(op, _COMPUTES)


def _check_atomic(op: xetile.AtomicRmwTileOp | memref.AtomicRmwOp) -> None:
    for value in op.operands:
        if is_small(value.type):
            raise refusal(
                op,
                f"elements of {element_of(value.type)} cannot be updated",
                "atomics exist for i32, i64, f32 and f64, and `add` for f16 and bf16",
            )


# Conversions ------------------------------------------------------------------------


def _conversion(op: Operation) -> Callable[[Builder], SSAValue] | None:
    """What builds the result of a conversion in its place; None for other operations.

    It keeps the formats: by the time it builds, operands may be codes.
    """
    if isinstance(op, arith.ExtfOp) and is_small(op.source.type):
        form = format_of(op.source.type)
        return lambda build: extended(build, op.source, form, op.result.type)
    if isinstance(op, arith.TruncfOp) and is_small(op.result.type):
        form = format_of(op.result.type)
        return lambda build: truncated(build, op.source, form)
    if isinstance(op, arith.BitcastOp) and (
        is_small(op.source.type) or is_small(op.result.type)
    ):
        return lambda build: op.source
    return None


def _replace(op: Operation, make: Callable[[Builder], SSAValue]) -> None:
    op.results[0].replace_all_uses_with(make(Builder.before(op)))
    Rewriter.erase_op(op)


# Types ------------------------------------------------------------------------------


def _retype(op: Operation, retype: Callable[[Attribute], Attribute]) -> None:
    """Give an operation, and the values it defines, types of i8."""
    for value in _values(op):
        new = retype(value.type)
        if new is not value.type:
            Rewriter.replace_value_with_new_type(value, new)
    for holder in (op.properties, op.attributes):
        for name, attribute in holder.items():
            holder[name] = retype(attribute)


def _retyper() -> Callable[[Attribute], Attribute]:
    """A function from attributes and types to those of i8; it remembers them."""
    known: dict[Attribute, Attribute] = {}

    def convert(attribute: Attribute) -> Attribute:
        if is_small(attribute) and isinstance(attribute, AnyFloat):
            return CODE
        if isinstance(attribute, FloatAttr):
            number = cast("FloatAttr[AnyFloat]", attribute)
            is_code = is_small(number.type)
            return _code_of(number.value.data, number.type) if is_code else number
        if isinstance(attribute, ArrayAttr):
            items = cast("ArrayAttr[Attribute]", attribute).data
            return ArrayAttr([retype(each) for each in items])
        if isinstance(attribute, DictionaryAttr):
            return DictionaryAttr({k: retype(v) for k, v in attribute.data.items()})
        if isinstance(attribute, ParametrizedAttribute):
            new = [retype(each) for each in attribute.parameters]
            if any(one is not other for one, other in zip(new, attribute.parameters)):
                return type(attribute).new(new)
        return attribute

    def retype(attribute: Attribute) -> Attribute:
        found = known.get(attribute)
        if found is None:
            converted = convert(attribute)
            # Itself where nothing changes: what is equal need not be built again.
            found = attribute if converted == attribute else converted
            known[attribute] = found
        return found

    return retype


def _code_of(number: float, type_: Attribute) -> IntegerAttr:
    with np.errstate(over="ignore", invalid="ignore"):
        code = DType.of(str(type_)).numpy.type(number).view(np.uint8)
    return IntegerAttr(wrap(int(code), 8), CODE)
