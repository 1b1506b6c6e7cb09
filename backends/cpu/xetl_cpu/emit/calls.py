"""Emission of calls of C functions, such as `convert-xsmm-to-calls` makes them.

The functions are imports of the image: whoever loads it fills their addresses in.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.llvm import IntToPtrOp, LLVMPointerType
from xdsl.ir import Attribute

from xetl.codegen.types import PTR, llvm_type
from xetl.dialects.upstream import func
from xetl_cpu.llvm import VOID, declare


def _type(type_: Attribute) -> Any:
    return PTR if isinstance(type_, LLVMPointerType) else llvm_type(type_)


def _call(em: Any, op: func.CallOp) -> None:
    name = op.callee.root_reference.data
    result = _type(op.results[0].type) if op.results else VOID
    types = [_type(value.type) for value in op.operands]
    function = declare(em.module, name, result, types)
    called = em.builder.call(function, em.all(op.operands))
    if op.results:
        em.set(op.results[0], called)


def _int_to_ptr(em: Any, op: IntToPtrOp) -> None:
    em.set(op.output, em.builder.inttoptr(em.get(op.input), PTR))


TABLE: dict[Any, Any] = {func.CallOp: _call, IntToPtrOp: _int_to_ptr}
