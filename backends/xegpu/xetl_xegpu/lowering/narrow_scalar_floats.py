"""narrow-scalar-floats: scalars of f64 become f32, for devices without fp64.

Why: a Python float, and a scalar computed from it, is f64 (docs/language.md). A device
without fp64 would refuse every kernel with a scale in it.

Before: ``%s = arith.mulf %x, %y : f64`` and ``%r = arith.truncf %s : f64 to f32``
After:  ``%s = arith.mulf %x, %y : f32``; uses of ``%r`` become uses of ``%s``

Left alone: everything else. Arrays and vectors with elements of f64 are refused: f32
would give wrong results.

Source: docs/language.md, "Rules of types and edges".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import Rewriter

from xetl.analysis.axes import defined_by
from xetl.dialects.base import is_memref, is_vector, operations_in
from xetl.dialects.kernel_attributes import argument_names
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, func, gpu
from xetl.dialects.xetile import TileType
from xetl.errors import LaunchError, XetlError
from xetl.ir.builder import Pass
from xetl.transforms.diagnostics import DiagnosticEmitter, remark

_LARGEST = (2 - 2**-23) * 2.0**127
_ROUNDS_TO_INFINITY = (2 - 2**-24) * 2.0**127


@dataclass(frozen=True)
class NarrowScalarFloatsPass(Pass):
    """See the module docstring; ``device`` is named in errors."""

    device: str = "opencl_fp32"

    def rewrite(self, op: builtin.ModuleOp) -> None:
        """Rewrite ``op`` in place.

        Raises:
            LaunchError: a kernel computes with arrays or vectors of f64.
        """
        functions = operations_in(op, gpu.FuncOp, func.FuncOp)
        for function in functions:
            _check(function, self.device)
        for function in functions:
            if _narrow(function):
                text = f"numbers are f32, not f64: `{self.device}` has no fp64"
                remark(function, "numbers", text)


# What cannot be narrowed ------------------------------------------------------------


def _check(function: gpu.FuncOp | func.FuncOp, device: str) -> None:
    arguments = function.body.blocks[0].args if function.body.blocks else ()
    for name, argument in zip(argument_names(function, len(arguments)), arguments):
        if _has_wide_elements(argument.type):
            what = f"`{name}` is an array of f64"
            raise _refusal(what, device, function, function)
    for op in function.walk():
        wide = any(_has_wide_elements(each.type) for each in op.results)
        values = (*op.operands, *op.results) if isinstance(op, arith.BitcastOp) else ()
        if wide or any(_is_number(each.type) for each in values):
            what = f"{DiagnosticEmitter(function).name(op)} makes a value of f64"
            raise _refusal(what, device, function, op)


def _has_wide_elements(type_: Attribute) -> bool:
    if is_vector(type_) or is_memref(type_) or isinstance(type_, TileType):
        return _is_number(type_.element_type)
    return False


def _is_number(type_: Attribute) -> bool:
    return isinstance(type_, builtin.Float64Type)


def _refusal(what: str, device: str, function: Operation, op: Operation) -> XetlError:
    error = LaunchError(
        f"{what}, which `{device}` cannot compute with",
        code="X0831",
        notes=[f"`{device}` is for devices without fp64; numbers are f32 there"],
        help="give arrays of f32 (`A.astype(numpy.float32)`) and write `.to(f32)`, or "
        'launch with backend="cpu"; `xetl doctor` lists the devices there are',
    )
    return DiagnosticEmitter(function).located(error, op)


# What is narrowed -------------------------------------------------------------------


def _narrow(function: gpu.FuncOp | func.FuncOp) -> bool:
    """Make all scalars of f64 in a function f32. Return whether there was one."""
    values = (value for op in function.walk() for value in defined_by(op))
    found = [value for value in values if _is_number(value.type)]
    for value in found:
        Rewriter.replace_value_with_new_type(value, builtin.f32)
    for op in list(function.walk()):
        if isinstance(op, arith.ConstantOp):
            value = splat_value(op.value)
            if op.result.type == builtin.f32 and value is not None:
                op.value = builtin.FloatAttr(_rounded(value), builtin.f32)
        elif isinstance(op, arith.ExtfOp | arith.TruncfOp) and (
            op.source.type == op.result.type  # no conversion is left
        ):
            Rewriter.replace_op(op, [], [op.source])
    old = function.function_type
    types = (
        [builtin.f32 if _is_number(each) else each for each in side]
        for side in (old.inputs, old.outputs)
    )
    function.function_type = builtin.FunctionType.from_lists(*types)
    return bool(found)


def _rounded(value: float) -> float:
    """Return a number in the range of f32, rounded there as f32 rounds overflow."""
    if abs(value) <= _LARGEST or not math.isfinite(value):
        return value
    most = _LARGEST if abs(value) < _ROUNDS_TO_INFINITY else math.inf
    return math.copysign(most, value)
