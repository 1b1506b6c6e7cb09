"""What a rule of `xetl.ops` is written in: operands, launches, results, checks.

`declare` makes a public function of a rule. Where an array does not lie as launches
need it, one more launch copies it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.language.dtypes import DType, bf16, f16, f32, f64, i8, i32, u8
from xetl.ops.calling.calls import Launch, are_views
from xetl.ops.calling.operands import Numbers, Shape
from xetl.ops.calling.recycling import new_array
from xetl.records import record

ArrayLike: TypeAlias = Any
"""An array of any library; the annotation tells arrays from options."""
Number: TypeAlias = float
"""A number that kernels get when they run, so that any is computed by the same code."""
DTypeLike: TypeAlias = Any
"""A dtype of NumPy, torch or xetl, or its name."""


@record(frozen=True)
class Operand:
    """An array as a rule sees it.

    Attributes:
        name: what an error calls it.
        shape: its extents; symbols of torch where torch asks for shapes.
        dtype: of its elements.
        array: the elements, of rank 1 at least; None where torch asks for shapes.
        is_new: whether the function makes it.
        order: its dimensions in memory, the outermost first; None: as they are counted.
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
    """A launch of a function.

    Attributes:
        operands: inputs, results and temporary arrays in the order of the launch.
        numbers: what the kernel takes behind them.
    """

    launch: Launch
    operands: Operands
    numbers: tuple[float, ...] = ()


@record(frozen=True)
class Call:
    """What a rule gives.

    Attributes:
        results: shape and dtype of each.
        steps: gives the launches (None: nothing is to be done); is asked where the
            elements are there.
        temporary: what steps hand to one another.
    """

    results: tuple[Operand, ...]
    steps: Callable[[Sequence[Operand]], Sequence[Step]]
    temporary: tuple[Operand, ...] = ()


def temporary(
    shape: Shape,
    dtype: DType,
    name: str = "temporary",
    order: tuple[int, ...] | None = None,
) -> Operand:
    """What one launch hands to the next; see `Operand` for ``order``."""
    array = new_array(shape, dtype.numpy, order)
    return Operand(name, shape, dtype, array, True, order)


def result(shape: Shape, dtype: DType, name: str = "out") -> Operand:
    """A result that does not exist yet."""
    return Operand(name, shape, dtype)


def result_like(x: Operand, dtype: DType) -> Operand:
    """A result whose elements lie in memory in the order of those of ``x``."""
    return Operand("out", x.shape, dtype, order=x.order)


def as_rows(values: list[Any], places: Sequence[int]) -> list[Step]:
    """Copies of arrays whose rows do not lie along memory; they take their places.

    Args:
        values: all arguments of a rule; it is changed.
        places: of the arrays.
    """
    copies: list[Step] = []
    for i in places:
        x: Operand | None = values[i]
        if x is not None and x.order is not None and x.order[-1] != x.ndim - 1:
            values[i], steps = along(x, x.ndim - 1)
            copies += steps
    return copies


def along(x: Operand, dim: int) -> tuple[Operand, list[Step]]:
    """An array that lies along a dimension, and what copies elements to it."""
    order = (*(i for i in range(x.ndim) if i != dim), dim)
    to = temporary(x.shape, x.dtype, x.name, order)
    return to, [copied(x, to)]


def steps_of(call: Call, results: Sequence[Operand]) -> list[Step]:
    """The launches of a call; what they cannot write to in place is copied there."""
    steps = _steps_with_programs(call, results)
    lost = [x for x in results if any(_misses(step, x) for step in steps)]
    if not lost:
        return steps
    between = {id(x): temporary(x.shape, x.dtype) for x in lost}
    moved = [between.get(id(x), x) for x in results]
    copies = [copied(between[id(x)], x) for x in lost]
    return [*_steps_with_programs(call, moved), *copies]


def _steps_with_programs(call: Call, results: Sequence[Operand]) -> list[Step]:
    launches = ((step, step.launch) for step in call.steps(results))
    return [step for step, each in launches if 0 not in (*each.loops, *each.grid)]


def copied(source: Operand, to: Operand) -> Step:
    """The launch that converts elements to the dtype of ``to``."""
    # Imported late: few calls need a copy.
    return import_whole("xetl.ops.activations").copied(source, to)


def _misses(step: Step, place: Operand) -> bool:
    """Whether a step would write to a copy, such as a reshaped ``out``."""
    if place.is_new or place.array is None:
        return False
    pairs = zip(step.launch.views, step.operands)
    views = [view for view, x in pairs if x is place and view is not None]
    return not are_views([place.array] * len(views), views)


