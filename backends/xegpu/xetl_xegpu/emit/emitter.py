"""The emitter of a kernel, with its device and its memory; common functions.

`combine` combines two numbers by a kind (add, maxui, ...); its callers have widened
floats of 16 bits to f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from xdsl.ir import Operation

from xetl.codegen.emitter import Emitter
from xetl.codegen.types import I32, PTR, Builder, Module, Type, Value, element_of, ll
from xetl.devices import Device
from xetl.dialects.reduction_kinds import ON_FLOATS, ON_INTEGERS, SUMS
from xetl.errors import InternalError
from xetl_xegpu.emit import builtins
from xetl_xegpu.emit.builtins import Builtin, function
from xetl_xegpu.emit.opencl_types import opencl_type
from xetl_xegpu.emit.scalars import ScalarBuilder, is_vector

LINE = 64
"""The alignment of private and local arrays in bytes: the size of a register."""

_LOCAL_AND_GLOBAL = 3
"""`CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE`."""

GLOBAL, LOCAL = (ll.PointerType(addrspace=space) for space in (1, 3))


@dataclass(frozen=True)
class Ending:
    """The state of a kernel with assertions and barriers; see `workgroup.py`.

    Attributes:
        alive: 1 while no assertion of this subgroup has failed; private.
        turn: the index of the word for the next barrier; private.
        words: two words in shared memory; not 0 if an assertion of a subgroup failed.
    """

    alive: Value
    turn: Value
    words: Value


@dataclass
class KernelEmitter(Emitter):
    """An emitter that knows the kernel, its device and its memory.

    Attributes:
        device: the device to compile for.
        entry: the block where private arrays are allocated.
        slm: the shared local memory of the workgroup, or None.
        slm_bytes: its size in bytes.
        status: the address of the status words: the kernel's last argument.
        log_ids: the number of each operation that writes a record.
        named_barriers: the named barriers that are made on entry, by number.
        ending: how a failed assertion ends the workgroup, if other subgroups may wait.
        exit: the last block, if there are several paths to the end.
        pointed: the block message that must name its array by a pointer, or None.
        payloads: the payloads of block messages, by block of code, matrix and shape.
        spills: whether the kernel needs more registers than there are.
        walked: the indices of the program along x and y, if they are computed.
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
        """Return the index of the program along x, y or z, i64."""
        is_walked = axis < len(self.walked)
        return self.walked[axis] if is_walked else self.ask("get_group_id", I32(axis))

    def status_words(self) -> Value:
        """Return the address of the status words, which may be read at any time."""
        if self.status is None:
            text = "a kernel's last argument is no address of status words"
            raise InternalError(text)
        return self.status

    def call(self, builtin: Builtin, operands: Sequence[Value]) -> Value:
        """Call a builtin.

        If vectors are kept as scalars (`ScalarBuilder`), a math function is called for
        each element.
        """
        b = self.builder
        is_elementary = builtin.name in builtins.MATH and any(map(is_vector, operands))
        if is_elementary and isinstance(b, ScalarBuilder):
            return b.each(partial(call, b, builtins.of_numbers(builtin)), *operands)
        return call(b, builtin, *operands)

    def ask(self, name: str, *operands: Value) -> Value:
        """Call a function of OpenCL C that has one signature."""
        return ask(self.builder, name, *operands)

    def private_array(self, element: Type, count: int) -> Value:
        """Return private memory of this lane. SPIR-V allocates it on entry only."""
        with self.builder.goto_block(self.entry):
            memory = self.builder.alloca(ll.ArrayType(element, count))
        memory.align = LINE
        memory.type = PTR  # an opaque pointer: llvmlite would compare pointee types
        return memory

    def meet(self) -> None:
        """Emit a barrier of the workgroup.

        A workgroup of one subgroup has a subgroup barrier on opencl:cpu: the driver
        (2026.2) crashes on some values that are live across a workgroup barrier. GPUs
        get the workgroup barrier: Intel's compiler makes no fence of a subgroup's.
        """
        is_alone = self.is_alone and self.device.emulated
        name = "sub_group_barrier" if is_alone else "barrier"
        self.ask(name, I32(_LOCAL_AND_GLOBAL))

    def round_to_bf16(self, value: Value) -> Value:
        """Round f32 to the bits of a bf16, by one instruction in place of eight."""
        lanes = getattr(value.type, "count", 1)
        return self.call(builtins.to_bf16(lanes), [value])

    def lane(self) -> Value:
        """Return the id of this lane in its subgroup, i32."""
        return self.ask("get_sub_group_local_id")


