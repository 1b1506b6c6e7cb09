"""How two numbers are combined by a kind (add, maxui, ...), as LLVM values.

Floats of 16 bits come here widened to f32.
"""

from __future__ import annotations

from typing import Any

from xetl.codegen.llvm import ll
from xetl.dialects.reduction_kinds import ON_FLOATS, ON_INTEGERS, SUMS
from xetl_xegpu.emit.builtins import function
from xetl_xegpu.emit.emitter import KernelEmitter
from xetl_xegpu.emit.mangling import opencl_type


def combine(em: KernelEmitter, kind: str, left: Any, right: Any) -> Any:
    """``left kind right``, of numbers or vectors."""
    b, element = em.builder, getattr(left.type, "element", left.type)
    if not isinstance(element, ll.IntType):
        return _combine_floats(em, kind, left, right)
    name = ON_INTEGERS[kind].on_bits if element.width == 1 else kind
    if name.startswith(("min", "max")):
        compare = b.icmp_signed if name.endswith("si") else b.icmp_unsigned
        sign = "<" if name.startswith("min") else ">"
        return b.select(compare(sign, left, right), left, right)
    # llvmlite's names of `and` and `or` are not Python's words.
    method = name if name in ("add", "mul", "xor") else f"{name}_"
    return getattr(b, method)(left, right)


def _combine_floats(em: KernelEmitter, kind: str, left: Any, right: Any) -> Any:
    if kind in SUMS:
        return getattr(em.builder, ON_FLOATS[kind].llvm)(left, right)
    chosen = extreme(em, f"f{kind[:3]}", left, right)
    if kind.endswith("numf"):
        return chosen
    # fmin and fmax prefer a number to NaN; a sum does not.
    b = em.builder
    unordered = b.fcmp_unordered("uno", left, right)
    return b.select(unordered, b.fadd(left, right), chosen)


def extreme(em: KernelEmitter, name: str, left: Any, right: Any) -> Any:
    """``fmin`` or ``fmax``: NaN only if both are."""
    type_ = opencl_type(left.type)
    return em.call(function(name, type_, type_, type_), [left, right])
