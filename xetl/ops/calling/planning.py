"""The launches of a declared function for calls of one kind (`declare`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from xetl.errors import LaunchError
from xetl.ops.calling.calls import Launch
from xetl.ops.calling.declarations import SUMS, Operand, as_rows, steps_of, wrong_shape
from xetl.ops.calling.operands import Numbers, as_numpy, dtype_of, order_of
from xetl.ops.calling.recycling import new_array
from xetl.ops.calling.repeated import Recorder
from xetl.records import record

if TYPE_CHECKING:
    from xetl.ops.calling.declare import Function


@record()
class Plan:
    """The launches for calls of one kind, and the indices of the arrays each takes."""

    results: tuple[Operand, ...]
    temporary: tuple[Operand, ...]
    steps: list[tuple[Launch, tuple[int | None, ...], tuple[float, ...]]]
    recorder: Recorder = field(default_factory=Recorder)


def plan_for(
    declared: Function,
    values: Sequence[Any],
    arrays: Sequence[Numbers | None],
    places: Sequence[Numbers | None],
) -> Plan:
    """Return the plan for calls with such arguments.

    Args:
        declared: the called function.
        values: all arguments in order, ``out`` last.
        arrays: the elements of the arrays among them; None: not given.
        places: the elements of the ``out`` for each result; None: not given.

    Raises:
        LaunchError: the arguments do not fit.
    """
    inputs: list[Operand | None] = []
    filled = list(values[:-1])
    for i, array in zip(declared.arrays, arrays):
        name, given = declared.names[i], values[i]
        filled[i] = None if array is None else _operand(name, given, array)
        inputs.append(filled[i])
    if inputs and inputs[0] is None and declared.arrays[0] < declared.needed:
        problem = f"`{declared.array_names[0]}` is None, but must be an array"
        raise LaunchError(problem, code="X0805", help="pass an array")
    copies = as_rows(filled, declared.arrays) if declared.by_rows else []
    call = declared.rule(*filled)
    results = [
        _place(declared.shown, spec, place, out)
        for spec, place, out in zip(call.results, places, declared.outs_of(values[-1]))
    ]
    if results and all(0 in spec.shape for spec in results):
        return Plan(call.results, (), [])
    memory = [*inputs, *results]
    count = len(memory)
    steps: list[tuple[Launch, tuple[int | None, ...], tuple[float, ...]]] = []
    for step in [*copies, *steps_of(call, results)]:
        where = tuple(_position(each, memory) for each in step.operands)
        steps.append((step.launch, where, step.numbers))
    return Plan(call.results, tuple(cast("list[Operand]", memory[count:])), steps)


def _operand(name: str, given: Any, array: Numbers) -> Operand:
    shape = _shape_of(given, array)
    order = order_of(array.shape, array.strides)
    return Operand(name, shape, dtype_of(array, name), array, order=order)


def _place(shown: str, spec: Operand, place: Numbers | None, out: Any) -> Operand:
    """Return the operand of a result for the steps.

    Raises:
        LaunchError: the ``out`` that the user gave does not fit.
    """
    if place is None:
        empty = new_array(spec.shape or (1,), spec.dtype.numpy, spec.order)
        return Operand(spec.name, spec.shape, spec.dtype, empty, True, spec.order)
    shape = _shape_of(out, place)
    if shape != spec.shape:
        problem = f"`out` is {shape}, but the result is {spec.shape}"
        raise wrong_shape(shown, problem, "pass an array of that shape")
    dtype = dtype_of(place, "out")
    if dtype != spec.dtype and not (dtype in SUMS and spec.dtype in SUMS):
        allowed = ", ".join(map(str, SUMS if spec.dtype in SUMS else [spec.dtype]))
        problem = f"`{shown}` cannot give its result as {dtype}"
        raise LaunchError(problem, "X0828", f"the dtypes of `out` are {allowed}")
    order = order_of(place.shape, place.strides)
    return Operand("out", spec.shape, dtype, place, order=order)


def _shape_of(given: Any, array: Numbers) -> tuple[int, ...]:
    """Return the shape of an argument; () if it is an array of rank 0."""
    return tuple(given.shape) if hasattr(given, "shape") else array.shape


def elements_of(given: Any, name: str) -> Numbers:
    """Return the elements of an array as a NumPy array, of rank 1 at least."""
    with suppress(Exception):  # if it is no array: `as_numpy` refuses it
        if given.shape == ():
            given = given.reshape(1)
    return as_numpy(given, name)


def _position(operand: Operand | None, known: list[Operand | None]) -> int | None:
    """Return the index of an operand in ``known``; append it if it is not there."""
    if operand is None:
        return None
    for i, each in enumerate(known):
        if each is operand:
            return i
    known.append(operand)
    return len(known) - 1
