"""Limits of values that a kernel computes at compile time.

Sizes are estimated before the computation: `9**9**9` would take all memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sized
from typing import Any, cast

from xetl.frontend.context import Context
from xetl.settings import config

_SEQUENCES = (str, bytes, list, tuple)
_LONG_FIELD = re.compile(r"\d{5,}")


def check_count(ctx: Context, count: int, what: str, advice: str) -> None:
    """Refuse ``count`` iterations or calls if they make a kernel too long."""
    if count <= config.max_unrolled:
        return
    raise ctx.error(
        "X0605",
        f"{what} {count} times",
        notes=[f"at most {config.max_unrolled} times are allowed in a kernel"],
        help=f"{advice}, or set XETL_MAX_UNROLLED",
    )


def check_binary(ctx: Context, symbol: str, left: Any, right: Any) -> None:
    """Refuse ``left symbol right`` of constants if it becomes too large."""
    _check_size(ctx, _size_of(symbol, left, right), f"`{symbol}`")


def check_call(ctx: Context, function: Callable[..., Any], args: list[Any]) -> None:
    """Refuse a call of a Python function whose result becomes too large."""
    if function in (math.factorial, math.comb, math.perm):
        # Each factor has at most the bits of the first argument.
        first = args[0] if args and isinstance(args[0], int) else 0
        _check_size(ctx, first * first.bit_length(), f"`{function.__name__}`")


def check_format(ctx: Context, spec: str) -> None:
    """Refuse a format that pads a text to a great length."""
    sizes = map(int, _LONG_FIELD.findall(spec))
    _check_size(ctx, max(sizes, default=0), "this format")


def _size_of(symbol: str, left: Any, right: Any) -> int:
    """Estimate the size of a result: bits of an integer, or items of a sequence."""
    is_sequence = isinstance(left, _SEQUENCES)
    if symbol == "*" and isinstance(right, _SEQUENCES) and not is_sequence:
        return _size_of(symbol, cast("Any", right), left)
    if isinstance(left, str) and symbol == "%":
        return max(map(int, _LONG_FIELD.findall(left)), default=0)
    if is_sequence:
        length = len(cast("Sized", left))
        if symbol == "*" and isinstance(right, int):
            return length * max(right, 0)
        more = isinstance(right, _SEQUENCES)
        return length + len(cast("Sized", right)) if more else 0
    if not isinstance(left, int) or not isinstance(right, int):
        return 0
    if symbol == "**" and abs(left) > 1:
        return left.bit_length() * max(right, 0)
    if symbol == "<<" and left:
        return left.bit_length() + max(right, 0)
    return left.bit_length() + right.bit_length() if symbol == "*" else 0


def _check_size(ctx: Context, size: int, what: str) -> None:
    if size <= config.max_constant_size:
        return
    raise ctx.error(
        "X0316",
        f"the result of {what} is too large to compute when compiling",
        notes=[f"at most {config.max_constant_size} bits or items are allowed"],
        help="compute it before the launch, or set XETL_MAX_CONSTANT_SIZE",
    )
