"""Passes that are loaded where a module has operations for them.

Most kernels have no products, and to load the passes for these takes a while.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from xetl.dialects.walk import operations_in
from xetl.imports import import_whole


@dataclass(frozen=True)
class LaterPass(ModulePass):
    """The pass ``name``, with ``options``, where one of the operations ``of`` is."""

    # Of each object here, of the class elsewhere: it stands for passes of any name.
    name: str  # pyright: ignore[reportIncompatibleVariableOverride]
    of: tuple[type[Operation], ...]
    options: tuple[object, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Load the pass and run it, if there is anything for it."""
        if operations_in(op, *self.of):
            self.load()(*self.options).apply(ctx, op)

    def load(self) -> type[ModulePass]:
        """The pass, which the module of its name holds."""
        module = import_whole(f"xetl_cpu.lowering.{self.name.replace('-', '_')}")
        words = [word.capitalize() for word in self.name.split("-")]
        return getattr(module, f"{''.join(words)}Pass")
