"""Operands of 16-bit integers go to functions as words of 32 bits.

OpenCL's driver for CPUs runs 16 lanes at once.  What a function takes has the items of
a lane side by side, so each call puts 16 vectors together, item by item: of words half
as many, and x86 is better at them.  A product of 64x64 takes half the time to build.
"""

from __future__ import annotations

from typing import Any

from xetl.codegen.llvm import ll
from xetl.codegen.types import I16, I32


def behind(function: Any) -> Any:
    """The function that does the work: another one if there is anything narrow.

    Args:
        function: declared; given a body that calls the other one, and is inlined.
    """
    types = [argument.type for argument in function.args]
    result = function.ftype.return_type
    # Sums stay as they come back.
    passed = [type_ if type_ == result else _as_words(type_) for type_ in types]
    if passed == types:
        return function
    signature = ll.FunctionType(result, passed)
    other = ll.Function(function.module, signature, f"xetl_words_{function.name}")
    other.calling_convention = function.calling_convention
    other.attributes.add("nounwind")
    function.attributes.add("alwaysinline")
    builder = ll.IRBuilder(function.append_basic_block("entry"))
    pairs = zip(function.args, passed)
    operands = [builder.bitcast(argument, type_) for argument, type_ in pairs]
    builder.ret(builder.call(other, operands, cconv="spir_func"))
    return other


def _as_words(type_: Any) -> Any:
    count = getattr(type_, "count", 1)
    if count % 2 or getattr(type_, "element", None) != I16:
        return type_
    return I32 if count == 2 else ll.VectorType(I32, count // 2)
