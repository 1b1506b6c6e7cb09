"""Noticing that something a kernel read means something else by now.

Code is made for the values that names, attributes and elements had. Whether they are
still the same objects is asked at every launch, so the question is compiled: for four
names it takes 0.1 us, a loop three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

from xetl.language.contents import content
from xetl.language.reads import Captured

_LITERALS = (int, str)


def unchanged_check(captured: Sequence[Captured]) -> Callable[[], bool] | None:
    """A function that says whether all values are still in place; None: no need."""
    seen: dict[tuple[object, ...], Captured] = {}
    for each in captured:
        key = each.key if type(each.key) in _LITERALS else id(each.key)
        seen.setdefault((id(each.owner), each.test, type(each.key), key), each)
    if not seen:
        return None
    scope: dict[str, Any] = {}
    tests: list[str] = []
    for index, each in enumerate(seen.values()):
        key = f"k{index}"
        scope[f"o{index}"], scope[f"v{index}"] = each.owner, each.value
        if type(each.key) in _LITERALS:
            key = repr(each.key)
        elif "{k}" in each.test:
            scope[key] = each.key
        tests.append(each.test.format(o=f"o{index}", v=f"v{index}", k=key))
    # As defaults the objects are local variables, which are the fastest to read.
    parameters = ", ".join(f"{name}={name}" for name in scope)
    scope |= {"content": content, "is_": is_}
    exec(_CHECK.format(parameters, " and ".join(tests)), scope)
    return scope["unchanged"]


_CHECK = """
def unchanged({}):
    try:
        return {}
    except Exception:  # it is gone; attributes of a user's classes may do anything
        return False
"""
