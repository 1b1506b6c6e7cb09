"""What ``breakpoint()`` becomes: an op that names the variables seen from there."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from xetl.dialects import xetile
from xetl.dialects.upstream import vector
from xetl.errors import NameLookupError
from xetl.frontend.arguments import Given
from xetl.frontend.arrays import as_memref
from xetl.frontend.builtin_calls import BUILTINS
from xetl.frontend.casts import runtime
from xetl.frontend.context import Context
from xetl.frontend.scope import Scope
from xetl.frontend.types import (
    Array,
    Scalar,
    Tile,
    Value,
    Vector,
    element_type,
    is_number,
)


def _breakpoint(ctx: Context, given: Given, node: ast.Call) -> None:
    arguments = [*given.positional, *given.keywords.values()]
    if arguments:
        raise ctx.error(
            NameLookupError,
            "X0105",
            "`breakpoint` takes no arguments in a kernel",
            arguments[0].node,
        )
    names: list[str] = []
    values: list[SSAValue] = []
    unsigned: list[int] = []
    for name, value in _visible(ctx.scope).items():
        ssa = _shown(ctx, value)
        if ssa is None:
            continue
        if isinstance(value, Vector | Array | Tile) and value.dtype.kind == "u":
            unsigned.append(len(values))
        names.append(name)
        values.append(ssa)
    ctx.add(xetile.BreakpointOp(names, values, unsigned))


def _visible(scope: Scope) -> Mapping[str, Value]:
    """The variables of a function, and of those around it in the kernel."""
    found: dict[str, Value] = {}
    if isinstance(scope.outer, Scope):
        found.update(_visible(scope.outer))
    found.update((name, each.value) for name, each in scope.bindings.items())
    return found


def _shown(ctx: Context, value: Value) -> SSAValue | None:
    """A variable as a value of the IR; None: a debugger does not show it."""
    if is_number(value) or isinstance(value, Scalar):
        return runtime(ctx, value).ssa
    if isinstance(value, Array):
        return as_memref(ctx, value)
    if isinstance(value, Vector) and len(value.shape) == 1:
        line = VectorType(element_type(value.dtype), value.shape)
        return ctx.emit(vector.ShapeCastOp(value.ssa, line))
    if isinstance(value, Vector | Tile):
        return value.ssa
    return None


BUILTINS[breakpoint] = _breakpoint