def call(b: Builder, builtin: Builtin, *operands: Value) -> ll.Instruction:
    """Call a builtin."""
    return b.call(declare(b.module, builtin), list(operands), cconv="spir_func")


def ask(b: Builder, name: str, *operands: Value) -> ll.Instruction:
    """Call a function of OpenCL C that has one signature."""
    return call(b, function(name), *operands)


def declare(module: Module, builtin: Builtin) -> Value:
    """Return the declaration of a builtin, made once for each module."""
    known = module.globals.get(builtin.symbol)
    return known or new_function(module, builtin.symbol, builtin.type)


def new_function(
    module: Module, name: str, type_: ll.FunctionType, *attributes: str
) -> ll.Function:
    """Return a new function of a module, without a body."""
    made = ll.Function(module, type_, name)
    made.calling_convention = "spir_func"
    for each in ("nounwind", *attributes):
        made.attributes.add(each)
    return made


def shared_array(module: Module, name: str, element: Type, count: int) -> Value:
    """Return a new array in the shared memory of a workgroup."""
    made = ll.GlobalVariable(module, ll.ArrayType(element, count), name, addrspace=3)
    made.linkage, made.align = "internal", LINE
    made.initializer = ll.Constant(made.value_type, ll.Undefined)
    made.type = LOCAL  # an opaque pointer: llvmlite would compare pointee types
    return made


def chosen(
    b: Builder, condition: Value, make: Callable[[], Value], otherwise: Value
) -> Value:
    """Return what ``make`` computes if the condition holds, else ``otherwise``."""
    before = b.block
    with b.if_then(condition):
        made = make()
        inside = b.block
    result = b.phi(made.type)
    result.add_incoming(otherwise, before)
    result.add_incoming(made, inside)
    return result


def combine(em: KernelEmitter, kind: str, left: Value, right: Value) -> Value:
    """Return ``left kind right`` of numbers or vectors."""
    b, element = em.builder, element_of(left.type)
    if not isinstance(element, ll.IntType):
        return _combine_floats(em, kind, left, right)
    name = ON_INTEGERS[kind].on_bits if element.width == 1 else kind
    if name.startswith(("min", "max")):
        compare = b.icmp_signed if name.endswith("si") else b.icmp_unsigned
        sign = "<" if name.startswith("min") else ">"
        return b.select(compare(sign, left, right), left, right)
    # llvmlite's methods are called `and_` and `or_`.
    method = name if name in ("add", "mul", "xor") else f"{name}_"
    return getattr(b, method)(left, right)


def _combine_floats(em: KernelEmitter, kind: str, left: Value, right: Value) -> Value:
    if kind in SUMS:
        return getattr(em.builder, ON_FLOATS[kind].llvm)(left, right)
    chosen = elementary(em, f"f{kind[:3]}", left, right)  # NaN only if both are
    if kind.endswith("numf"):
        return chosen
    # fmin and fmax prefer a number to NaN; a sum with NaN is NaN.
    b = em.builder
    unordered = b.fcmp_unordered("uno", left, right)
    return b.select(unordered, b.fadd(left, right), chosen)


def together(builder: Builder, items: Sequence[Value]) -> Value:
    """Return numbers as a vector; a single one stays a number."""
    if len(items) == 1:
        return items[0]
    value: Value = ll.Constant(ll.VectorType(items[0].type, len(items)), ll.Undefined)
    for number, item in enumerate(items):
        value = builder.insert_element(value, item, I32(number))
    return value


def elementary(em: KernelEmitter, name: str, *args: Value) -> Value:
    """Call a function of OpenCL C whose result has the type of its arguments."""
    type_ = opencl_type(args[0].type)
    return em.call(function(name, type_, *[type_] * len(args)), args)
