"""The parts of a rule of `xetl.ops`: operands, launches, results, checks.

`declare` makes a public function of a rule. If the strides of an array do not suit the
launches, another launch copies the array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from xetl.errors import LaunchError, a_kind
from xetl.imports import import_whole
from xetl.language.dtypes import DType, bf16, f16, f32, f64, i8, i32, u8
from xetl.ops.calling.calls import Launch, View, are_views
from xetl.ops.calling.operands import Numbers, Shape, order_of
from xetl.ops.calling.recycling import new_array
from xetl.records import record

ArrayLike: TypeAlias = Any
"""An array of any library; the annotation tells arrays from options."""
Number: TypeAlias = float
"""A number that kernels get at run time: one compiled kernel serves all values."""
DTypeLike: TypeAlias = Any
"""A dtype of NumPy, torch or xetl, or its name."""


@record(frozen=True)
class Operand:
    """An array as a rule sees it.

    Attributes:
        name: its name in errors.
        shape: its extents; symbols of torch if torch asks only for shapes.
        dtype: the dtype of its elements.
        array: the elements, of rank 1 at least; None if torch asks only for shapes.
        is_new: whether the function makes it.
        order: its dimensions by stride, the outermost first; None: row-major.
    """

    name: str
    shape: Shape
    dtype: DType
    array: Numbers | None = None
    is_new: bool = False
    order: tuple[int, ...] | None = None

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


Operands: TypeAlias = Sequence[Operand | None]


@record(frozen=True)
class Step:
    """One launch among those that compute a function.

    Attributes:
        operands: inputs, results and temporary arrays in the order of the launch.
        numbers: arguments of the kernel after the arrays.
    """

    launch: Launch
    operands: Operands
    numbers: tuple[float, ...] = ()


@record(frozen=True)
class Call:
    """The return value of a rule: the results of a call and its launches.

    Attributes:
        results: shape and dtype of each.
        steps: takes the operands of the results and returns the launches. It is
            called only if the arrays have elements, not if torch asks for shapes.
    """

    results: tuple[Operand, ...]
    steps: Callable[[Sequence[Operand]], Sequence[Step]]


def temporary(
    shape: Shape,
    dtype: DType,
    name: str = "temporary",
    order: tuple[int, ...] | None = None,
) -> Operand:
    """Make an array that one launch writes and a later one reads."""
    array = new_array(shape, dtype.numpy, order)
    return Operand(name, shape, dtype, array, True, order)


def result(
    shape: Shape,
    dtype: DType,
    name: str = "out",
    order: tuple[int, ...] | None = None,
) -> Operand:
    """Describe a result that does not exist yet."""
    return Operand(name, shape, dtype, order=order)


def result_like(x: Operand, dtype: DType) -> Operand:
    """Describe a result with the shape of ``x`` and its order of dimensions."""
    return result(x.shape, dtype, order=x.order)


def as_rows(values: list[Any], places: Sequence[int]) -> list[Step]:
    """Replace arrays whose rows are not contiguous by copies; return the copying steps.

    Args:
        values: all arguments of a rule; the list is changed.
        places: the indices of the arrays.
    """
    copies: list[Step] = []
    for i in places:
        x: Operand | None = values[i]
        if x is not None and x.order is not None and x.order[-1] != x.ndim - 1:
            values[i], steps = along(x, x.ndim - 1)
            copies += steps
    return copies


def along(x: Operand, *dims: int) -> tuple[Operand, list[Step]]:
    """Return a temporary array with ``dims`` innermost, and the steps that fill it."""
    order = (*(i for i in range(x.ndim) if i not in dims), *dims)
    to = temporary(x.shape, x.dtype, x.name, order)
    return to, [copied(x, to)]


def along_view(x: Operand, view: View, *dims: int) -> tuple[Operand, list[Step]]:
    """The array if such a view of it has rows along memory, else it along ``dims``."""
    assert x.array is not None
    seen = view(x.array)
    order = order_of(seen.shape, seen.strides)
    if are_views([x.array], [view]) and (order is None or order[-1] == seen.ndim - 1):
        return x, []
    return along(x, *dims)


def steps_of(call: Call, results: Sequence[Operand]) -> list[Step]:
    """Return the launches of a call, and copies of what they can see no views of.

    These are inputs whose views would be copies in each call, and results.
    """
    steps = _on_copies(_steps_with_programs(call, results), results)
    lost = [any(_misses(step, x) for step in steps) for x in results]
    if not any(lost):
        return steps
    moved = [
        temporary(x.shape, x.dtype, order=spec.order) if is_lost else x
        for spec, x, is_lost in zip(call.results, results, lost)
    ]
    copies = [copied(each, x) for each, x in zip(moved, results) if each is not x]
    return [*_on_copies(_steps_with_programs(call, moved), moved), *copies]


def _on_copies(steps: list[Step], results: Sequence[Operand]) -> list[Step]:
    """Return steps that read row-major copies of inputs of which they need views."""
    made = list[tuple[Operand, Operand]]()

    def seen(step: Step, x: Operand | None) -> Operand | None:
        if x is None or x.is_new or any(x is each for each in results):
            return x
        if not _misses(step, x):
            return x
        for source, to in made:
            if source is x:
                return to
        made.append((x, temporary(x.shape, x.dtype)))
        return made[-1][1]

    found = [
        replace(step, operands=[seen(step, x) for x in step.operands]) for step in steps
    ]
    return [*(copied(*pair) for pair in made), *found]


def _steps_with_programs(call: Call, results: Sequence[Operand]) -> list[Step]:
    launches = ((step, step.launch) for step in call.steps(results))
    return [step for step, each in launches if 0 not in (*each.loops, *each.grid)]


def copied(source: Operand, to: Operand) -> Step:
    """Return the launch that copies elements, converted to the dtype of ``to``."""
    # Imported late: few calls need a copy.
    return import_whole("xetl.ops.activations").copied(source, to)


def _misses(step: Step, place: Operand) -> bool:
    """Whether a step would see a copy of ``place``, such as a reshaped ``out``."""
    if place.array is None or (place.is_new and place.order is None):
        return False
    pairs = zip(step.launch.views, step.operands)
    views = [view for view, x in pairs if x is place and view is not None]
    misses = not are_views([place.array] * len(views), views)
    assert not (misses and place.is_new), "a rule cannot write to its own result"
    return misses


class Context:
    """The input of a derivative; a base class of the autograd nodes of torch.

    Attributes:
        declared: the function.
        places: the index of each array among the inputs of the node, by name.
        saved: the inputs and results that the declaration names. A rule may read them
            only once: hooks, such as those of checkpoints, allow no second unpacking.
        values: all arguments. Saved arrays are None, others are (dtype, shape).
        needs_input_grad: whether each input of the node needs a gradient.
    """

    declared: Any
    places: Mapping[str, int]
    saved: tuple[Any, ...]
    values: Sequence[Any]
    needs_input_grad: Sequence[bool]

    @property
    def options(self) -> Mapping[str, Any]:
        """All of `values`, by the names of the arguments."""
        return dict(zip(self.declared.names, self.values))

    def __getitem__(self, name: str) -> Any:
        """Return the item of `values` for the argument of this name."""
        return self.values[self.declared.places[name]]

    def needs(self, name: str) -> bool:
        """Whether the gradient of an array is needed."""
        return self.needs_input_grad[self.places[name]]

    def dtype_of(self, name: str) -> Any:
        """Return torch's dtype of an array that is not saved."""
        return self[name][0]

    def shape_of(self, name: str) -> Any:
        """Return the shape of an array that is not saved."""
        return self[name][1]


