"""The emitter of CPU kernels: the core's emitter, with facts about the launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from xdsl.ir import Operation

from xetl.codegen.emitter import Emitter
from xetl.codegen.types import I64, Type, Value, ll
from xetl.records import record
from xetl_cpu.llvm import Builder
from xetl_cpu.targets import Target


@record()
class KernelEmitter(Emitter):
    """An emitter that knows the launch: its workspace and its threads.

    Attributes:
        target: the target of the code.
        slots: address of the slots; only in the kernel itself, not in its tasks.
        used: bytes of the workspace taken by allocations of the launch so far.
        packed: number of operands so far that the launch may pass in packed.
        scratch_bytes: size of one thread's scratch.
        scratch: address of this thread's scratch; only in tasks.
        thread: the number of the thread; only in tasks.
        last: address of each `IsNewOp`'s last value in a thread; only in tasks.
        scratch_used: bytes of scratch that the task's buffers take so far.
        is_checked: whether the workspace was checked to be large enough.
        log: address of the log of the launch; only in tasks.
        log_ids: the number of each operation that writes to the log.
        program: the numbers of the program that is running; only in tasks.
        next_trip: the block that a program (or a fiber of it) jumps to if it ends
            early.
        fiber: in fibers, addresses of the saved stack pointers of program and fiber.
    """

    # This attribute is never replaced by another builder.
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
        """Return the thread's scratch, if a gather is compiled to single loads."""
        return self.scratch if self.target.loads_one_by_one else None

    def chosen(self, value: Value) -> Value:
        """Return the same vector, in a form that LLVM makes no masked store of on AVX.

        LLVM makes masked stores, which are slow on AVX, of selects between new and old
        elements of the same memory, but not of frozen values. [measured] Zen 3, 8 f32:
        6 ns; load, select and store 0.7.
        """
        return value if self.target.has_masks else self.builder.freeze(value)

    def hidden(self, number: Value) -> Value:
        """See `Builder.hidden`."""
        return self.builder.hidden(number)

    def inside(self, function: ll.Function) -> KernelEmitter:
        """Return an emitter for the body of a task function."""
        builder = Builder(function.append_basic_block("entry"))
        new = replace(self, builder=builder, values={}, slots=None, scratch_used=0)
        new.rows = {}
        return new
