"""The IR of ``tile_mma``, ``@`` and ``dot_scaled``, and checks of their operands.

``dot_scaled`` has more checks; its body consists of other operations.
"""

from __future__ import annotations

from typing import Any

from xetl.dialects import xetile
from xetl.errors import CompileError
from xetl.frontend.arguments import Call, builds
from xetl.frontend.build_tiles import maps_of
from xetl.frontend.calls import inline_operation
from xetl.frontend.types import Shape, Value, Vector, describe, element_type, show_shape
from xetl.language.dtypes import DType, bf16, f8e4m3, f8e5m2, f16, f32, f64, i8, i32, u8
from xetl.language.ops.scaled import SCALED_BLOCK, scaled_product

_ACCUMULATORS = {
    "f8e4m3": f32,
    "f8e5m2": f32,
    "f16": f32,
    "bf16": f32,
    "f32": f32,
    "f64": f64,
    "i8": i32,
    "u8": i32,
}
_MIXED = ({i8, u8}, {f8e4m3, f8e5m2})
"""Sets of dtypes: the two operands may have different dtypes of one set."""


@builds("tile_mma")
def _tile_mma(call: Call) -> Vector:
    a, b = call.vector("a", blocked=True), call.vector("b", blocked=True)
    c = None if call.value("c") is None else call.vector("c", blocked=True)
    shape, accumulator = _check(call, a, b)
    if c is not None:
        check_addend(call, c, shape, accumulator)
    wg, _ = maps_of(call, "wg_map", shape)
    others = {"wg_map_c": wg, "precision": _precision(call, a.dtype)}
    return _multiply(call, (a, b, c), shape, accumulator, **others)


@builds("matmul")
def _matmul(call: Call) -> Vector:
    a, b = call.vector("a"), call.vector("b")
    return _multiply(call, (a, b, None), *_check(call, a, b))


def _multiply(
    call: Call,
    operands: tuple[Vector, Vector, Vector | None],
    shape: Shape,
    accumulator: DType,
    **others: Any,
) -> Vector:
    a, b, c = operands
    op = xetile.TileMmaOp(
        *(a.ssa, b.ssa, None if c is None else c.ssa),
        acc_type=element_type(accumulator),
        a_unsigned=a.dtype.kind == "u",
        b_unsigned=b.dtype.kind == "u",
        **others,
    )
    return Vector(call.ctx.emit(op), shape, accumulator)


def _check(call: Call, a: Vector, b: Vector) -> tuple[Shape, DType]:
    """Check both operands; return the shape and the dtype of the product."""
    for name, operand in (("a", a), ("b", b)):
        if len(operand.shape) == 1:
            found = show_shape(operand.shape)
            problem = f"`{call.name}` multiplies matrices, not {found}"
            help_ = "make it a matrix with `v[None, :]` or `v[:, None]`"
            raise call.unfit("X0210", problem, name, help_)
    if len(a.shape) != len(b.shape):
        raise call.error(
            "X0210",
            f"`{call.name}` cannot multiply a blocked vector by one that is not",
            "b",
            label=f"is {describe(b)}, but the left side is {describe(a)}",
            help="pack both with xetile.tile_pack, or neither",
        )
    if a.shape[1::2] != b.shape[0::2]:
        raise _inner_extents(call, a, b)
    accumulator = _ACCUMULATORS.get(a.dtype.name)
    mixed = any({a.dtype, b.dtype} <= each for each in _MIXED)
    if accumulator is None or (a.dtype != b.dtype and not mixed):
        raise call.error(
            "X0314",
            f"`{call.name}` cannot multiply {a.dtype} by {b.dtype}",
            "b" if accumulator else "a",
            label=f"is {describe(b if accumulator else a)}",
            notes=[_made(b)],
            help="both sides need one dtype of f16, bf16, f32, f64, i8, u8, f8e4m3,"
            " f8e5m2: convert with `.to(...)`",
        )
    # The shape of ``a @ b``; for blocked operands the shape of blocks follows.
    pairs = zip(a.shape[0::2], b.shape[1::2], strict=True)
    return tuple(extent for pair in pairs for extent in pair), accumulator


def _inner_extents(call: Call, a: Vector, b: Vector) -> CompileError:
    first, second = (call.ctx.frame.text(call.args[n].node) for n in "ab")
    return call.error(
        "X0201",
        f"`{call.name}` cannot multiply {show_shape(a.shape)} by {show_shape(b.shape)}",
        "b",
        label=f"{describe(b)}, but the left tile has {_extent(a.shape[1::2])} columns",
        notes=[_made(b)],
        help=f"K of {_short(a, first, 'a')} ({_extent(a.shape[1::2])}) and of"
        f" {_short(b, second, 'b')} ({_extent(b.shape[0::2])}) must agree",
    )


