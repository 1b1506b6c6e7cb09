"""Helpers that write the LLVM IR of a function that replaces a builtin."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from xetl.codegen.types import I32, I64, Builder, Value, ll
from xetl_xegpu.emit.builtins import Builtin, function
from xetl_xegpu.emit.emitter import GLOBAL, declare, new_function


@dataclass(frozen=True)
class Body:
    """The body of a function that is being written.

    Attributes:
        builder: inserts instructions at the current position.
        builtin: the function that the body replaces.
        room: capacity of the log in words.
    """

    builder: Builder
    builtin: Builtin
    room: int = 0

    @property
    def arguments(self) -> Sequence[Value]:
        """The arguments of the function."""
        return self.builder.function.args

    def call(self, builtin: Builtin, operands: Sequence[Value]) -> Value:
        """Call another builtin."""
        found = declare(self.builder.module, builtin)
        return self.builder.call(found, list(operands), cconv="spir_func")

    def lane(self) -> Value:
        """The number of this lane, i32."""
        return self.call(function("get_sub_group_local_id", "uint"), [])

    def group(self, axis: int) -> Value:
        """The number of this workgroup along an axis, i64."""
        return self.call(function("get_group_id", "ulong", "uint"), [I32(axis)])

    def broadcast(self, value: Value, lane: Value) -> Value:
        """Broadcast an i32 from one lane; ``lane`` must be the same in all lanes."""
        builtin = function("sub_group_broadcast", "uint", "uint", "uint")
        return self.call(builtin, [value, lane])

    @contextmanager
    def loop(self, count: int, *, is_unrolled: bool = True) -> Generator[Value]:
        """Write a loop over i32 numbers below ``count``, without loop-carried values.

        Args:
            count: the number of iterations.
            is_unrolled: whether the driver may unroll the loop. If not, the loop ends
                at ``count + (group id >> 48)``: group ids are below 2^48.

        [measured] intel-opencl-rt 2026.2 unrolls a loop of known count: a product of
        bytes then took 3 s to build, otherwise 0.8 s.
        """
        b = self.builder
        end = I32(count)
        if not is_unrolled:
            end = b.add(end, b.trunc(b.lshr(self.group(0), I64(48)), I32))
        before, inside = b.block, b.append_basic_block("row")
        b.branch(inside)
        b.position_at_end(inside)
        number = b.phi(I32)
        number.add_incoming(I32(0), before)
        yield number
        after = b.append_basic_block("rows")
        following = b.add(number, I32(1))
        number.add_incoming(following, b.block)
        b.cbranch(b.icmp_unsigned("<", following, end), inside, after)
        b.position_at_end(after)

    def report(self, status: Value, number: Value, values: Sequence[Value]) -> None:
        """Write a record of `xetl.runtime.log`, if there is room for it.

        Args:
            status: address of the log. Memory that is not a log begins with 0, and
                nothing is written to it.
            number: i32, the number of the operation in the log.
            values: i64, the numbers to report.
        """
        name = f"xetl_report_{len(values)}"
        found = self.builder.module.globals.get(name)
        if found is None:  # one function for all: no copy in each function that checks
            types = [I64, I32, *[I64] * len(values)]
            type_ = ll.FunctionType(ll.VoidType(), types)
            found = new_function(self.builder.module, name, type_, "noinline")
            builder = ll.IRBuilder(found.append_basic_block("entry"))
            replace(self, builder=builder)._write_record(*found.args)
            builder.ret_void()
        operands = [status, number, *values]
        self.builder.call(found, operands, cconv="spir_func")

    def _write_record(self, status: Value, number: Value, *values: Value) -> None:
        b = self.builder
        words = [b.zext(number, I64), *map(self.group, range(3)), *values]
        log = b.inttoptr(status, GLOBAL)
        used = b.load(log, typ=I64, align=8)
        last = I64(self.room - len(words))
        is_log = b.icmp_signed(">", used, I64(0))
        with b.if_then(b.and_(is_log, b.icmp_signed("<=", used, last))):
            start = b.atomic_rmw("add", log, I64(len(words)), "monotonic")
            with b.if_then(b.icmp_signed("<=", start, last)):
                for index, word in enumerate(words):
                    place = b.add(start, I64(index))
                    b.store(word, b.gep(log, [place], source_etype=I64), align=8)
