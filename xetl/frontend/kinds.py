"""Kinds of reductions and atomics: the user's names as MLIR's."""

from __future__ import annotations

from xetl.errors import NameLookupError, TileTypeError, did_you_mean
from xetl.frontend.arguments import Call
from xetl.language.dtypes import DType

KINDS = ("add", "mul", "max", "min", "and", "or", "xor")
_BITWISE = ("and", "or", "xor")


def combining_kind(call: Call, dtype: DType) -> str:
    """Argument ``kind`` for elements of ``dtype``."""
    kind = call.constant("kind", "a string")
    if kind not in KINDS:
        raise call.error(
            NameLookupError,
            "X0107",
            f"`{kind}` is not a kind of `{call.name}`",
            "kind",
            help=did_you_mean(str(kind), KINDS) or f"kinds are {', '.join(KINDS)}",
        )
    return kind_of(call, kind, dtype)


def kind_of(call: Call, kind: str, dtype: DType) -> str:
    """MLIR's name of ``kind`` on ``dtype``; NaN wins in max and min.

    Raises:
        TileTypeError: the kind has no meaning on the dtype.
    """
    if (kind in _BITWISE and dtype.is_float) or (
        kind not in _BITWISE and dtype.is_bool
    ):
        advice = "convert it first: `.to(xetile.i32)`"
        raise call.error(
            TileTypeError,
            "X0304",
            f"`{kind}` of {dtype} has no meaning",
            help=advice,
        )
    if kind not in ("max", "min"):
        return kind
    if dtype.is_float:
        return f"{kind}imumf"
    return f"{kind}si" if dtype.kind == "i" else f"{kind}ui"
