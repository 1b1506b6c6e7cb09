"""Walks a function at the ``loops`` stage and emits LLVM IR for it.

The emitter maps SSA values to LLVM values. A table maps each operation class to the
function that emits it. The tables of the target-neutral dialects are in the other
files of this folder; a backend adds its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from xdsl.ir import Attribute, Block, Operation, SSAValue

from xetl.codegen.types import (
    I64,
    Builder,
    Module,
    Type,
    Value,
    declare,
    ll,
    memory_type,
    repeated,
)
from xetl.dialects.base import vector_type
from xetl.errors import InternalError
from xetl.records import record

Emit: TypeAlias = Callable[[Any, Any], object]
"""A function that emits an operation, called with the emitter and the operation. It
returns the value of the first result; or None, if it sets the results itself."""
EmitTable: TypeAlias = dict[type[Operation], Emit]


Row: TypeAlias = tuple[Value, ...]
"""The address of a memref, the indices of a row of it, and their strides."""


@record(frozen=True)
class Strided:
    """A memref: address of element 0, sizes and strides (elements) as LLVM values."""

    address: Value
    sizes: tuple[Value, ...]
    strides: tuple[Value, ...]
    element: Attribute


@record()
class Emitter:
    """Emits the operations of one LLVM function.

    Args:
        module: the LLVM module that receives functions and constants.
        builder: inserts the next instruction.
        table: the emission function of each operation class.
        math: ``(name, element, lanes) -> function`` for elementary functions.
        lower_bf16: whether the target converts f32 to bf16 itself.
        split_lanes: lanes of the vectors of bf16 that are extended to two registers,
            one with the even elements, one with the odd ones; 0: there are none.
        any_order: values with this number of lanes that may be kept in that order.
    """

    module: Module
    builder: Builder
    table: EmitTable
    math: Callable[[str, Any, int], Value]
    lower_bf16: bool = True
    split_lanes: int = 0
    any_order: frozenset[SSAValue] = frozenset()
    values: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    rows: dict[Row, Value] = field(default_factory=dict[Row, Value])
    """Addresses of rows that this block or an enclosing one has computed."""

    def emit_block(self, block: Block) -> None:
        """Emit every operation of a block, its terminator included."""
        outside = dict(self.rows)
        for op in block.ops:
            self.emit(op)
        self.rows = outside

    def emit(self, op: Operation) -> None:
        """Emit an operation."""
        emit = self.table.get(type(op))
        if emit is None:
            raise InternalError(f"no code can be emitted for `{op.name}`")
        value = emit(self, op)
        if value is not None and op.results:
            self.values[op.results[0]] = value

    def get(self, value: SSAValue) -> Value:
        """Return the LLVM value of an SSA value that is no memref."""
        return self.values[value]

    def all(self, values: Sequence[SSAValue]) -> list[Value]:
        """Return the LLVM values of several SSA values."""
        return [self.values[value] for value in values]

    def set(self, value: SSAValue, emitted: Any) -> None:
        """Record the LLVM value of an SSA value."""
        self.values[value] = emitted

    def splits(self, value: Value) -> bool:
        """Whether vectors like this one are split into even and odd lanes."""
        lanes = 0 if self.lower_bf16 else self.split_lanes
        return getattr(value.type, "count", 1) == lanes

    def lane_numbers(self, value: SSAValue) -> list[int]:
        """Return the element number in each lane of a vector."""
        lanes = list(range(vector_type(value).get_shape()[0]))
        return lanes[::2] + lanes[1::2] if value in self.any_order else lanes

    def round_to_bf16(self, value: Value) -> Value | None:
        """Round f32 to the bits of bf16 by an instruction; None: there is none."""
        del value
        return None

    def spare_memory(self) -> Value | None:
        """Return an address that masked-off lanes of a gather may load from.

        Return None if the target has a gather instruction, which has a mask. Without
        such an address, elements that are loaded one by one need a branch each.
        """
        return None

    def chosen(self, value: Value) -> Value:
        """Return the value to store for the result of a select of lanes."""
        return value

    def hidden(self, number: Value) -> Value:
        """Return the number, hidden from strength reduction if the target can."""
        return number

    def strided(self, value: SSAValue) -> Strided:
        """Return the LLVM values of a memref."""
        emitted = self.values[value]
        assert isinstance(emitted, Strided)
        return emitted

    def compute_row(self, base: Strided, indices: Sequence[Value]) -> None:
        """Compute the address of a row of a memref; element addresses reuse it."""
        row = _row(base, indices)
        if row not in self.rows:
            self.rows[row] = self._address(base.address, base, indices, base.strides)

    def element_address(self, base: Strided, indices: Sequence[Value]) -> Value:
        """Return the address of an element of a memref."""
        row = self.rows.get(_row(base, indices[:-1]))
        if row is None:
            return self._address(base.address, base, indices, base.strides)
        return self._address(row, base, indices[-1:], base.strides[-1:])

    def _address(
        self,
        start: Value,
        base: Strided,
        indices: Sequence[Value],
        strides: Sequence[Value],
    ) -> Value:
        offset: Value | None = None
        for index, stride in zip(indices, strides):
            term = multiply(self.builder, index, stride)
            offset = term if offset is None else add(self.builder, offset, term)
        if offset is None or is_constant(offset, 0):
            return start
        return self.builder.gep(start, [offset], source_etype=memory_type(base.element))

    def intrinsic(
        self,
        name: str,
        result: Type,
        operands: Sequence[Value],
        flags: Sequence[str] = (),
    ) -> Value:
        """Call an LLVM intrinsic by its full name; ``flags``: fast-math flags."""
        types = [operand.type for operand in operands]
        function = declare(self.module, name, result, types)
        return self.builder.call(function, list(operands), fastmath=tuple(flags))


def _row(base: Strided, indices: Sequence[Value]) -> Row:
    return base.address, *indices, *base.strides[: len(indices)]


def emits(compute: Callable[..., Value]) -> Emit:
    """Return a function that emits operations as ``compute(em, *operands)``."""

    def emit(em: Emitter, op: Operation) -> Value:
        return compute(em, *em.all(op.operands))

    return emit


def constant(value: int) -> Value:
    """Return an i64 constant."""
    return ll.Constant(I64, value)


def is_constant(value: Value, number: int) -> bool:
    """Whether an LLVM value is this integer constant."""
    return isinstance(value, ll.Constant) and value.constant == number


def multiply(builder: Builder, left: Value, right: Value) -> Value:
    """Return ``left * right``, folded if one of them is 1 or 0."""
    for one, other in ((left, right), (right, left)):
        if is_constant(one, 1):
            return other
        if is_constant(one, 0):
            return one
    return builder.mul(left, right)


def add(builder: Builder, left: Value, right: Value) -> Value:
    """Return ``left + right``, folded if one of them is 0."""
    if is_constant(left, 0):
        return right
    return left if is_constant(right, 0) else builder.add(left, right)


def splat(builder: Builder, scalar: Value, lanes: int) -> Value:
    """Return a vector with the scalar in every lane."""
    vector = ll.VectorType(scalar.type, lanes)
    undefined = repeated(vector, ll.Undefined)
    first = builder.insert_element(undefined, scalar, ll.Constant(ll.IntType(32), 0))
    zeros = repeated(ll.VectorType(ll.IntType(32), lanes), 0)
    return builder.shuffle_vector(first, undefined, zeros)
