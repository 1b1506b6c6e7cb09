"""``xetl.ops.conv1d`` and ``conv2d``.

Source: torch.nn.functional.conv2d; Georganas et al., "Anatomy of high-performance deep
learning convolutions on SIMD architectures", SC18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeAlias, cast

from xetl.imports import import_whole
from xetl.ops.activations import cleared
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    Dims,
    Operand,
    Step,
    result,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.facades import Facade, Ranks
from xetl.ops.calling.operands import Shape, order_of
from xetl.ops.calling.views import floats
from xetl.ops.convolution import plans
from xetl.ops.convolution.by_weight import by_weight
from xetl.ops.convolution.columns import (
    convolve_columns,
    convolve_patches,
    copies_pixels,
    has_few_pixels,
    input_by_columns,
    input_by_windows,
    suits_patches,
    weight_by_columns,
    weight_by_patches,
)
from xetl.ops.convolution.geometry import Geometry, phases
from xetl.ops.convolution.windows import LAST, is_channels_last

P = ParamSpec("P")

Size: TypeAlias = "int | Sequence[int]"
"""One number for all dimensions, or one for each."""


def _geometry(x: Shape, weight: Shape, how: Sequence[Sequence[int]]) -> Geometry:
    """Return the geometry. ``how`` is stride, padding and dilation.

    Padding is (rows above, columns before, rows below, columns behind).
    """
    stride, (top, left, bottom, right), dilation = how
    taps = weight[2], weight[3]
    ends = (top + bottom, left + right)
    each = zip(x[2:], ends, dilation, taps, stride)
    rows, columns = ((n + e - d * (k - 1) - 1) // s + 1 for n, e, d, k, s in each)
    pair = (stride[0], stride[1]), (dilation[0], dilation[1])
    return Geometry(taps, *pair, (top, left), (rows, columns))


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    x, weight = context.saved
    *_, stride, padding, dilation, groups = context.options.values()
    how = stride, padding, dilation, groups
    torch: Any = import_whole("torch")
    is_last = order_of(grad.shape, grad.stride()) == LAST
    kind = torch.channels_last if is_last else torch.contiguous_format
    grad = grad.contiguous(memory_format=kind)
    needs, found = context.needs, dict[str, Any]()
    if needs("input"):
        size = [*x.shape[2:]]
        found["input"] = convolution_by_input(grad, weight, size, *how)
    if needs("weight"):
        size = [*weight.shape[2:]]
        found["weight"] = convolution_by_weight(grad, x, size, *how)
    if needs("bias"):
        found["bias"] = grad.sum((0, 2, 3))
    return found


@function(backward=_backward, saves=["input", "weight"])
def convolution(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    groups: int,
    *,
    out: ArrayLike = None,
) -> Any:
    """`conv2d` of images with a batch; ``padding`` is four numbers: see `_geometry`."""
    others = (weight,) if bias is None else (weight, bias)
    floats("conv2d", input, *others)
    g = _geometry(input.shape, weight.shape, (stride, padding, dilation))
    shape = (input.shape[0], weight.shape[0], *g.result)

    def steps(made: Sequence[Operand]) -> list[Step]:
        given = input, weight, bias, made[0], g
        if suits_patches(input, weight, g, groups) and is_channels_last(made[0]):
            return convolve_patches(*given)
        if copies_pixels(weight, input.shape[0], g, groups):
            return convolve_columns(*given)
        return plans.convolve(*given, groups)

    return Call((_images_like(input, shape),), steps)


def _images_like(x: Operand, shape: Shape) -> Operand:
    """Describe images with their channels last in memory if those of ``x`` are so."""
    return result(shape, x.dtype, order=LAST if is_channels_last(x) else None)


@function()
def convolution_by_input(
    grad: ArrayLike,
    weight: ArrayLike,
    size: Dims,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    groups: int,
) -> Any:
    """The gradient of the input: convolutions with the transposed weight."""
    (rows, columns), (top, left, *_) = size, padding
    taps = weight.shape[2], weight.shape[3]
    steps, between = (stride[0], stride[1]), (dilation[0], dilation[1])
    shape = (grad.shape[0], weight.shape[1] * groups, rows, columns)
    g = Geometry(taps, steps, between, (top, left), (grad.shape[2], grad.shape[3]))
    new = _images_like(grad, shape)

    def plan(made: Sequence[Operand]) -> list[Step]:
        if not grad.shape[0]:
            return []
        parts = phases((rows, columns), taps, (steps, between, g.first))
        channels = weight.shape[0], weight.shape[1]
        if groups == 1 and plans.scatters(grad, new, g, parts, channels):
            return input_by_windows(grad, weight, made[0], g)
        if has_few_pixels(weight, grad.shape[0], g, groups) and not g.is_product:
            return input_by_columns(grad, weight, made[0], g)
        # To store phases separately costs more than to multiply zeros between pixels.
        of_channels = groups > 1 and tuple(weight.shape[:2]) == (groups, 1)
        is_apart = of_channels and steps == (2, 2) and not is_channels_last(grad)
        if is_apart:
            whole = phases((rows, columns), taps, ((1, 1), between, g.first))
            is_apart = bool(plans.part_of(grad, whole[0], (1, 1)))
            parts = whole if is_apart else parts
        return plans.by_input(grad, weight, made[0], parts, groups, is_apart)

    return Call((new,), plan)


@function()
def convolution_by_weight(
    grad: ArrayLike,
    input: ArrayLike,
    size: Dims,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    groups: int,
) -> Any:
    """The gradient of the weight: the gradient of the result times the windows."""
    shape = (grad.shape[1], input.shape[1] // groups, size[0], size[1])
    g = _geometry(input.shape, shape, (stride, padding, dilation))
    new = result(shape, grad.dtype)

    def steps(made: Sequence[Operand]) -> list[Step]:
        if not input.shape[0]:
            return [cleared(made[0])]
        if suits_patches(input, grad, g, groups):
            return weight_by_patches(grad, input, made[0], g)
        is_split = groups == 1 and g.has_patches and not is_channels_last(input)
        if is_split or has_few_pixels(new, input.shape[0], g, groups):
            return weight_by_columns(grad, input, made[0], g)
        return by_weight(grad, input, made[0], g, groups)

    return Call((new,), steps)


class _Convolution(Facade):
    """`conv1d` or `conv2d`, which are the operator `convolution` for torch."""

    inner_name = "xetl::convolution"

    def arguments(self, *given: Any) -> Sequence[Any]:
        """Return the arguments of `convolution`, whose images have a batch."""
        x, weight, bias, stride, padding, dilation, groups = given
        name, rank = self.name, 1 if self.name == "conv1d" else 2
        _check(name, rank, x, weight, bias, groups)
        stride, dilation = (_numbers(name, rank, each) for each in (stride, dilation))
        sides = _padding(name, rank, padding, weight.shape[2:], stride, dilation)
        if rank == 1:
            stride, dilation = (1, *stride), (1, *dilation)
            sides = (0, sides[0], 0, sides[1])
        _check_size(name, x.shape[-rank:], weight.shape[2:], sides, dilation, rank)
        images = _as_images(x, rank == 1, x.ndim == rank + 1)
        kernel = _as_images(weight, rank == 1, False)
        return images, kernel, bias, stride, sides, dilation, groups

    def out_of(self, ranks: Ranks, out: Any) -> Any:
        x, weight, _ = ranks
        return _as_images(out, weight == 3, x != weight)

    def form(self, ranks: Ranks, found: Any) -> Any:
        """Return a result without the batch and the row that the arguments lack."""
        x, weight, _ = ranks
        found = found if x == weight else found[0]
        return found[..., 0, :] if weight == 3 else found


def _public(rule: Callable[P, Any]) -> Callable[P, Any]:
    return cast("Callable[P, Any]", _Convolution(rule.__name__, rule).public)


@_public
def conv2d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
    *,
    out: Any = None,
) -> Any:
    """The sum of ``input`` around each pixel, multiplied by ``weight``, ``+ bias``.

    ``out[b, o, i, j]`` is the sum over c, di and dj of ``weight[o, c, di, dj] *
    input[b, c, i * stride + di * dilation - padding, ...]``, plus ``bias[o]``. Sums are
    computed in f32 (f64 for f64) and rounded once.

    Args:
        input: (batch, channels, rows, columns), or without the batch; f16, bf16, f32
            or f64. NumPy (bf16 by ml_dtypes), torch, memory of a device (USM).
        weight: (channels of the result, channels / groups, kernel rows, kernel
            columns), dtype of ``input``.
        bias: (channels of the result,) or None, dtype of ``input``.
        stride: pixels between two windows: one number, or two for rows and columns.
        padding: zeros at each side, one number or two; or ``"valid"`` for none,
            ``"same"`` for a result of the size of ``input`` (with a stride of 1).
        dilation: pixels between two taps of the kernel, one number or two.
        groups: the number of groups of channels, each with its part of ``weight``.
        out: the array that gets the result, of any float dtype.

    Returns:
        ``out``, or a new array of the library of ``input``: (batch, channels of the
        result, rows, columns), with channels last in memory if ``input`` has them so.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """


@_public
def conv1d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
    *,
    out: Any = None,
) -> Any:
    """`conv2d` of one dimension; each option is one number.

    Args:
        input: (batch, channels, n), or without the batch.
        weight: (channels of the result, channels / groups, kernel).
    """


def _as_images(array: Any, is_line: bool, is_single: bool) -> Any:
    """Add a row to lines, and a batch to a single image.

    An array that lacks nothing is returned itself: torch would record a view.
    """
    array = array[..., None, :] if is_line else array
    return array[None] if is_single else array


def _shape_of(x: Any) -> Shape:
    return tuple(getattr(x, "shape", ()))


def _check(name: str, rank: int, x: Any, weight: Any, bias: Any, groups: int) -> None:
    """Refuse shapes that do not fit."""
    given, kernel = (_shape_of(each) for each in (x, weight))
    extents = "n" if rank == 1 else "rows, columns"
    help_ = f"pass (batch, channels, {extents}), (channels, channels / groups, ...)"
    fits = len(given) in (rank + 1, rank + 2) and len(kernel) == rank + 2
    fits = fits and 0 not in kernel and groups > 0
    fits = fits and given[-rank - 1] == kernel[1] * groups and not kernel[0] % groups
    if not fits:
        problem = f"`input` is {given}, `weight` {kernel}, of {groups} groups"
        raise wrong_shape(name, problem, help_)
    if bias is not None and tuple(bias.shape) != kernel[:1]:
        problem = f"`bias` is {tuple(bias.shape)}, but `weight` {kernel}"
        raise wrong_shape(name, problem, "pass a number for each channel")


def _numbers(name: str, rank: int, given: Any) -> tuple[int, ...]:
    """Return one number for each dimension; each must be positive."""
    found = (given,) * rank if isinstance(given, int) else tuple(given)
    found = found * rank if len(found) == 1 else found
    if len(found) != rank or min(found) < 1:
        problem = f"a stride or dilation of {given}"
        raise wrong_shape(name, problem, f"pass a positive number, or {rank}")
    return found


def _padding(
    name: str, rank: int, given: Any, taps: Any, stride: Any, dilation: Any
) -> tuple[int, ...]:
    """Return the zeros before each dimension, then those behind each."""
    if given == "valid":
        return (0,) * (2 * rank)
    if given == "same" and max(stride) == 1:
        each = [d * (k - 1) for d, k in zip(dilation, taps)]
        return (*(n // 2 for n in each), *(n - n // 2 for n in each))
    found = (given,) * rank if isinstance(given, int) else given
    found = found if isinstance(found, str) else tuple(found)
    found = found * rank if len(found) == 1 else found
    if isinstance(found, str) or len(found) != rank or min(found) < 0:
        problem = f"a padding of {given!r}, with a stride of {stride}"
        help_ = f'pass {rank} numbers from 0, "valid" or, with a stride of 1, "same"'
        raise wrong_shape(name, problem, help_)
    return found * 2


def _check_size(
    name: str, size: Any, taps: Any, sides: Any, dilation: Any, rank: int
) -> None:
    """Refuse an image that is smaller than the kernel."""
    for n, k, before, behind, d in zip(
        size, taps, sides[2 - rank : 2], sides[4 - rank :], dilation[2 - rank :]
    ):
        if n + before + behind < d * (k - 1) + 1:
            problem = f"the kernel {tuple(taps)} is larger than the input {tuple(size)}"
            raise wrong_shape(name, problem, "pass a larger `padding`")