Backward: TypeAlias = Callable[..., Mapping[str, Any]]
"""``backward(context, *gradients)`` returns gradients by the names of arguments."""

Dims: TypeAlias = Sequence[int]
"""Numbers that torch takes as a list."""

SUMS = {f16: f32, bf16: f32, f32: f32, f64: f64}
"""The dtype in which operands of each dtype are computed."""


def common_dtype_of(function: str, dtypes: Mapping[str, DType]) -> DType:
    """Return the dtype that all operands of a function have.

    Args:
        function: its name in errors.
        dtypes: the dtype of each operand, by name.

    Raises:
        LaunchError: the dtypes differ, or are no floats.
    """
    first = next(iter(dtypes.values()))
    if first not in SUMS or any(dtype != first for dtype in dtypes.values()):
        given = ", ".join(f"{name} of {dtype}" for name, dtype in dtypes.items())
        help_ = f"convert to one of {', '.join(map(str, SUMS))}, the same for all"
        raise LaunchError(f"`{function}` was given {given}", "X0828", help_)
    return first


def wrong_shape(function: str, problem: str, help_: str) -> LaunchError:
    """Return the error for a shape that does not fit."""
    return LaunchError(f"`{function}`: {problem}", code="X0827", help=help_)


def out_and_gradient(function: str) -> LaunchError:
    """Return the error for ``out=`` in a call that torch is to differentiate."""
    problem = f"`{function}` was given `out=`, and an argument requires a gradient"
    help_ = "leave out `out=`, or call it inside of `with torch.no_grad():`"
    return LaunchError(problem, "X0838", help_)


