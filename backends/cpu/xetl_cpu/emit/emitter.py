"""What emission of a CPU kernel knows besides the core's emitter: the launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from xdsl.ir import Operation, SSAValue

from xetl.codegen.emitter import Emitter
from xetl.codegen.types import I64, Type, Value, ll
from xetl.records import record
from xetl_cpu.llvm import Builder
from xetl_cpu.targets import Target


@record()
class KernelEmitter(Emitter):
    """An emitter that knows the launch: its workspace and its threads.

    Attributes:
        target: what the code is for.
        slots: address of the slots; only in the kernel itself, not in its tasks.
        used: bytes of the workspace taken by allocations of the launch so far.
        packed: how many operands that the launch may bring packed there were so far.
        scratch_bytes: size of one thread's scratch.
        scratch: address of this thread's scratch; only in tasks.
        thread: the number of the thread (only in tasks).
        last: where a thread keeps what each `IsNewOp` met (only in tasks).
        scratch_used: how much of it the task's buffers take so far.
        is_checked: whether the workspace is known to be large enough.
        log: address of the log of the launch (only in tasks).
        log_ids: the number of each operation that writes to it.
        program: the numbers of the program that is running (only in tasks).
        next_trip: where a program (or a fiber of it) ends early.
        fiber: in fibers, where the program's stack pointer is kept and the fiber's.
    """

    # Nobody puts another one in its place.
    builder: Builder  # pyright: ignore[reportIncompatibleVariableOverride]
    target: Target = field(kw_only=True)
    slots: Any = None
    used: Any = None
    packed: int = 0
    scratch_bytes: int = 0
    scratch: Any = None
    thread: Any = None
    last: dict[Operation, Any] = field(default_factory=dict[Operation, Any])
    scratch_used: int = 0
    is_checked: bool = False
    log: Any = None
    log_ids: dict[Operation, int] = field(default_factory=dict[Operation, int])
    program: Sequence[Value] = ()
    next_trip: Any = None
    fiber: tuple[Value, Value] | None = None

    def slot(self, index: int, type_: Type = I64) -> Value:
        """Load a slot."""
        address = self.builder.word_at(self.slots, index)
        return self.builder.load(address, typ=type_, align=8)

    def spare_memory(self) -> Value | None:
        """The thread's scratch."""
        return self.scratch if self.target.loads_one_by_one else None

    def chosen(self, value: Value) -> Value:
        """The same vector, if there are no masks: stores by those of AVX are slow.

        LLVM makes one of a choice between new and old elements of the same memory, but
        not of a frozen one. [measured] Zen 3, 8 f32: 6 ns; load, choose and store 0.7.
        """
        return value if self.target.has_masks else self.builder.freeze(value)

    def hidden(self, number: Value) -> Value:
        """See `Builder.hidden`."""
        return self.builder.hidden(number)

    def inside(
        self, function: ll.Function, values: dict[SSAValue, Any]
    ) -> KernelEmitter:
        """An emitter for the body of a task function."""
        builder = Builder(function.append_basic_block("entry"))
        new = replace(self, builder=builder, values=values, slots=None, scratch_used=0)
        new.rows = {}
        return new
