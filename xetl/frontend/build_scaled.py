"""What ``dot_scaled`` asks of its operands; the product itself is made of others."""

from __future__ import annotations

from xetl.errors import NameLookupError, TileShapeError, TileTypeError, did_you_mean
from xetl.frontend.arguments import Call
from xetl.frontend.build_mma import check_addend
from xetl.frontend.calls import inline_operation
from xetl.frontend.context import builds
from xetl.frontend.types import Shape, Value, Vector, describe, show_shape
from xetl.language.dtypes import DType, bf16, f8e4m3, f8e5m2, f16, f32, i8, u8
from xetl.language.operation import body_of
from xetl.language.ops.scaled import SCALED_BLOCK, scaled_product

_DTYPES: dict[str, tuple[DType, ...]] = {
    "e4m3": (f8e4m3, u8, i8),
    "e5m2": (f8e5m2, u8, i8),
    "e2m1": (u8, i8),
    "bf16": (bf16,),
    "f16": (f16,),
}


@builds("dot_scaled")
def _dot_scaled(call: Call) -> Value:
    (rows, depth), (columns, other) = _extents(call, "a"), _extents(call, "b")
    if depth != other:
        raise call.error(
            TileShapeError,
            "X0201",
            f"`dot_scaled` cannot multiply {depth} numbers along K by {other}",
            "b",
            label=f"is {describe(call.value('b'))}, but `a` is"
            f" {describe(call.value('a'))}",
            help=f"K of a ({depth}) and of b ({other}) must agree; e2m1 has two"
            " numbers in a byte",
        )
    _check_scale(call, "a_scale", rows, depth)
    _check_scale(call, "b_scale", columns, depth)
    if call.value("c") is not None:
        check_addend(call, call.vector("c"), (rows, columns), f32)
    body = body_of(scaled_product)
    assert body is not None
    return inline_operation(call.ctx, body, call.args, call.node)


def _extents(call: Call, name: str) -> Shape:
    """The rows of ``a``, or columns of ``b``, and the numbers along K."""
    value, format_ = call.vector(name), _format(call, f"{name}_format")
    if len(value.shape) != 2:
        raise call.error(
            TileShapeError,
            "X0210",
            f"`dot_scaled` multiplies matrices, not {show_shape(value.shape)}",
            name,
            label=f"is {describe(value)}",
            help="make it a matrix with `v[None, :]` or `v[:, None]`",
        )
    if value.dtype not in _DTYPES[format_]:
        names = " or ".join(map(str, _DTYPES[format_]))
        raise call.error(
            TileTypeError,
            "X0314",
            f"`dot_scaled` takes {format_} as {names}, not as {value.dtype}",
            name,
            label=f"is {describe(value)}",
            help=f"convert it with `.to(...)`, or say another `{name}_format`",
        )
    outer, depth = value.shape if name == "a" else value.shape[::-1]
    return outer, depth * (2 if format_ == "e2m1" else 1)


def _format(call: Call, name: str) -> str:
    value = call.constant(name, "a format")
    if not isinstance(value, str) or value not in _DTYPES:
        meant = did_you_mean(value, _DTYPES) if isinstance(value, str) else None
        raise call.error(
            NameLookupError,
            "X0107",
            f"{describe(value)} is not a format of `dot_scaled`",
            name,
            help=meant or f"formats are {', '.join(map(repr, _DTYPES))}",
        )
    return value


def _check_scale(call: Call, name: str, outer: int, depth: int) -> None:
    if call.value(name) is None:
        return
    scale: Vector = call.vector(name)
    if scale.dtype not in (u8, i8):
        raise call.error(
            TileTypeError,
            "X0314",
            f"`{name}` of `dot_scaled` must be u8, not {scale.dtype}",
            name,
            label=f"is {describe(scale)}",
            help="a scale is the exponent of a power of two, and 127: 127 is 1.0",
        )
    if depth % SCALED_BLOCK:
        raise call.error(
            TileShapeError,
            "X0201",
            f"`dot_scaled` scales blocks of {SCALED_BLOCK} along K, and K is {depth}",
            name,
            help=f"take tiles of a multiple of {SCALED_BLOCK} along K, or no scale",
        )
    wanted = (outer, depth // SCALED_BLOCK)
    if scale.shape != wanted:
        side = "row of a" if name == "a_scale" else "column of b"
        raise call.error(
            TileShapeError,
            "X0201",
            f"`{name}` of `dot_scaled` must be {show_shape(wanted)}, not"
            f" {show_shape(scale.shape)}",
            name,
            label=f"is {describe(scale)}",
            help=f"it has a row for each {side}, and a column for each"
            f" {SCALED_BLOCK} numbers along K",
        )