def with_out(function: str, found: Any, out: Any) -> Any:
    """Copy a result of torch's operator to ``out`` if given; return the tensor.

    Raises:
        LaunchError: ``out`` is no tensor of that shape, or one of ``out`` and the
            result is of a floating-point dtype and the other is not.
    """
    if out is None:
        return found
    if not hasattr(out, "copy_"):
        problem = f"`out` is {a_kind(out)}, beside tensors"
        raise LaunchError(problem, code="X0805", help="pass a tensor")
    if out.shape != found.shape:
        shapes = f"{tuple(out.shape)}, but the result is {tuple(found.shape)}"
        raise wrong_shape(function, f"`out` is {shapes}", "pass a tensor of that shape")
    if found.dtype.is_floating_point != out.dtype.is_floating_point:
        problem = f"`{function}` cannot give its result as {out.dtype}"
        raise LaunchError(problem, "X0828", f"pass an `out=` of {found.dtype}")
    return out.copy_(found)


_SUMS = {**SUMS, i8: i32, u8: i32}
_BYTES = (i8, u8)


class Dtypes(NamedTuple):
    """The dtype of sums, and the dtype of a new result."""

    sums: DType
    result: DType


def result_shape(a: Shape, b: Shape) -> Shape:
    """Return the shape of ``a @ b``; a LaunchError if they cannot be multiplied."""
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    depth = b[max(len(b) - 2, 0)]
    if a[-1] != depth:
        raise _wrong_shapes(a, b, f"a has {a[-1]} columns, but b has {depth} rows")
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        reason = f"the batches {a[:-2]} and {b[:-2]} do not broadcast"
        raise _wrong_shapes(a, b, reason) from None
    return (*batch, *rows, *columns)


def _wrong_shapes(a: Shape, b: Shape, reason: str) -> LaunchError:
    problem = f"`matmul` cannot multiply {a} by {b}"
    help_ = "a is (..., m, k) or (k,), b is (..., k, n) or (k,)"
    return LaunchError(problem, code="X0827", notes=[reason], help=help_)


def dtypes_of(a: DType, b: DType) -> Dtypes:
    """Return the dtypes of ``a @ b``; a LaunchError if they cannot be multiplied."""
    sums = _SUMS.get(a)
    if sums is None or b not in _SUMS:
        help_ = f"the dtypes it multiplies are {', '.join(map(str, _SUMS))}"
        raise LaunchError(f"`matmul` cannot multiply {a} by {b}", "X0828", help_)
    if a != b and not (a in _BYTES and b in _BYTES):
        problem = f"`matmul` was given a of dtype {a} and b of dtype {b}"
        help_ = "convert one of them: both need the same dtype"
        raise LaunchError(problem, "X0828", help_)
    return Dtypes(sums, i32 if a in _BYTES else a)


def check_out(
    shape: Shape, dtype: DType, wanted: Shape, sums: DType, activation: str | None
) -> None:
    """Refuse an ``out`` of another shape, or of a dtype that loses the fraction."""
    if shape != wanted:
        raise LaunchError(
            f"`out` of `matmul` is {shape}, but the result is {wanted}", code="X0827"
        )
    fractions = sums.is_float or activation not in (None, "relu")
    if dtype.is_bool or (fractions and not dtype.is_float):
        what = f"with activation={activation!r}" if not sums.is_float else f"in {sums}"
        problem = f"`matmul` computes {what}, but the result would be {dtype}"
        raise LaunchError(problem, "X0828", "pass an `out=` of a floating-point dtype")


def check_bias(shape: Shape, dtype: DType, columns: int, sums: DType) -> None:
    """Refuse a bias of another length, or of a dtype that the sums cannot hold."""
    if shape != (columns,):
        raise LaunchError(
            f"`bias` of `matmul` is {shape}, but a row of the result is ({columns},)",
            code="X0827",
            help="for a bias of another shape, add it to the result",
        )
    is_held = dtype.bits < sums.bits or dtype == sums
    if dtype.is_bool or dtype.is_float != sums.is_float or not is_held:
        problem = f"`bias` of `matmul` is {dtype}, which is added in {sums}"
        raise LaunchError(problem, "X0828", f"convert it to {sums}")
