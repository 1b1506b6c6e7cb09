"""What a compiled kernel depends on, as one number: the key of the disk cache.

It covers the source of the kernel and of every function it can reach, the values of
the globals and closure variables they use, the signature with its compile-time values,
our own code, and what the backend adds (versions and processor).
"""

from __future__ import annotations

import dis
import hashlib
import linecache
import os
import pickle
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import xetl
from xetl.backend import Backend
from xetl.language import DType, SgMap, WgMap, XeMap
from xetl.language.operation import operation_name
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl.runtime.captured import Captured
from xetl.runtime.sources import stamp

_FORMAT = "2"
"""Changed whenever the same key would mean something else."""

_PRINTED = (int, float, complex, str, bytes, type(None), DType, WgMap, SgMap, XeMap)
"""Types whose values are told apart by how they print."""

_FIXED = ("xetl", "numpy", "math", "builtins")
"""Packages whose versions are in the key, or whose contents never change."""


@dataclass(frozen=True)
class Fingerprint:
    """What identifies the code of a kernel.

    Attributes:
        digest: the key, in hexadecimal.
        facts: what went into it, by kind and name, for `xetl.runtime.changes`.
        captured: the globals and closure variables that were looked at.
        positions: a text that changes when a function moves within its file.
    """

    digest: str
    facts: dict[str, dict[str, str]]
    captured: tuple[Captured, ...]
    positions: str


def fingerprint(
    fn: Callable[..., Any], signature: Signature, backend: Backend, target: str
) -> Fingerprint:
    """Identify the code of ``fn`` compiled for ``signature`` and ``target``."""
    versions = _versions(backend, target)
    walker = _Walker()
    params = {p.name: _param(p, walker) for p in signature.params}
    digest = hashlib.sha256(repr((*versions.items(), *params.items())).encode())
    digest.update(walker.function(cast("types.FunctionType", fn)).encode())
    facts = {
        "versions": versions,
        "params": {name: _short(text) for name, text in params.items()},
        "sources": walker.sources,
        "captured": {name: _short(text) for name, text in walker.values.items()},
    }
    positions = hashlib.sha256(repr(walker.positions).encode()).hexdigest()[:16]
    key = digest.hexdigest()
    return Fingerprint(key, facts, tuple(walker.captured), positions)


def _versions(backend: Backend, target: str) -> dict[str, str]:
    """Our own code, and what the backend adds."""
    owner = type(backend).__module__.partition(".")[0]
    return {
        "format": _FORMAT,
        "version": xetl.__version__,
        "code": f"{stamp('xetl')} {stamp(owner)}",
        "backend": backend.name,
        "machine": backend.cache_key(target),
        "target": target,
    }


def text_digest(
    text: str, kernel: str, options: object, backend: Backend, target: str
) -> str:
    """The key of a kernel of a text; ``options``: what else its code depends on.

    The whole text counts: errors of a launch say the line.
    """
    parts = (*_versions(backend, target).items(), kernel, options)
    digest = hashlib.sha256(repr(parts).encode())
    digest.update(text.encode())
    return f"text-{digest.hexdigest()}"


def _param(param: ArrayParam | ScalarParam | ConstParam, walker: _Walker) -> str:
    match param:
        case ConstParam():
            return f"constexpr {walker.value(param.value)}"
        case ScalarParam():
            return param.kind
        case ArrayParam():
            layout = f"unit_dim={param.unit_dim} alias={param.alias}"
            return f"array dtype={param.dtype.name} rank={param.rank} {layout}"


def _short(text: str) -> str:
    """A text to show to people; of a long one, what tells it apart."""
    first = text.partition("\n")[0]
    if text == first and len(text) <= 60:
        return text
    return f"{first[:40].strip()}... {hashlib.sha256(text.encode()).hexdigest()[:8]}"


