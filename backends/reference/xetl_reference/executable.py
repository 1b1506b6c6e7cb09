"""A kernel on arguments as the runtime gives them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute

from xetl.analysis.memory import stored_arguments
from xetl.backend import Argument, ArrayView, Executable
from xetl.errors import InternalError
from xetl_reference.checks import Guard, Run
from xetl_reference.interpreter import (
    TABLE,
    Grid,
    Interpreter,
    subgroups_of,
    table_with,
)
from xetl_reference.memory import Memory, View, argument_view, view_of_array
from xetl_reference.values import Meaning, as_scalar, dtype_of


class ReferenceExecutable(Executable):
    """See `xetl.backend.Executable`."""

    def __init__(self, module: ModuleOp) -> None:
        self._module = module
        self._interpreter = Interpreter(module)
        self._guarded: dict[frozenset[str], tuple[Interpreter, Guard]] = {}
        self.stored = stored_arguments(self._interpreter.function)

    def launch(self, grid: tuple[int, int, int], args: Sequence[Argument]) -> None:
        """Run the kernel on ``args`` (constants left out)."""
        self._interpreter.run(grid, self._values(args))

    def check(
        self,
        grid: tuple[int, int, int],
        args: Sequence[Argument],
        checks: Collection[str],
    ) -> None:
        """Run the kernel on copies with checks; keep the results if all is well.

        Raises:
            CheckError: a check found something; the arrays are as they were.
        """
        interpreter, guard = self._with_guard(frozenset(checks))
        values = self._values(args)
        copies, written = self._copies(values)
        several = subgroups_of(interpreter.function) != (1, 1, 1)
        run = Run(guard, several)
        watch(run, interpreter.function, copies, written)
        interpreter.run(grid, copies, checks=run)
        for index in self.stored:
            if all(values[index].sizes):
                values[index].whole()[...] = copies[index].whole()

    def _with_guard(self, checks: frozenset[str]) -> tuple[Interpreter, Guard]:
        found = self._guarded.get(checks)
        if found is None:
            guard = Guard(checks)
            table = TABLE.guarded(guard)
            found = Interpreter(self._module, table=table), guard
            self._guarded[checks] = found
        return found

    def _copies(self, values: Sequence[Any]) -> tuple[list[Any], set[Memory]]:
        """The arguments with copies of what is stored; the very same view stays one."""
        copies: dict[tuple[int, int], Memory] = {}
        for index in self.stored:
            memory = values[index].memory
            copies[place_of(memory)] = Memory(memory.data.copy(), memory.origin)
        made: list[Any] = []
        for value in values:
            if isinstance(value, View):
                memory = copies.get(place_of(value.memory), value.memory)
                value = View(
                    memory, value.dtype, value.offset, value.sizes, value.strides
                )
            made.append(value)
        return made, set(copies.values())

    def _values(self, args: Sequence[Argument]) -> list[Any]:
        types = self._interpreter.argument_types
        if len(types) != len(args):
            raise InternalError(
                f"a kernel of {len(types)} arguments was given {len(args)}"
            )
        return [_value(arg, type_) for arg, type_ in zip(args, types)]


def watch(
    run: Run, function: Any, arguments: Sequence[Any], written: Collection[Memory]
) -> None:
    """Let the checks of a run see the arrays among the arguments of a kernel."""
    names = _names(function, len(arguments))
    for name, value in zip(names, arguments):
        if isinstance(value, View):
            run.watch_argument(name, value, value.memory in written)


def place_of(memory: Memory) -> tuple[int, int]:
    """Address and length in bytes: two memories of one place are one."""
    return memory.data.__array_interface__["data"][0], len(memory.data)


def _names(function: Any, count: int) -> list[str]:
    """The names of the arguments, as the user calls them."""
    attributes = {**function.properties, **function.attributes}
    given: Any = attributes.get("xetile.arg_names")
    if given is None:
        return [f"argument {number}" for number in range(count)]
    return [each.data for each in given.data]


def _value(argument: Argument, type_: Attribute) -> Any:
    dtype = dtype_of(type_)
    if not isinstance(argument, ArrayView):
        return as_scalar(argument, dtype)
    if not isinstance(type_, MemRefType):
        raise InternalError(f"an array was given for {type_}")
    return argument_view(
        argument.address, dtype, argument.shape, argument.strides, argument.readonly
    )


def run_module(
    module: ModuleOp,
    grid: Sequence[int],
    arrays: Sequence[Any],
    extra_ops: Mapping[str, Meaning] | None = None,
    *,
    kernel: str | None = None,
    subgroups: Grid | None = None,
    checks: Collection[str] = (),
) -> None:
    """Run a kernel of ``module``, at any stage whose operations are known.

    Args:
        module: with one kernel (``gpu.func`` or ``func.func``), or several and a name.
        grid: programs along x, y and z; what is left out is 1.
        arrays: NumPy arrays and numbers, one for each argument but the sizes of the
            grid that the CPU backend adds; stored arrays are written in place.
        extra_ops: meanings of operations of other dialects, see `register_op`.
        kernel: its name.
        subgroups: of a program along x, y and z, for kernels at subgroup level.
        checks: which of ``oob``, ``uninit`` and ``race`` (checks.py) are on.

    Raises:
        CheckError: a check found something; what was stored before it stays.
    """
    table, guard = table_with(extra_ops), Guard(checks)
    if checks:
        table = table.guarded(guard)
    interpreter = Interpreter(module, kernel, table)
    types = interpreter.argument_types[: len(arrays)]
    arguments = [_argument(value, type_) for value, type_ in zip(arrays, types)]
    _join(arguments)
    run = None
    if checks:
        several = (subgroups or subgroups_of(interpreter.function)) != (1, 1, 1)
        run = Run(guard, several)
        stored = [arguments[i].memory for i in stored_arguments(interpreter.function)]
        watch(run, interpreter.function, arguments, stored)
    x, y, z = (*grid, 1, 1, 1)[:3]
    interpreter.run((x, y, z), arguments, subgroups, run)


def _join(arguments: list[Any]) -> None:
    """Let an array that is given twice be one memory, so that checks see it as one."""
    known: dict[tuple[int, int], Memory] = {}
    for view in arguments:
        if isinstance(view, View):
            view.memory = known.setdefault(place_of(view.memory), view.memory)


def _argument(value: Any, type_: Attribute) -> Any:
    dtype = dtype_of(type_)
    if not isinstance(type_, MemRefType):
        return as_scalar(value, dtype)
    if not isinstance(value, np.ndarray):
        raise InternalError(f"expected an array for {type_}, found {value!r}")
    return view_of_array(value, dtype)
