"""``xetl.ops.matmul``: what a call means, and which launch does it.

A call is planned once for its shapes, strides and dtypes (`_plan`); the next one like
it looks the plan up, takes the same views of its arrays and launches.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xetl.errors import LaunchError, XetlError, did_you_mean
from xetl.language.dtypes import DType
from xetl.ops.batches import View, Views, fold_rows, itself, split_batch
from xetl.ops.operands import Numbers, as_numpy, dtype_of, new_result
from xetl.ops.product import ACTIVATIONS, product
from xetl.ops.rules import check_bias, check_out, dtypes_of, result_shape
from xetl.ops.tiles import choose_tiles
from xetl.prepacked import Prepacked
from xetl.runtime.arrays import describe
from xetl.runtime.caller import at_caller
from xetl.runtime.grid import Grid
from xetl.runtime.launcher import Shortcut, try_shortcuts
from xetl.runtime.overlap import overlap, overlaps_itself

_MOST_PLANS = 1024
_FEW = 4
"""Up to so many columns (and more rows) the transposed product is made instead."""


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    bias: Any = None,
    activation: str | None = None,
) -> Any:
    """``activation(a @ b + bias)``, shapes as torch's matmul.

    The operands are read where they are: transposed and strided ones are not copied.
    Leading dimensions are batches and broadcast. Sums run in f32 (f64 for f64, i32 for
    8-bit integers) and are rounded once, at the end. There is no automatic derivative.

    Args:
        a: (..., m, k), or (k,); f16, bf16, f32, f64, i8 or u8. NumPy (bf16 by
            ml_dtypes), torch on the CPU, anything with ``__dlpack__``.
        b: (..., k, n), or (k,); dtype of ``a``, but signed and unsigned bytes may
            meet. Or what `prepack` made of it.
        out: (..., m, n), where the result goes: any float dtype for float operands,
            any number for integers. It must not share memory with another argument.
        bias: (n,) (of one element if ``b`` is a vector), a row that is added to each
            row; its dtype has no more bits than the sums.
        activation: ``"relu"``, ``"gelu"`` (the exact one), ``"silu"``, ``"sigmoid"``,
            ``"tanh"`` or None.

    Returns:
        ``out``, or a new array of the library ``a`` is from: (..., m, n), without m
        where ``a`` is a vector and without n where ``b`` is one; the dtype of ``a``,
        i32 for bytes.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit, there is no such
            activation (X0829), ``out`` shares memory (X0807) or is read-only (X0806).

    >>> matmul(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32))[0, 0].item()
    3.0
    """
    try:
        return _matmul(a, b, out, bias, activation)
    except XetlError as error:
        raise at_caller(error) from None


def _matmul(a: Any, b: Any, out: Any, bias: Any, activation: str | None) -> Any:
    packed = b if isinstance(b, Prepacked) else None
    left = as_numpy(a, "a")
    right = as_numpy(b if packed is None else packed.array, "b")
    row = None if bias is None else as_numpy(bias, "bias")
    to = None if out is None else as_numpy(_one_dimension(out), "out")
    key = (_kind(left), _kind(right), _kind(to), _kind(row), activation)
    plan = _plans.get(key)
    if plan is None:
        plan = _plan(left, right, to, row, activation)
        _remember(key, plan)
    if to is not None:
        _refuse_overlap(to, {"a": left, "b": right, "bias": row})
        plan.run(left, right, to, row, packed)
        return out
    result = new_result(a, plan.shape or (1,), plan.dtype)
    plan.run(left, right, as_numpy(result, "out"), row, packed)
    return result if plan.shape else result.reshape(())


def _one_dimension(out: Any) -> Any:
    """What has no dimensions as an array of one element: kernels need one."""
    return out.reshape(1) if getattr(out, "ndim", 1) == 0 else out


def _kind(array: Numbers | None) -> Hashable:
    """All that a plan depends on."""
    return None if array is None else (array.shape, array.strides, array.dtype)


def _refuse_overlap(out: Numbers, others: Mapping[str, Numbers | None]) -> None:
    """A kernel may be given one view twice; a product may not.

    Raises:
        LaunchError: ``out`` shares memory with another argument.
    """
    for name, other in others.items():
        if other is None or not np.may_share_memory(out, other):
            continue
        if overlap(describe(out), describe(other)):
            raise LaunchError(
                f"`out` of `matmul` shares memory with `{name}`",
                code="X0807",
                help="leave out `out=`, or pass an array of its own",
            )


@dataclass
class _Plan:
    """How calls of one kind are done.

    Attributes:
        shape: of the result.
        dtype: of a new result.
        views: what the kernel is given in place of a, b and out.
        swaps: whether it makes the transposed product: then b comes first.
        loops: extents of the dimensions that are gone through here.
        packs: whether b may come prepacked.
        grid: of each launch.
        constants: the compile-time arguments.
        shortcuts: the launch that succeeded last.
    """

    shape: tuple[int, ...]
    dtype: DType
    views: tuple[View, View, View]
    swaps: bool
    loops: tuple[int, ...]
    packs: bool
    grid: Grid
    constants: tuple[Any, ...]
    shortcuts: tuple[Shortcut, ...] = ()

    def run(
        self,
        a: Numbers,
        b: Numbers,
        out: Numbers,
        bias: Numbers | None,
        packed: Prepacked | None,
    ) -> None:
        """Compute the product."""
        if out.size == 0:
            return
        view_a, view_b, view_out = self.views
        a, b, out = view_a(a), view_b(b), view_out(out)
        if self.loops:
            for index in np.ndindex(self.loops):
                self._launch(a[index], b[index], out[index], bias)
        elif packed is not None and self.packs:
            self._launch(a, packed.over(b), out, bias)
        else:
            self._launch(a, b, out, bias)

    def _launch(
        self, a: Numbers, b: Numbers | Prepacked, out: Numbers, bias: Numbers | None
    ) -> None:
        left, right = (b, a) if self.swaps else (a, b)
        args = (left, right, out, bias, *self.constants)
        if try_shortcuts(self.shortcuts, self.grid, args, {}):
            return
        new = product.launch_anew(self.grid, args, {})
        if new is not None:
            self.shortcuts = (new,)


_plans: dict[Hashable, _Plan] = {}


def _remember(key: Hashable, plan: _Plan) -> None:
    if len(_plans) >= _MOST_PLANS:
        _plans.clear()
    _plans[key] = plan


def _plan(
    a: Numbers,
    b: Numbers,
    out: Numbers | None,
    bias: Numbers | None,
    activation: str | None,
) -> _Plan:
    """Check a call, and decide how calls of its kind are done.

    Raises:
        LaunchError: it is wrong.
    """
    shape = result_shape(a.shape, b.shape)
    dtypes = dtypes_of(dtype_of(a, "a"), dtype_of(b, "b"))
    function = _activation(activation)
    to = np.empty(shape or 1, dtypes.result.numpy) if out is None else out
    check_out(to.shape, dtype_of(to, "out"), shape or (1,), dtypes.sums, activation)
    if bias is not None:
        columns = b.shape[-1] if b.ndim > 1 else 1
        check_bias(bias.shape, dtype_of(bias, "bias"), columns, dtypes.sums)
    if overlaps_itself(describe(to)):
        raise LaunchError(
            "elements of `out` of `matmul` share memory with each other",
            code="X0807",
            help="pass an array in which each element has its own place",
        )
    return _Plan(shape, dtypes.result, *_road(a, b, to, function, dtypes.sums))


def _activation(name: str | None) -> object:
    if name is None:
        return None
    found = ACTIVATIONS.get(name)
    if found is None:
        known = ", ".join(f'"{each}"' for each in ACTIVATIONS)
        raise LaunchError(
            f"`matmul` knows no activation {name!r}",
            code="X0829",
            help=did_you_mean(str(name), ACTIVATIONS)
            or f"it knows {known}; for others write a kernel (tutorials/03_gemm.py)",
        )
    return found


def _road(
    a: Numbers, b: Numbers, out: Numbers, function: object, sums: DType
) -> tuple[Any, ...]:
    """The fields of a plan that say what is launched."""
    views = _as_matrices(a, b)
    folded = fold_rows(*_seen((a, b, out), views))
    if folded is not None:
        views = _chained(views, folded)
    m, n = _seen((a, b, out), views)[2].shape[-2:]
    swaps = n <= _FEW < m
    if swaps:
        views = _chained(views, (_transposed, _transposed, _transposed))
        m, n = n, m
    seen = _seen((a, b, out), views)
    left, right = (seen[1], seen[0]) if swaps else (seen[0], seen[1])
    batches = split_batch(left, right, seen[2])
    first, second, last = batches.views
    views = _chained(views, (second, first, last) if swaps else batches.views)
    right = _seen((a, b, out), views)[0 if swaps else 1]
    tiles = choose_tiles(m, n, batches.matrices, right.strides[-2] < right.strides[-1])
    constants = (function, 0 if swaps else 1, sums, *tiles[:3])
    packs = not swaps and tiles.rows > _FEW and right.ndim == 2
    return views, swaps, batches.loops, packs, tiles.grid, constants


def _as_matrices(a: Numbers, b: Numbers) -> Views:
    """Vectors as matrices: a row on the left, a column on the right."""
    is_row, is_column = a.ndim == 1, b.ndim == 1
    if is_row and is_column:
        return _row, _column, _row
    if is_row:
        return _row, itself, lambda x: x[..., None, :]
    return itself, _column if is_column else itself, _column if is_column else itself


def _row(x: Numbers) -> Numbers:
    return x[None, :]


def _column(x: Numbers) -> Numbers:
    return x[..., None]


def _transposed(x: Numbers) -> Numbers:
    return x.swapaxes(-1, -2)


def _seen(arrays: Sequence[Numbers], views: Views) -> tuple[Numbers, Numbers, Numbers]:
    a, b, out = (view(array) for array, view in zip(arrays, views))
    return a, b, out


def _chained(first: Views, then: Views) -> Views:
    """The views ``then`` of the views ``first``."""
    a, b, out = map(_chain, first, then)
    return a, b, out


def _chain(first: View, then: View) -> View:
    if first is itself:
        return then
    if then is itself:
        return first
    return lambda x: then(first(x))
