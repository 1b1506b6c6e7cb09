"""Noticing that a global a kernel uses means something else by now.

Code is made for the values that globals and closure variables had. Whether they are
still the same objects is asked at every launch, so the question is compiled: for four
names it takes 0.1 us, a loop three times as long. A value changed in place (an element
of a list) is not noticed; one that is assigned anew is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Captured(NamedTuple):
    """A value and where it was found.

    Attributes:
        owner: a namespace, a closure cell, a module or a class.
        access: the rest of the expression that leads to the value, such as ``.BM``.
        value: what was there.
    """

    owner: Any
    access: str
    value: object


def unchanged_check(captured: Sequence[Captured]) -> Callable[[], bool] | None:
    """A function that says whether all values are still in place; None: no need."""
    seen: dict[tuple[int, str], Captured] = {}
    for each in captured:
        if _is_stable(each):
            seen.setdefault((id(each.owner), each.access), each)
    if not seen:
        return None
    scope: dict[str, Any] = {}
    tests: list[str] = []
    for index, each in enumerate(seen.values()):
        scope[f"o{index}"], scope[f"v{index}"] = each.owner, each.value
        tests.append(f"o{index}{each.access} is v{index}")
    # As defaults the objects are local variables, which are the fastest to read.
    parameters = ", ".join(f"{name}={name}" for name in scope)
    exec(_CHECK.format(parameters, " and ".join(tests)), scope)
    return scope["unchanged"]


_CHECK = """
def unchanged({}):
    try:
        return {}
    except (KeyError, AttributeError, ValueError, NameError):  # it is gone
        return False
"""


def _is_stable(each: Captured) -> bool:
    """Whether asking again gives the same object: not so for bound methods."""
    check = f"owner{each.access} is value"
    try:
        return eval(check, {"owner": each.owner, "value": each.value})
    except Exception:  # attributes of users' modules and classes may do anything
        return False