class _Walker:
    """Describes values by text; each function once, so that recursion ends.

    Attributes:
        sources: a digest of each function's own text, by name.
        values: what each captured name stands for.
        captured: the same values as objects.
        positions: where the functions stand.
    """

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self.sources: dict[str, str] = {}
        self.values: dict[str, str] = {}
        self.captured: list[Captured] = []
        self.positions: list[tuple[str, int]] = []

    def value(self, value: object) -> str:
        """A text that is equal for values that mean the same in a kernel."""
        if operation_name(value) is not None:
            return f"operation {operation_name(value)}"
        inner = getattr(value, "fn", value)
        if isinstance(inner, types.FunctionType):
            return self.function(inner)
        if isinstance(value, list | tuple):
            parts = [self.value(each) for each in cast("list[object]", value)]
            return f"{type(cast('object', value)).__name__}({', '.join(parts)})"
        if isinstance(value, _PRINTED):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, type | types.BuiltinFunctionType):
            return f"{value.__module__}.{value.__qualname__}"
        return _pickled(value)

    def function(self, fn: types.FunctionType) -> str:
        """The source of ``fn`` with everything it refers to."""
        if id(fn) in self._seen:
            return f"function {self._seen[id(fn)]}"
        self._seen[id(fn)] = len(self._seen)
        used = _Names()
        used.collect(fn.__code__)
        captured = [
            f"{name}={self._captured(name, found, used)}"
            for name in sorted(used.variables)
            for found in _found(fn, name)
        ]
        defaults = (fn.__defaults__, *sorted((fn.__kwdefaults__ or {}).items()))
        level = str(getattr(fn, "__xetl_subgroups__", None))
        own = [_source(fn), _text(fn.__code__), self.value(defaults), level]
        digest = hashlib.sha256("\n".join(own).encode()).hexdigest()
        self.sources[fn.__qualname__] = digest[:16]
        self.positions.append((fn.__code__.co_filename, fn.__code__.co_firstlineno))
        return "\n".join([f"function {fn.__name__}", *own, *captured])

    def _captured(self, name: str, found: Captured, used: _Names) -> str:
        """Describe a value that is used under ``name``."""
        value = found.value
        if isinstance(value, types.ModuleType):
            owner = value.__name__
        elif isinstance(value, type):
            owner = value.__module__
        else:
            return self._noted(name, found)
        text = f"{type(value).__name__} {value.__name__}"
        if owner.partition(".")[0] in _FIXED:
            if isinstance(value, type):  # such as a dtype; nobody rebinds `np`
                self.captured.append(found)
            return text
        self.captured.append(found)
        inner = [
            f"{each}={self._noted(f'{name}.{each}', Captured(value, f'.{each}', has))}"
            for each in sorted(used.attributes)
            if not isinstance(has := getattr(value, each, _NOTHING), types.ModuleType)
            and has is not _NOTHING
        ]
        return f"{text}({', '.join(inner)})"

    def _noted(self, name: str, found: Captured) -> str:
        self.captured.append(found)
        text = self.value(found.value)
        self.values[name] = text.partition("\n")[0]
        return text


_NOTHING = object()


class _Names:
    """What code, and the functions nested in it, look up outside."""

    def __init__(self) -> None:
        self.variables: set[str] = set()
        self.attributes: set[str] = set()

    def collect(self, code: types.CodeType) -> None:
        """Add what the instructions of ``code`` mention."""
        self.variables.update(code.co_freevars)
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                self.variables.add(instruction.argval)
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                self.attributes.add(instruction.argval)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.collect(constant)


def _found(fn: types.FunctionType, name: str) -> list[Captured]:
    """The closure variable or global called ``name``: one, or none without a value."""
    free = fn.__code__.co_freevars
    if name in free and fn.__closure__ is not None:
        cell = fn.__closure__[free.index(name)]
        try:
            return [Captured(cell, ".cell_contents", cell.cell_contents)]
        except ValueError:  # not assigned yet
            return []
    if name not in fn.__globals__:
        return []
    return [Captured(fn.__globals__, f"[{name!r}]", fn.__globals__[name])]


def _pickled(value: object) -> str:
    """The content of an object we know nothing about; never equal if it has none."""
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    try:
        content = pickle.dumps(value, protocol=4)
    except Exception:  # pickling runs the code of any class
        content = os.urandom(16)
    return f"{name} {hashlib.sha256(content).hexdigest()}"


def _source(fn: types.FunctionType) -> str:
    """The text of ``fn``; of a lambda, all lines it stands on.

    `inspect.getsource` would take each line apart to find the end, which costs 5 ms at
    the first use. Here the end is that of the indented block: a line too many does no
    harm.
    """
    code = fn.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    first, last = code.co_firstlineno - 1, _last_line(code)
    if not first < last <= len(lines):
        return fn.__name__  # typed at a prompt
    indent = _indent(lines[first])
    while last < len(lines) and fn.__name__ != "<lambda>":
        if lines[last].strip() and _indent(lines[last]) <= indent:
            break
        last += 1
    return "".join(lines[first:last]).rstrip()


def _last_line(code: types.CodeType) -> int:
    """The last line that became instructions, also of nested functions."""
    ends = [end for _, end, _, _ in code.co_positions() if end is not None]
    nested = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return max([code.co_firstlineno, *ends, *map(_last_line, nested)])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _text(code: types.CodeType) -> str:
    """The instructions: they tell apart two lambdas that stand on one line."""
    nested = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    plain = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
    inner = " ".join(map(_text, nested))
    return f"{code.co_code.hex()} {plain!r} {code.co_names} {inner}"
