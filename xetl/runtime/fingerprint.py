"""What a compiled kernel depends on, as one number: the key of the disk cache.

It covers the source of the kernel and of every function it can reach, the values of
the globals and closure variables they use, the signature with its compile-time values,
and what the backend adds (versions and processor).
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import os
import pickle
import types
from collections.abc import Callable
from typing import Any, cast

import xetl
from xetl.backend import Backend
from xetl.language import DType, SgMap, WgMap, XeMap
from xetl.language.operation import operation_name
from xetl.language.signature import ConstParam, Signature

_FORMAT = "1"
"""Changed whenever the same key would mean something else."""

_PRINTED = (int, float, complex, str, bytes, type(None), DType, WgMap, SgMap, XeMap)
"""Types whose values are told apart by how they print."""

_FIXED = ("xetl", "numpy", "math", "builtins")
"""Packages whose versions are in the key, or whose contents never change."""


def fingerprint(
    fn: Callable[..., Any], signature: Signature, backend: Backend, target: str
) -> str:
    """The key of ``fn`` compiled for ``signature`` and ``target``, in hexadecimal."""
    digest = hashlib.sha256()
    versions = (_FORMAT, xetl.__version__, backend.name, backend.cache_key(target))
    digest.update(repr((*versions, target)).encode())
    walker = _Walker()
    for param in signature.params:
        value = walker.value(param.value) if isinstance(param, ConstParam) else param
        digest.update(f"{param.name}={value!r};".encode())
    digest.update(walker.function(cast("types.FunctionType", fn)).encode())
    return digest.hexdigest()


class _Walker:
    """Describes values by text; each function once, so that recursion ends."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

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
            f"{name}={self._described(found, used)}"
            for name in sorted(used.variables)
            for found in _captured(fn, name)
        ]
        defaults = (fn.__defaults__, *sorted((fn.__kwdefaults__ or {}).items()))
        level = str(getattr(fn, "__xetl_subgroups__", None))
        code = _text(fn.__code__)
        return "\n".join([_source(fn), code, self.value(defaults), level, *captured])

    def _described(self, value: object, used: _Names) -> str:
        """As `value`; of modules and classes, the attributes that may be meant."""
        if isinstance(value, types.ModuleType):
            owner = value.__name__
        elif isinstance(value, type):
            owner = value.__module__
        else:
            return self.value(value)
        name = f"{type(value).__name__} {value.__name__}"
        if owner.partition(".")[0] in _FIXED:
            return name
        found = [
            f"{each}={self.value(getattr(value, each))}"
            for each in sorted(used.attributes)
            if hasattr(value, each)
            and not isinstance(getattr(value, each), types.ModuleType)
        ]
        return f"{name}({', '.join(found)})"


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


def _captured(fn: types.FunctionType, name: str) -> list[object]:
    """The value of a closure variable or global: one, or none if it has no value."""
    free = fn.__code__.co_freevars
    if name in free and fn.__closure__ is not None:
        try:
            return [fn.__closure__[free.index(name)].cell_contents]
        except ValueError:  # not assigned yet
            return []
    return [fn.__globals__[name]] if name in fn.__globals__ else []


def _pickled(value: object) -> str:
    """The content of an object we know nothing about; never equal if it has none."""
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    try:
        content = pickle.dumps(value, protocol=4)
    except Exception:  # pickling runs the code of any class
        content = os.urandom(16)
    return f"{name} {hashlib.sha256(content).hexdigest()}"


def _source(fn: types.FunctionType) -> str:
    """The text of ``fn``; of a lambda, all lines it stands on."""
    try:
        return inspect.getsource(fn)
    except (OSError, TypeError):  # typed at a prompt
        return fn.__name__


def _text(code: types.CodeType) -> str:
    """The instructions: they tell apart two lambdas that stand on one line."""
    nested = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    plain = [c for c in code.co_consts if not isinstance(c, types.CodeType)]
    inner = " ".join(map(_text, nested))
    return f"{code.co_code.hex()} {plain!r} {code.co_names} {inner}"
