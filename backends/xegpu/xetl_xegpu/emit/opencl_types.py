"""Types of OpenCL C: their LLVM types, and the symbols of functions.

Symbols are mangled by Itanium's C++ ABI. A type is written as in OpenCL C: ``int``,
``float8``, ``global void*``, with ``const`` to the left of the type it qualifies.

Sources: Itanium C++ ABI, 5.1.4 to 5.1.10; SPIR 2.0, section A.1.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from xetl.codegen.types import F32, F64, HALF, I8, I16, I32, I64, Type, ll
from xetl.errors import InternalError

_SCALARS: dict[str, tuple[str, Any]] = {
    "void": ("v", ll.VoidType()),
    "char": ("c", I8),
    "uchar": ("h", I8),
    "short": ("s", I16),
    "ushort": ("t", I16),
    "int": ("i", I32),
    "uint": ("j", I32),
    "long": ("l", I64),
    "ulong": ("m", I64),
    "half": ("Dh", HALF),
    "float": ("f", F32),
    "double": ("d", F64),
    "named_barrier": ("14__namedBarrier", None),  # an opaque structure
}
_SPACES = {"private": 0, "global": 1, "local": 3}
_TYPE = re.compile(
    r"(?:(private|global|local) )?(const )?([a-z_]+?)(2|3|4|8|16)?(\*)?$"
)
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@cache
def mangle(name: str, parameters: tuple[str, ...]) -> str:
    """Return the symbol of ``name(parameters)``."""
    known: list[str] = []
    codes = [_encode(parameter, known) for parameter in parameters]
    return f"_Z{len(name)}{name}{''.join(codes) or 'v'}"


def llvm_type(text: str) -> Type:
    """Return the LLVM type of an OpenCL C type."""
    space, _, scalar, count, star = _parts(text)
    if star:
        return ll.PointerType(addrspace=_SPACES[space or "private"])
    element = _SCALARS[scalar][1]
    return ll.VectorType(element, int(count)) if count else element


def _parts(text: str) -> tuple[str, str, str, str, str]:
    match = _TYPE.match(text)
    if match is None or match[3] not in _SCALARS:
        raise InternalError(f"`{text}` is no type of OpenCL C")
    space, const, scalar, count, star = (part or "" for part in match.groups())
    return space, const, scalar, count, star


def _encode(text: str, known: list[str]) -> str:
    """Return the code of a type; a repeated type is a reference (``S_``, ``S0_``)."""
    space, const, scalar, count, star = _parts(text)
    code = _SCALARS[scalar][0]
    if count:
        code = _named(f"Dv{count}_{code}", known)
    if not star:
        return code
    number = _SPACES[space or "private"]
    qualifiers = (f"U3AS{number}" if number else "") + ("K" if const else "")
    if qualifiers:
        code = _named(qualifiers + code, known)
    return _named("P" + code, known)


def _named(code: str, known: list[str]) -> str:
    if code not in known:
        known.append(code)
        return code
    number = known.index(code)
    if number > len(_DIGITS):
        raise InternalError("a function has more types than its symbol can name")
    return f"S{_DIGITS[number - 1] if number else ''}_"


UNSIGNED = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}
"""Unsigned integers by their bits."""


def opencl_type(type_: object) -> str:
    """Return the OpenCL C type of an LLVM type; integers are unsigned."""
    lowered: Any = type_
    element = getattr(lowered, "element", lowered)
    name = UNSIGNED.get(getattr(element, "width", 0)) or str(element)
    return f"{name}{getattr(lowered, 'count', '')}"
