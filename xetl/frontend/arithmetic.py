"""Operators on scalars and vectors: promotion, broadcasting, and the operation."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from xetl.dialects.upstream import arith, math
from xetl.errors import CompileError, TileTypeError
from xetl.frontend import casts, operators
from xetl.frontend.arguments import (
    Arg,
    check_readable,
    dtype_of,
    refuse_blocked,
    wrong_kind,
)
from xetl.frontend.context import Context
from xetl.frontend.limits import check_binary
from xetl.frontend.operators import divide, divide_scalars, power, power_of_scalars
from xetl.frontend.types import (
    FRONTEND_ONLY,
    Scalar,
    Shape,
    Value,
    Vector,
    describe,
    is_constant,
    is_scalar,
    items_of,
    scalar_kind,
    show_shape,
)
from xetl.language.dtypes import DType, f32, i1, i64, promote, u64
from xetl.records import record


@record(frozen=True)
class Unified:
    """Operands that were converted to one dtype and broadcast to one shape."""

    vectors: list[Vector]
    shape: Shape
    dtype: DType


def binary(ctx: Context, op: operators.Binary, left: Arg, right: Arg) -> Value:
    """Compile ``left op right`` for operands of any kind."""
    if is_constant(left.value) and is_constant(right.value):
        return _fold(ctx, op, left, right)
    joined = _join_tuples(ctx, op, left.value, right.value)
    if joined is not None:
        return joined
    check_operands(ctx, op.symbol, [left, right])
    if is_scalar(left.value) and is_scalar(right.value):
        _check_amount(ctx, op, right, i64)
        return binary_scalars(ctx, op, left.value, right.value)
    if op is operators.POW:
        quick = power(ctx, left, right)
        if quick is not None:
            return quick
    to_floats = op in (operators.DIV, operators.POW)
    both = unify(ctx, op.symbol, [left, right], to_floats=to_floats)
    dtype, (first, second) = both.dtype, both.vectors
    if op in (operators.FLOORDIV, operators.MOD) and not dtype.is_bool:
        return divide(ctx, op, first, second, is_constant(right.value) and right.value)
    if op is operators.POW and dtype.is_float:
        return _vector(ctx.emit(math.PowfOp(first.ssa, second.ssa)), both)
    maker = op.maker(dtype)
    if maker is None:
        raise no_such_operator(ctx, op.symbol, dtype)
    _check_amount(ctx, op, right, dtype)
    return _vector(ctx.emit(maker(first.ssa, second.ssa)), both)


def _check_amount(ctx: Context, op: operators.Binary, by: Arg, dtype: DType) -> None:
    """Refuse a shift by a constant that is too large: in LLVM its result is poison."""
    if op not in (operators.SHL, operators.SHR) or not is_constant(by.value):
        return
    if not 0 <= by.value < dtype.bits:
        problem = f"`{op.symbol}` by {by.value} is not defined on {dtype}"
        advice = f"shift by 0 to {dtype.bits - 1}, or convert to a wider dtype first"
        raise ctx.error("X0304", problem, by.node, help=advice)


def _join_tuples(
    ctx: Context, op: operators.Binary, left: Value, right: Value
) -> tuple[Value, ...] | None:
    """Return ``tuple + tuple`` or ``tuple * int``; None for other operands."""
    items = items_of(left)
    if items is None:
        return None
    others = items_of(right)
    if op is operators.ADD and others is not None:
        return (*items, *others)
    if op is operators.MUL and isinstance(right, int):
        check_binary(ctx, "*", items, right)
        return (*items,) * right
    return None


def _fold(
    ctx: Context, op: operators.Binary | operators.Comparison, left: Arg, right: Arg
) -> Value:
    check_readable(ctx, left, right)
    check_binary(ctx, op.symbol, left.value, right.value)
    try:
        return op.python(left.value, right.value)
    except Exception as problem:
        raise ctx.error(
            "X0307",
            f"`{op.symbol}` of constants failed: {problem}",
            label=f"{describe(left.value)} {op.symbol} {describe(right.value)}",
        ) from None


def check_operands(ctx: Context, symbol: str, args: Sequence[Arg]) -> None:
    """Check that every operand is a number or a vector."""
    for arg in args:
        if not is_scalar(arg.value) and not isinstance(arg.value, Vector):
            what = f"an operand of `{symbol}`"
            raise wrong_kind(ctx, what, "a vector or a number", arg)
        refuse_blocked(ctx, symbol, arg)


# Vectors ----------------------------------------------------------------------------


def _vector(ssa: SSAValue, like: Unified, dtype: DType | None = None) -> Vector:
    return Vector(ssa, like.shape, dtype or like.dtype)


def no_such_operator(ctx: Context, symbol: str, dtype: DType) -> CompileError:
    """Return the error for such as `+` on masks, or `&` on floats."""
    if dtype.is_bool:
        advice = "convert the mask first: `.to(xetile.i32)`, or use xetile.where"
    else:
        advice = "convert first: `.to(xetile.i32)`"
    return ctx.error("X0304", f"`{symbol}` is not defined on {dtype}", help=advice)


def unify(
    ctx: Context, symbol: str, args: Sequence[Arg], *, to_floats: bool = False
) -> Unified:
    """Convert operands, at least one of them a vector, to one dtype and one shape.

    Raises:
        TileTypeError: there is no common dtype.
        TileShapeError: the shapes do not broadcast.
    """
    check_operands(ctx, symbol, args)
    dtype = _common_dtype(ctx, symbol, args)
    if to_floats and not dtype.is_float and not dtype.is_bool:
        dtype = f32
    shape = common_shape(ctx, symbol, args)
    vectors = [_coerce(ctx, arg.value, shape, dtype) for arg in args]
    return Unified(vectors, shape, dtype)


def _coerce(ctx: Context, value: Value, shape: Shape, dtype: DType) -> Vector:
    if isinstance(value, Vector):
        return casts.broadcast(ctx, casts.convert(ctx, value, dtype), shape)
    return casts.splat(ctx, value, shape, dtype)


def _common_dtype(ctx: Context, symbol: str, args: Sequence[Arg]) -> DType:
    vectors = [arg for arg in args if isinstance(arg.value, Vector)]
    dtype: DType = vectors[0].value.dtype
    for arg in vectors[1:]:
        try:
            dtype = promote(dtype, arg.value.dtype)
        except TileTypeError as error:
            error.label = f"is {describe(arg.value)}, but the other side is {dtype}"
            raise ctx.locate_error(error, arg.node) from None
    kinds = {scalar_kind(arg.value): arg for arg in args if is_scalar(arg.value)}
    for kind, arg in kinds.items():
        if (kind == "bool") != dtype.is_bool:
            problem = f"`{symbol}` cannot join {dtype} and {describe(arg.value)}"
            help_ = "convert the mask with `.to(...)`, or use xetile.where"
            raise ctx.error(
                "X0302", problem, arg.node, notes=["a mask is not a number"], help=help_
            )
    return f32 if "float" in kinds and dtype.is_integer else dtype


def common_shape(ctx: Context, symbol: str, args: Sequence[Arg]) -> Shape:
    """Return the shape that the vectors among the operands broadcast to.

    Raises:
        TileShapeError: the shapes do not broadcast.
    """
    shape: Shape = ()
    for arg in args:
        if not isinstance(arg.value, Vector):
            continue
        joined = casts.broadcast_shapes(shape, arg.value.shape)
        if joined is None:
            raise shape_error(ctx, symbol, shape, arg)
        shape = joined
    return shape


def shape_error(ctx: Context, symbol: str, other: Shape, arg: Arg) -> CompileError:
    """Return the error for an operand that does not broadcast with ``other``."""
    origin = arg.value.origin
    return ctx.error(
        "X0202",
        f"`{symbol}` cannot broadcast {show_shape(other)} with"
        f" {show_shape(arg.value.shape)}",
        arg.node,
        label=f"{describe(arg.value)}, but the other side is {show_shape(other)}",
        notes=[origin.note() if origin else None],
        help="extents must be equal, or one of them 1",
    )


# Scalars ----------------------------------------------------------------------------


def binary_scalars(
    ctx: Context, op: operators.Binary, left: Value, right: Value
) -> Value:
    """Compile ``left op right`` for two numbers, at least one known only at run time.

    They are 64-bit ints, f64 or i1.
    """
    kinds = {scalar_kind(left), scalar_kind(right)}
    if op is operators.POW:
        return power_of_scalars(ctx, left, right)
    if kinds == {"bool"} and op.masks and op.signed is not None:
        one, other = casts.runtime(ctx, left).ssa, casts.runtime(ctx, right).ssa
        return Scalar(ctx.emit(op.signed(one, other)), "bool")
    if op in (operators.FLOORDIV, operators.MOD):
        return divide_scalars(ctx, op, left, right)
    if op is operators.DIV or "float" in kinds:
        if op.floats is None:
            raise ctx.error("X0304", f"`{op.symbol}` is not defined on floats")
        one, other = casts.to_float(ctx, left), casts.to_float(ctx, right)
        wide = casts.wide_of("float", left, right)
        return Scalar(ctx.emit(op.floats(one, other)), "float", wide)
    if _is_neutral(op, right):
        return left
    if op.symbol in "+*" and _is_neutral(op, left):
        return right
    wide = casts.wide_of("int", left, right)
    maker = op.maker(wide or i64)
    assert maker is not None
    one, other = casts.to_int(ctx, left), casts.to_int(ctx, right)
    return Scalar(ctx.emit(maker(one, other)), "int", wide)


def _is_neutral(op: operators.Binary, value: Value) -> bool:
    if isinstance(value, (Scalar, bool)):
        return False
    return value == (1 if op is operators.MUL else 0) and op.symbol in "+-*"


# Comparisons and truth --------------------------------------------------------------


def compare(ctx: Context, op: operators.Comparison, left: Arg, right: Arg) -> Value:
    """Compile ``left op right`` to a condition, or to a mask if a side is a vector."""
    if is_constant(left.value) and is_constant(right.value):
        return _fold(ctx, op, _as_dtype(ctx, left, right), _as_dtype(ctx, right, left))
    if op.symbol in ("==", "!=") and _never_equal(left.value, right.value):
        return op.symbol == "!="
    check_operands(ctx, op.symbol, [left, right])
    if is_scalar(left.value) and is_scalar(right.value):
        if "float" in (scalar_kind(left.value), scalar_kind(right.value)):
            one, other = (casts.to_float(ctx, arg.value) for arg in (left, right))
            return Scalar(ctx.emit(arith.CmpfOp(op.floats, one, other)), "bool")
        one, other = casts.to_int(ctx, left.value), casts.to_int(ctx, right.value)
        wide = casts.wide_of("int", left.value, right.value)
        predicate = op.unsigned if wide == u64 else op.signed
        return Scalar(ctx.emit(arith.CmpiOp(predicate, one, other)), "bool")
    both = unify(ctx, op.symbol, [left, right])
    first, second = (vector.ssa for vector in both.vectors)
    if both.dtype.is_float:
        return _vector(ctx.emit(arith.CmpfOp(op.floats, first, second)), both, i1)
    predicate = op.signed if both.dtype.kind == "i" else op.unsigned
    return _vector(ctx.emit(arith.CmpiOp(predicate, first, second)), both, i1)


def _as_dtype(ctx: Context, arg: Arg, other: Arg) -> Arg:
    """Convert ``np.float32``, ``torch.float32`` or a name that meets a dtype."""
    if not isinstance(other.value, DType):
        return arg
    dtype = dtype_of(ctx, arg)
    return arg if dtype is None else Arg(dtype, arg.node)


def _never_equal(left: Value, right: Value) -> bool:
    """Whether one side is a Python object that equals no run-time value."""
    both = left, right
    is_object = any(is_constant(value) and not is_scalar(value) for value in both)
    return is_object and any(isinstance(value, FRONTEND_ONLY) for value in both)


def truth(ctx: Context, arg: Arg) -> bool | Scalar:
    """Return the truth of a value: a compile-time bool, or a run-time i1."""
    value = arg.value
    if isinstance(value, Scalar):
        return Scalar(casts.truth_of_scalar(ctx, value), "bool")
    if is_constant(value):
        check_readable(ctx, arg)
        return bool(value)
    if isinstance(value, Vector):
        problem = f"a vector has no truth value: {describe(value)}"
        help_ = "choose lanes with xetile.where, combine masks with `&`, `|`, `~`"
        raise ctx.error("X0308", problem, arg.node, help=help_)
    items = items_of(value)
    if items is not None:
        return bool(items)
    raise wrong_kind(ctx, "a condition", "a number or a comparison", arg)


def select(
    ctx: Context, is_and: bool, condition: Scalar, first: Value, second: Value
) -> Scalar:
    """Compile ``first and second`` or ``first or second`` for values of one kind.

    ``condition`` is the truth of ``first``.
    """
    one, other = casts.runtime(ctx, first), casts.runtime(ctx, second)
    if one.kind == "bool":
        op = arith.AndiOp if is_and else arith.OriOp
        return Scalar(ctx.emit(op(one.ssa, other.ssa)), "bool")
    values = (other.ssa, one.ssa) if is_and else (one.ssa, other.ssa)
    wide = casts.wide_of(one.kind, one, other)
    return Scalar(ctx.emit(arith.SelectOp(condition.ssa, *values)), one.kind, wide)


def negate(ctx: Context, condition: Scalar) -> Scalar:
    """Compile ``not condition``."""
    flipped = arith.XoriOp(condition.ssa, casts.runtime(ctx, True).ssa)
    return Scalar(ctx.emit(flipped), "bool")
