"""Arithmetic of numbers that a kernel gets: a list of *slots*, evaluated in order.

A slot is ``[operation, slots or numbers]``, JSON; those it needs stand before it, so
chains of any length cost no recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Slots = Sequence[list[Any]]


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def _halfway(start: int, end: int, step: int) -> int:
    return start + step * (_trips(start, end, step) // 2)


def _trips(start: int, end: int, step: int) -> int:
    return max(0, _ceildiv(end - start, step))


def _left(a: int, b: int) -> int:
    return a << (b & 63)


def _right(a: int, b: int) -> int:
    return a >> (b & 63)


OPERATIONS: Mapping[str, Callable[..., int]] = {
    "addi": int.__add__,
    "subi": int.__sub__,
    "muli": int.__mul__,
    "divsi": int.__floordiv__,
    "divui": int.__floordiv__,
    "floordivsi": int.__floordiv__,
    "ceildivsi": _ceildiv,
    "ceildivui": _ceildiv,
    "remsi": int.__mod__,
    "remui": int.__mod__,
    "minsi": min,
    "minui": min,
    "maxsi": max,
    "maxui": max,
    "andi": int.__and__,
    "ori": int.__or__,
    "xori": int.__xor__,
    "shli": _left,
    "shrsi": _right,
    "shrui": _right,
    "halfway": _halfway,
    "trips": _trips,
}
_HALF = 1 << 63
_SOME = 4096
"""A size that nobody said."""


def evaluate(
    slots: Slots,
    words: Sequence[int | None],
    program: Sequence[int],
    grid: Sequence[int],
    subgroup: int = 0,
) -> list[int | None]:
    """The value of each slot; None where it depends on what is not known.

    Args:
        slots: in order.
        words: what the kernel gets as arguments; those left out are 4096.
        program: its number along each axis.
        grid: programs along each axis.
        subgroup: its number in the program.
    """
    known = {"program": program, "grid": grid, "subgroup": [subgroup]}
    found: list[int | None] = []
    for slot in slots:
        kind: str = slot[0]
        rest: list[int] = slot[1:]
        if kind == "number":
            found.append(rest[0])
        elif kind == "word":
            word = words[rest[0]] if rest[0] < len(words) else None
            found.append(_SOME if word is None else word)
        elif kind in known:
            found.append(known[kind][rest[0]])
        else:
            found.append(_computed(kind, [found[each] for each in rest]))
    return found


def _computed(kind: str, operands: Sequence[int | None]) -> int | None:
    do = OPERATIONS.get(kind)
    numbers = [each for each in operands if each is not None]
    if do is None or len(numbers) < len(operands):
        return None
    try:
        found = do(*numbers)
    except (ArithmeticError, ValueError):
        return None
    return (found + _HALF) % (2 * _HALF) - _HALF


LEAVES = ("number", "word", "program", "grid", "subgroup")
"""Slots whose second part is no slot."""
