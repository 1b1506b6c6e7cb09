"""Prints and assertions: vectors go to buffers, the rest is written by ``cpu.log``."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.xetile import AssertOp, PrintOp
from xetl_cpu.dialect import LogOp
from xetl_cpu.lowering.loops.build import before
from xetl_cpu.lowering.loops.materialize import materialize
from xetl_cpu.lowering.loops.state import State


def log(state: State, op: PrintOp | AssertOp) -> None:
    """One ``cpu.log`` for each."""
    values = [_in_memory(state, value, op) for value in op.arguments]
    types: list[Attribute] = [value.type for value in op.arguments]
    condition = op.condition if isinstance(op, AssertOp) else None
    new = LogOp(op.template, condition, values, types, op.properties.get("unsigned"))
    new.location = op.location
    before(op).emit(new)


def _in_memory(state: State, value: SSAValue, op: PrintOp | AssertOp) -> SSAValue:
    return materialize(state, value, op).memref if is_vector(value.type) else value
