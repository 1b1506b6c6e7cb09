"""Print and read numbers so that dense constants keep every bit.

xDSL's printer treats ``[0.0, -0.0]`` as a splat, and its parser reads the hex form of a
float inside ``dense<...>`` as an integer. Both change values silently.
Source: MLIR, builtin attributes, "DenseIntOrFPElementsAttr".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects import builtin
from xdsl.ir import Attribute

from .base import Dense, Vector, element_type, is_dense, is_integer_attr, is_vector

if TYPE_CHECKING:
    from xdsl.printer import Printer

# Longer lists are printed as one hex string, as MLIR does.
LONGEST_LIST = 100


def splat_bytes(dense: builtin.DenseIntOrFPElementsAttr) -> bytes | None:
    """Return the bytes of a splat's value. Return None if the elements differ."""
    data = dense.data.data
    size = dense.type.element_type.compile_time_size
    first = data[:size]
    return first if first and first * (len(data) // size) == data else None


def splat_value(attribute: Attribute) -> int | float | None:
    """Return the number of a scalar or splat constant; booleans are 0 and 1."""
    if isinstance(attribute, builtin.FloatAttr):
        return attribute.value.data
    if is_integer_attr(attribute):
        type_ = attribute.type
        value = attribute.value.data
        return abs(value) if type_ == builtin.i1 else value
    if is_dense(attribute):
        data = splat_bytes(attribute)
        if data is None:
            return None
        value = attribute.type.element_type.unpack(data, 1)[0]
        return abs(value) if attribute.type.element_type == builtin.i1 else value
    return None


@lru_cache(maxsize=4096)
def integer_attr(number: int, type_: Any) -> builtin.IntegerAttr[Any]:
    """Return an integer; made once each: a kernel has hundreds, and one takes 15 us."""
    return builtin.IntegerAttr(number, type_)


def make_splat(value: int | float, type_: Attribute) -> Attribute:
    """Return the constant ``value`` of a scalar or vector type."""
    element: Any = element_type(type_)
    if isinstance(element, builtin.AnyFloat):
        number = float(value)
    else:
        number = wrap(int(value), getattr(element, "bitwidth", 64))
    if is_vector(type_):
        return builtin.DenseIntOrFPElementsAttr.from_list(cast("Any", type_), [number])
    make: Any = builtin.FloatAttr if isinstance(number, float) else integer_attr
    return make(number, element)


def with_type(dense: Dense, type_: Vector) -> Attribute:
    """Return the same elements, row-major, with a vector type of another shape."""
    return builtin.DenseIntOrFPElementsAttr(type_, dense.data)  # pyright: ignore[reportArgumentType] (elements may be anything here)


def wrap(value: int, bits: int) -> int:
    """Wrap ``value`` to a signed integer of ``bits`` bits; i1 is 0 or 1."""
    half = 1 << (bits - 1)
    if bits == 1:
        return value & 1
    return value if -half <= value < half else ((value + half) & (2 * half - 1)) - half


def print_dense(printer: Printer, dense: builtin.DenseIntOrFPElementsAttr) -> None:
    """Print ``dense<...> : type`` so that parsing gives the same bytes."""
    element = dense.type.element_type
    data, size = dense.data.data, element.compile_time_size
    printer.print_string("dense<")
    if (splat := splat_bytes(dense)) is not None:
        _print_number(printer, element.unpack(splat, 1)[0], element)
    elif len(data) // size > LONGEST_LIST:
        printer.print_string(f'"0x{data.hex().upper()}"')
    elif data:
        values = iter(element.unpack(data, len(data) // size))
        _print_nested(printer, dense.get_shape(), values, element)
    printer.print_string("> : ")
    printer.print_attribute(dense.type)


def _print_nested(
    printer: Printer, shape: Sequence[int], values: Iterator[object], element: Attribute
) -> None:
    if not shape:
        _print_number(printer, next(values), element)
        return
    with printer.in_square_brackets():
        printer.print_list(
            range(shape[0]),
            lambda _: _print_nested(printer, shape[1:], values, element),
        )


def _print_number(printer: Printer, value: object, element: Attribute) -> None:
    if isinstance(element, builtin.AnyFloat):
        number = float(value)  # pyright: ignore[reportArgumentType]
        if math.isfinite(number):
            printer.print_float(number, element)
        else:
            printer.print_string(f"0x{element.pack((number,))[::-1].hex().upper()}")
    elif element == builtin.i1:
        printer.print_string("true" if value else "false")
    else:
        printer.print_string(str(value))