def _extent(extents: Shape) -> str:
    """Return an extent as text: ``64``, or ``4 blocks of 16`` of a blocked vector."""
    return " blocks of ".join(map(str, extents))


def _short(operand: Vector, text: str, name: str) -> str:
    """Return a name of an operand: its variable, its tile's, or the parameter."""
    if text.isidentifier():
        return text
    if operand.origin is not None and operand.origin.name:
        return operand.origin.name
    return name


def _made(operand: Vector) -> str | None:
    return operand.origin.note() if operand.origin else None


def check_addend(call: Call, c: Vector, shape: Shape, dtype: DType) -> None:
    """Refuse an addend ``c`` of another shape or dtype than the accumulator."""
    if c.shape != shape:
        blocked = "" if len(shape) == 2 else ", packed alike"
        raise call.unfit(
            "X0201",
            f"`{call.name}` gives {show_shape(shape)}, but adds to"
            f" {show_shape(c.shape)}",
            "c",
            f"make the accumulator with xetile.zeros({_flat(shape)}, {dtype}){blocked}",
        )
    if c.dtype != dtype:
        problem = f"`{call.name}` accumulates in {dtype}, but adds to {c.dtype}"
        help_ = (
            f"make the accumulator with xetile.zeros({shape}, {dtype}) and"
            " convert the result with `.to(...)`"
        )
        raise call.unfit("X0314", problem, "c", help_)


def _flat(shape: Shape) -> Shape:
    rows, columns, *blocks = shape
    return (rows * blocks[0], columns * blocks[1]) if blocks else shape


def _precision(call: Call, dtype: DType) -> str | None:
    value = call.value("precision")
    if value == "ieee":
        return None
    if value not in (None, "tf32", "bf16x3"):
        problem = f"`{value}` is not a precision of `tile_mma`"
        help_ = 'precisions are None, "tf32" and "bf16x3"'
        raise call.error("X0107", problem, "precision", help=help_)
    if value is not None and dtype != f32:
        problem = f'`precision="{value}"` is for f32 operands, not {dtype}'
        raise call.error("X0314", problem, "precision")
    return value


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
    return inline_operation(call.ctx, scaled_product, call.args, call.node)


def _extents(call: Call, name: str) -> Shape:
    """Return the rows of ``a`` or the columns of ``b``, and the numbers along K."""
    value, format_ = call.vector(name), call.word(f"{name}_format", _DTYPES, "format")
    if len(value.shape) != 2:
        problem = f"`dot_scaled` multiplies matrices, not {show_shape(value.shape)}"
        help_ = "make it a matrix with `v[None, :]` or `v[:, None]`"
        raise call.unfit("X0210", problem, name, help_)
    if value.dtype not in _DTYPES[format_]:
        names = " or ".join(map(str, _DTYPES[format_]))
        problem = f"`dot_scaled` takes {format_} as {names}, not as {value.dtype}"
        help_ = f"convert it with `.to(...)`, or say another `{name}_format`"
        raise call.unfit("X0314", problem, name, help_)
    outer, depth = value.shape if name == "a" else value.shape[::-1]
    return outer, depth * (2 if format_ == "e2m1" else 1)


def _check_scale(call: Call, name: str, outer: int, depth: int) -> None:
    if call.value(name) is None:
        return
    scale: Vector = call.vector(name)
    if scale.dtype not in (u8, i8):
        problem = f"`{name}` of `dot_scaled` must be u8, not {scale.dtype}"
        help_ = "a scale is the exponent of a power of two, and 127: 127 is 1.0"
        raise call.unfit("X0314", problem, name, help_)
    if depth % SCALED_BLOCK:
        problem = (
            f"`dot_scaled` scales blocks of {SCALED_BLOCK} along K, and K is {depth}"
        )
        help_ = f"take tiles of a multiple of {SCALED_BLOCK} along K, or no scale"
        raise call.error("X0201", problem, name, help=help_)
    wanted = (outer, depth // SCALED_BLOCK)
    if scale.shape != wanted:
        side = "row of a" if name == "a_scale" else "column of b"
        raise call.unfit(
            "X0201",
            f"`{name}` of `dot_scaled` must be {show_shape(wanted)}, not"
            f" {show_shape(scale.shape)}",
            name,
            f"it has a row for each {side}, and a column for each"
            f" {SCALED_BLOCK} numbers along K",
        )
