"""What the bodies of emulated builtins are built with."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from xetl.codegen.llvm import ll
from xetl.codegen.types import I32
from xetl_xegpu.emit.builtins import Builtin, function
from xetl_xegpu.emit.emitter import declare


@dataclass(frozen=True)
class Body:
    """The body of a function that is being written.

    Attributes:
        builder: where the next instruction goes.
        builtin: what the function is.
    """

    builder: Any
    builtin: Builtin

    @property
    def arguments(self) -> Sequence[Any]:
        """Of the function."""
        return self.builder.function.args

    def call(self, builtin: Builtin, operands: Sequence[Any]) -> Any:
        """Call another builtin."""
        found = declare(self.builder.module, builtin)
        return self.builder.call(found, list(operands), cconv="spir_func")

    def lane(self) -> Any:
        """The number of this lane, i32."""
        return self.call(function("get_sub_group_local_id", "uint"), [])

    def broadcast(self, value: Any, lane: int) -> Any:
        """An i32 as a lane has it."""
        builtin = function("sub_group_broadcast", "uint", "uint", "uint")
        return self.call(builtin, [value, I32(lane)])

    @contextmanager
    def loop(self, count: int) -> Generator[Any]:
        """For i below ``count``, an i32; nothing is carried."""
        b = self.builder
        before, inside = b.block, b.append_basic_block("row")
        b.branch(inside)
        b.position_at_end(inside)
        number = b.phi(I32)
        number.add_incoming(I32(0), before)
        yield number
        after = b.append_basic_block("rows")
        following = b.add(number, I32(1))
        number.add_incoming(following, b.block)
        b.cbranch(b.icmp_unsigned("<", following, I32(count)), inside, after)
        b.position_at_end(after)


def together(builder: Any, items: Sequence[Any]) -> Any:
    """Numbers as a vector; a single one stays a number."""
    if len(items) == 1:
        return items[0]
    value: Any = ll.Constant(ll.VectorType(items[0].type, len(items)), ll.Undefined)
    for number, item in enumerate(items):
        value = builder.insert_element(value, item, I32(number))
    return value
