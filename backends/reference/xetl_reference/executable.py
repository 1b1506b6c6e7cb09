"""The executable of a kernel: interprets it on the runtime's arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute

from xetl.analysis.memory import stored_arguments
from xetl.backend import Argument, Arguments, ArrayView, Executable
from xetl.dialects.kernel_attributes import argument_names
from xetl.dialects.xetile.types import TileType
from xetl.errors import InternalError
from xetl.runtime.trace import TileAccess, TileTrace, current_trace
from xetl_reference.checks import Guard, Run
from xetl_reference.findings import line_of
from xetl_reference.interpreter import TABLE, Interpreter, subgroups_of
from xetl_reference.memory import Memory, View, argument_view
from xetl_reference.plan import BLOCK_ID, Frame, Plan, Step
from xetl_reference.plan import Guard as StepGuard
from xetl_reference.tiles import Tile
from xetl_reference.values import as_scalar, dtype_of

_KINDS = {
    "xetile.load_tile": "load",
    "xetile.store_tile": "store",
    "xetile.prefetch_tile": "prefetch",
    "xetile.atomic_rmw_tile": "atomic",
}


def recorder(
    trace: TileTrace, names: Mapping[Memory, str], guard: StepGuard | None
) -> StepGuard:
    """Return a guard that records the tiles of a program, and applies ``guard``."""

    def note(plan: Plan, op: Any, step: Step) -> Step:
        inner = step if guard is None else guard(plan, op, step)
        kind = _KINDS.get(op.name)
        tiles = [each for each in op.operands if isinstance(each.type, TileType)]
        if kind is None or not tiles:
            return inner
        slot, shape, line = plan.slot(tiles[0]), tiles[0].type.shape, line_of(op)

        def run(frame: Frame) -> None:
            tile = frame[slot]
            here = tuple(frame[BLOCK_ID : BLOCK_ID + 3])
            if here == trace.program and isinstance(tile, Tile):
                trace.accesses.append(
                    TileAccess(
                        kind,
                        names.get(tile.memory, "shared memory"),
                        int(tile.base),
                        (int(tile.sizes[0]), int(tile.sizes[1])),
                        int(tile.row),
                        int(tile.column),
                        (shape[0], shape[1]),
                        line,
                    )
                )
            inner(frame)

        return run

    return note


class ReferenceExecutable(Executable):
    """See `xetl.backend.Executable`."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._interpreter = Interpreter(module)
        self._guarded: dict[frozenset[str], tuple[Interpreter, Guard]] = {}
        self.stored = stored_arguments(self._interpreter.function)

    def launch(self, grid: tuple[int, int, int], args: Arguments) -> None:
        """Run the kernel on ``args`` (constants left out)."""
        values = self._values(args)
        self._traced(self._interpreter, values).run(grid, values)

    def check(
        self, grid: tuple[int, int, int], args: Arguments, checks: Collection[str]
    ) -> None:
        """Run the kernel on copies with checks; copy the results back if all pass.

        Raises:
            CheckError: a check failed; the arrays are unchanged.
        """
        interpreter, guard = self._with_guard(frozenset(checks))
        values = self._values(args)
        copies, written = self._copies(values)
        run = Run(guard, subgroups_of(interpreter.function) != (1, 1, 1))
        watch(run, interpreter.function, copies, written)
        self._traced(interpreter, copies, guard).run(grid, copies, checks=run)
        for index in self.stored:
            if all(values[index].sizes):
                values[index].whole()[...] = copies[index].whole()

    def _traced(
        self, plain: Interpreter, values: Sequence[Any], guard: Guard | None = None
    ) -> Interpreter:
        """Return an interpreter that records a trace, if one is made, or ``plain``."""
        trace = current_trace()
        if trace is None:
            return plain
        function = plain.function
        named = zip(values, argument_names(function, len(values)))
        names = {value.memory: n for value, n in named if isinstance(value, View)}
        table = TABLE.guarded(recorder(trace, names, guard))
        return Interpreter(self._module, table=table)

    def _with_guard(self, checks: frozenset[str]) -> tuple[Interpreter, Guard]:
        found = self._guarded.get(checks)
        if found is None:
            guard = Guard(checks)
            found = Interpreter(self._module, table=TABLE.guarded(guard)), guard
            self._guarded[checks] = found
        return found

    def _copies(self, values: Sequence[Any]) -> tuple[list[Any], set[Memory]]:
        """Return the arguments, with copies of the memory that the kernel writes.

        Arguments with the same memory share one copy.
        """
        copies: dict[tuple[int, int], Memory] = {}
        for index in self.stored:
            memory = values[index].memory
            copies[place_of(memory)] = Memory(memory.data.copy(), memory.origin)
        made: list[Any] = []
        for value in values:
            if isinstance(value, View):
                memory = copies.get(place_of(value.memory), value.memory)
                value = value._replace(memory=memory)
            made.append(value)
        return made, set(copies.values())

    def _values(self, args: Arguments) -> list[Any]:
        types = self._interpreter.argument_types
        if len(types) != len(args):
            problem = f"a kernel of {len(types)} arguments was given {len(args)}"
            raise InternalError(problem)
        return [_value(arg, type_) for arg, type_ in zip(args, types)]


def watch(
    run: Run, function: Any, arguments: Sequence[Any], written: Collection[Memory]
) -> None:
    """Register the array arguments of a kernel with the checks of a run."""
    for name, value in zip(argument_names(function, len(arguments)), arguments):
        if isinstance(value, View):
            run.watch_argument(name, value, value.memory in written)


def place_of(memory: Memory) -> tuple[int, int]:
    """Return address and length in bytes, which identify a memory."""
    return memory.data.__array_interface__["data"][0], len(memory.data)


def _value(argument: Argument, type_: Attribute) -> Any:
    dtype = dtype_of(type_)
    if not isinstance(argument, ArrayView):
        return as_scalar(argument, dtype)
    if not isinstance(type_, MemRefType):
        raise InternalError(f"an array was given for {type_}")
    return argument_view(
        argument.address, dtype, argument.shape, argument.strides, argument.readonly
    )