class Context:
    """What a derivative is computed from; a part of the node of torch's graph.

    Attributes:
        declared: the function.
        places: of the arrays among the inputs of the node.
        saved: the inputs and results that the declaration names; unpacked each time.
        values: all arguments; of arrays that are not saved (dtype, shape).
        needs_input_grad: of the inputs of the node.
    """

    declared: Any
    places: Mapping[str, int]
    saved: tuple[Any, ...]
    values: Sequence[Any]
    needs_input_grad: Sequence[bool]

    @property
    def options(self) -> Mapping[str, Any]:
        """The other arguments by name."""
        return dict(zip(self.declared.names, self.values))

    def __getitem__(self, name: str) -> Any:
        """One of them."""
        return self.values[self.declared.places[name]]

    def needs(self, name: str) -> bool:
        """Whether the derivative by an array is wanted."""
        return self.needs_input_grad[self.places[name]]

    def dtype_of(self, name: str) -> Any:
        """That of an array, as torch names it."""
        known = self.values[self.declared.places[name]]
        return self._saved(name).dtype if known is None else known[0]

    def shape_of(self, name: str) -> Any:
        """That of an array."""
        known = self.values[self.declared.places[name]]
        return self._saved(name).shape if known is None else known[1]

    def _saved(self, name: str) -> Any:
        return self.saved[self.declared.saves.index(name)]


Backward: TypeAlias = Callable[..., Mapping[str, Any]]
"""``backward(context, *gradients)`` gives the derivative by each argument it names."""

SUMS = {f16: f32, bf16: f32, f32: f32, f64: f64}
"""Which dtype computes for which."""


def common_dtype_of(function: str, dtypes: Mapping[str, DType]) -> DType:
    """The dtype that all operands of a function, named by ``dtypes``, have.

    Raises:
        LaunchError: they differ, or are no floats.
    """
    first = next(iter(dtypes.values()))
    if first not in SUMS or any(dtype != first for dtype in dtypes.values()):
        given = ", ".join(f"{name} of {dtype}" for name, dtype in dtypes.items())
        help_ = f"convert to one of {', '.join(map(str, SUMS))}, the same for all"
        raise LaunchError(f"`{function}` was given {given}", "X0828", help_)
    return first


def wrong_shape(function: str, problem: str, help_: str) -> LaunchError:
    """The error for a shape that does not fit."""
    return LaunchError(f"`{function}`: {problem}", code="X0827", help=help_)


def out_and_gradient(function: str) -> LaunchError:
    """The error for a place to write to where torch is to differentiate."""
    problem = f"`{function}` was given `out=`, and an argument requires a gradient"
    help_ = "leave out `out=`, or call it inside of `with torch.no_grad():`"
    return LaunchError(problem, "X0838", help_)


def with_out(function: str, found: Any, out: Any) -> Any:
    """A result that torch's operator has computed, in ``out`` if there is one.

    Raises:
        LaunchError: it is no tensor of that shape, or of a dtype that loses fractions.
    """
    if out is None:
        return found
    if not hasattr(out, "copy_"):
        problem = f"`out` is a {type(out).__name__}, beside tensors"
        raise LaunchError(problem, code="X0805", help="pass a tensor")
    if out.shape != found.shape:
        shapes = f"{tuple(out.shape)}, but the result is {tuple(found.shape)}"
        raise wrong_shape(function, f"`out` is {shapes}", "pass a tensor of that shape")
    if found.dtype.is_floating_point != out.dtype.is_floating_point:
        problem = f"`{function}` cannot give its result as {out.dtype}"
        raise LaunchError(problem, "X0828", f"pass an `out=` of {found.dtype}")
    return out.copy_(found)


_SUMS = {f16: f32, bf16: f32, f32: f32, f64: f64, i8: i32, u8: i32}
_BYTES = (i8, u8)


class Dtypes(NamedTuple):
    """The dtype sums are made in, and that of a new result."""

    sums: DType
    result: DType


def result_shape(a: Shape, b: Shape) -> Shape:
    """The shape of ``a @ b``; a LaunchError if they cannot be multiplied."""
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
    """How to multiply them; a LaunchError if they cannot be multiplied."""
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
    """Refuse a place of another shape, or of a dtype that loses the fraction."""
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
    """Refuse a row of another length, or of a dtype that the sums cannot hold."""
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
