"""Assembly of SPIR-V as LLVM 22 prints it: checked, and as `spirv-as` reads it.

Sources: SPIR-V specification 1.6; SPV_INTEL_cache_controls.
"""

from __future__ import annotations

import re

_DEFINITION = re.compile(r"^\s*(%\w+) = ", re.MULTILINE)
_ID = re.compile(r"%\w+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CACHE_CONTROL = re.compile(r"(CacheControl(Load|Store)INTEL \d+) (\d+)")
_CACHE_CONTROLS = {
    "Load": ("Uncached", "Cached", "Streaming", "InvalidateAfterRead", "ConstCached"),
    "Store": ("Uncached", "WriteThrough", "WriteBack", "Streaming"),
}


def problem_with_text(text: str) -> str | None:
    """What is wrong with a module: a number given twice or never, no end."""
    text = _STRING.sub("", text)
    defined = _DEFINITION.findall(text)
    known = set(defined)
    if len(known) < len(defined):
        twice = next(each for each in defined if defined.count(each) > 1)
        return f"{twice} is defined more than once"
    unknown = set(_ID.findall(text)) - known
    if unknown:
        return f"{min(unknown)} is not defined"
    return None if text.rstrip().endswith("OpFunctionEnd") else "its end is not there"


def readable(text: str) -> str:
    """The text with cache controls by name: LLVM prints their numbers."""

    def named(found: re.Match[str]) -> str:
        head, access, number = found.groups()
        return f"{head} {_CACHE_CONTROLS[access][int(number)]}INTEL"

    return _CACHE_CONTROL.sub(named, text)
