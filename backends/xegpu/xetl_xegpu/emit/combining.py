"""How two numbers are combined by a kind (add, maxui, ...), as LLVM values.

Floats of 16 bits come here widened to f32.
"""

from __future__ import annotations

from typing import Any

from xetl.codegen.llvm import ll
from xetl_xegpu.emit.builtins import function
from xetl_xegpu.emit.emitter import KernelEmitter
from xetl_xegpu.emit.mangling import opencl_type

_INTEGER = {
    "add": "add",
    "mul": "mul",
    "and": "and_",
    "or": "or_",
    "xor": "xor",
}
_BITS = {
    # One bit counts modulo 2, and true is -1 as a signed number.
    **{"add": "xor", "mul": "and_", "and": "and_", "or": "or_", "xor": "xor"},
    **{"minsi": "or_", "maxsi": "and_", "minui": "and_", "maxui": "or_"},
}
_CHOICES = {"minsi": "<", "maxsi": ">", "minui": "<", "maxui": ">"}
_FLOAT = {"add": "fadd", "mul": "fmul"}
_EXTREMES = {"minimumf": "fmin", "maximumf": "fmax", "minnumf": "fmin"}
_EXTREMES["maxnumf"] = "fmax"


def combine(em: KernelEmitter, kind: str, left: Any, right: Any) -> Any:
    """``left kind right``, of numbers or vectors."""
    element = getattr(left.type, "element", left.type)
    if not isinstance(element, ll.IntType):
        return _combine_floats(em, kind, left, right)
    if element.width == 1:
        return getattr(em.builder, _BITS[kind])(left, right)
    if kind in _INTEGER:
        return getattr(em.builder, _INTEGER[kind])(left, right)
    b = em.builder
    compare = b.icmp_signed if kind.endswith("si") else b.icmp_unsigned
    return b.select(compare(_CHOICES[kind], left, right), left, right)


def _combine_floats(em: KernelEmitter, kind: str, left: Any, right: Any) -> Any:
    if kind in _FLOAT:
        return getattr(em.builder, _FLOAT[kind])(left, right)
    chosen = extreme(em, _EXTREMES[kind], left, right)
    if kind in ("minnumf", "maxnumf"):
        return chosen
    # fmin and fmax prefer a number to NaN; a sum does not.
    b = em.builder
    unordered = b.fcmp_unordered("uno", left, right)
    return b.select(unordered, b.fadd(left, right), chosen)


def extreme(em: KernelEmitter, name: str, left: Any, right: Any) -> Any:
    """``fmin`` or ``fmax``: NaN only if both are."""
    type_ = opencl_type(left.type)
    return em.call(function(name, type_, type_, type_), [left, right])
