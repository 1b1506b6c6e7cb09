"""Why a kernel was compiled: what is different from the compile before, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Facts: TypeAlias = Mapping[str, Mapping[str, str]]
"""See `xetl.runtime.fingerprint.Fingerprint.facts`."""

_VERSIONS = {
    "format": "the form of the cache",
    "version": "the version of xetl",
    "code": "the code of xetl or of the backend",
    "backend": "the backend",
    "machine": "the processor, or the version of LLVM or of the backend",
    "target": "the target",
}
_HIDDEN = ("code", "machine", "format")
"""What is a digest only: that it changed is all there is to say."""

_PARTS = {"unit_dim": "layout", "alias": "sharing of memory"}


def changes(before: Facts, now: Facts) -> list[str]:
    """A line for each difference."""
    found: list[str] = []
    if before["versions"].get("target") != now["versions"]["target"]:
        # It is in the description of the machine, too.
        now = {**now, "versions": {**now["versions"], "machine": ""}}
        before = {**before, "versions": {**before["versions"], "machine": ""}}
    for kind, describe in _KINDS.items():
        old, new = before.get(kind, {}), now.get(kind, {})
        for name in dict.fromkeys([*new, *old]):
            if old.get(name) != new.get(name):
                found.append(describe(name, old.get(name), new.get(name)))
    return found


def _version(name: str, old: str | None, new: str | None) -> str:
    what = _VERSIONS.get(name, name)
    return f"{what} changed" + ("" if name in _HIDDEN else f": {old} -> {new}")


def _source(name: str, old: str | None, new: str | None) -> str:
    short = name.rpartition("<locals>.")[2]
    if old is None:
        return f"the function `{short}` is used now"
    if new is None:
        return f"the function `{short}` is not used any more"
    return f"the source of `{short}` changed"


def _captured(name: str, old: str | None, new: str | None) -> str:
    return f"the captured value `{name}` changed: {_plain(old)} -> {_plain(new)}"


def _param(name: str, old: str | None, new: str | None) -> str:
    if old is None or new is None:
        return f"the parameter `{name}` is {'new' if old is None else 'gone'}"
    before, now = _fields(old), _fields(new)
    if not (before and now):
        return f"`{name}` changed: {_plain(old)} -> {_plain(new)}"
    parts = [
        f"{_PARTS.get(part, part)} {_part(part, before[part])} -> "
        f"{_part(part, now[part])}"
        for part in before
        # Which dimension has stride 1 says little of arrays of different ranks.
        if before[part] != now[part]
        and not (part == "unit_dim" and before["rank"] != now["rank"])
    ]
    return f"`{name}` changed: {', '.join(parts)}"


def _fields(text: str) -> dict[str, str]:
    """The parts of the description of an array; none of anything else."""
    kind, *parts = text.split(" ")
    return dict(part.split("=") for part in parts) if kind == "array" else {}


def _part(part: str, value: str) -> str:
    if part != "unit_dim":
        return value
    return "without a stride of 1" if value == "None" else f"stride 1 in dim {value}"


def _plain(text: str | None) -> str:
    """A value as its user would write it."""
    if text is None:
        return "nothing"
    text = text.removeprefix("constexpr ")
    fields = _fields(text)
    if fields:
        return f"an array of {fields['dtype']}, rank {fields['rank']}"
    kind, _, rest = text.partition(" ")
    if kind in ("int", "float", "bool", "str", "DType", "NoneType", "complex"):
        return rest
    return text


_KINDS = {
    "versions": _version,
    "params": _param,
    "captured": _captured,
    "sources": _source,
}
