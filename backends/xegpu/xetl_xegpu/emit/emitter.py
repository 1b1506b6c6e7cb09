"""What the emission of every operation may use: the kernel, its device, its memory.

`combine` says how two numbers are combined by a kind (add, maxui, ...); floats of 16
bits come to it widened to f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from xdsl.ir import Operation

from xetl.codegen.emitter import Emitter
from xetl.codegen.types import I32, PTR, Builder, Module, Type, Value, ll
from xetl.devices import Device
from xetl.dialects.reduction_kinds import ON_FLOATS, ON_INTEGERS, SUMS
from xetl.errors import InternalError
from xetl_xegpu.emit import builtins
from xetl_xegpu.emit.builtins import Builtin, function
from xetl_xegpu.emit.opencl_types import opencl_type
from xetl_xegpu.emit.scalars import ScalarBuilder, is_vector

LINE = 64
"""Bytes that private and local arrays are aligned to: a register's."""

Table: TypeAlias = dict[type[Operation], Callable[..., None]]
"""What emits each operation, given a `KernelEmitter` and the operation."""

_LOCAL_AND_GLOBAL = 3
"""`CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE`."""

GLOBAL, LOCAL = (ll.PointerType(addrspace=space) for space in (1, 3))


@dataclass(frozen=True)
class Ending:
    """What a kernel keeps that asserts and has barriers; see `workgroup.py`.

    Attributes:
        alive: 1 while no assertion of this subgroup has failed; private.
        turn: which of the words is about the next barrier; private.
        words: two of them in shared memory; not 0 if somebody is dead.
    """

    alive: Value
    turn: Value
    words: Value


@dataclass
class KernelEmitter(Emitter):
    """An emitter that knows the kernel, its device and its memory.

    Attributes:
        device: what it may do with one instruction.
        entry: the block where private arrays are reserved.
        slm: the shared local memory of the workgroup, if there is any.
        slm_bytes: how much.
        status: address of the status words: the kernel's last argument.
        log_ids: the number of each operation that writes a record.
        named_barriers: those that were made on entry, by number.
        ending: how a failed assertion ends the workgroup, if others may wait.
        exit: the last block, where there are several ways to the end.
        pointed: the block message that must name its array by a pointer, if one must.
        payloads: those of block messages, by block of code, matrix and shape.
        spills: whether registers do not suffice.
        walked: the numbers of the program along x and y, where these are computed.
        is_alone: whether the workgroup is one subgroup.
    """

    device: Device = field(kw_only=True)
    entry: Any = None
    slm: Value | None = None
    slm_bytes: int = 0
    status: Value | None = None
    log_ids: dict[Operation, int] = field(default_factory=dict[Operation, int])
    named_barriers: dict[int, Value] = field(default_factory=dict[int, Value])
    ending: Ending | None = None
    exit: Any = None
    pointed: Operation | None = None
    payloads: dict[Any, Any] = field(default_factory=dict[Any, Any])
    spills: bool = False
    walked: tuple[Value, ...] = ()
    is_alone: bool = False

    def program(self, axis: int) -> Value:
        """The number of the program along x, y or z, i64."""
        if axis < len(self.walked):
            return self.walked[axis]
        group = builtins.function("get_group_id", "ulong", "uint")
        return self.call(group, [I32(axis)])

    def status_words(self) -> Value:
        """Where the status words are: memory that may be read at any time."""
        if self.status is None:
            text = "a kernel's last argument is no address of status words"
            raise InternalError(text)
        return self.status

    def call(self, builtin: Builtin, operands: Sequence[Value]) -> Value:
        """Call a builtin; functions of numbers for each, where these are apart."""
        b = self.builder
        is_elementary = builtin.name in builtins.MATH and any(map(is_vector, operands))
        if is_elementary and isinstance(b, ScalarBuilder):
            one = builtins.of_numbers(builtin)
            return b.each(partial(self._call, one), *operands)
        return self._call(builtin, *operands)

    def _call(self, builtin: Builtin, *operands: Value) -> ll.Instruction:
        function = declare(self.module, builtin)
        return self.builder.call(function, list(operands), cconv="spir_func")

    def private_array(self, element: Type, count: int) -> Value:
        """Memory of this lane, reserved on entry: SPIR-V has no other."""
        with self.builder.goto_block(self.entry):
            memory = self.builder.alloca(ll.ArrayType(element, count))
        memory.align = LINE
        memory.type = PTR  # llvmlite would compare what it points to
        return memory

    def meet(self) -> None:
        """A barrier of the workgroup.

        The only subgroup of one meets itself on opencl:cpu: its driver (2026.2) ends
        the process on some values that a workgroup's barrier stands between. For GPUs
        Intel's compiler makes no fence of a subgroup's barrier.
        """
        is_alone = self.is_alone and self.device.emulated
        name = "sub_group_barrier" if is_alone else "barrier"
        barrier = builtins.function(name, "void", "uint")
        self.call(barrier, [I32(_LOCAL_AND_GLOBAL)])

    def round_to_bf16(self, value: Value) -> Value:
        """f32 as the bits of a bf16: one instruction where bits would take eight."""
        lanes = getattr(value.type, "count", 1)
        return self.call(builtins.to_bf16(lanes), [value])

    def lane(self) -> Value:
        """The number of this lane in its subgroup, i32."""
        return self.call(builtins.function("get_sub_group_local_id", "uint"), [])


def declare(module: Module, builtin: Builtin) -> Value:
    """The declaration of a builtin, made once a module."""
    known = module.globals.get(builtin.symbol)
    if known is None:
        known = ll.Function(module, builtin.type, builtin.symbol)
        known.calling_convention = "spir_func"
        known.attributes.add("nounwind")
    return known


def combine(em: KernelEmitter, kind: str, left: Value, right: Value) -> Value:
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


def _combine_floats(em: KernelEmitter, kind: str, left: Value, right: Value) -> Value:
    if kind in SUMS:
        return getattr(em.builder, ON_FLOATS[kind].llvm)(left, right)
    chosen = extreme(em, f"f{kind[:3]}", left, right)
    if kind.endswith("numf"):
        return chosen
    # fmin and fmax prefer a number to NaN; a sum does not.
    b = em.builder
    unordered = b.fcmp_unordered("uno", left, right)
    return b.select(unordered, b.fadd(left, right), chosen)


def together(builder: Builder, items: Sequence[Value]) -> Value:
    """Numbers as a vector; a single one stays a number."""
    if len(items) == 1:
        return items[0]
    value: Value = ll.Constant(ll.VectorType(items[0].type, len(items)), ll.Undefined)
    for number, item in enumerate(items):
        value = builder.insert_element(value, item, I32(number))
    return value


def extreme(em: KernelEmitter, name: str, left: Value, right: Value) -> Value:
    """``fmin`` or ``fmax``: NaN only if both are."""
    type_ = opencl_type(left.type)
    return em.call(function(name, type_, type_, type_), [left, right])
