"""What is reduced over which dimensions: shapes, views and gradients of reductions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

from xetl.ops.batches import View
from xetl.ops.declarations import Context, Operand
from xetl.ops.operands import Numbers
from xetl.ops.rules import wrong_shape
from xetl.ops.views import array_of, find_dim

Dims: TypeAlias = "int | Sequence[int]"

WIDEST = 4096
"""Columns of a tile, at most."""
ENOUGH = 16
"""Programs that keep the threads of a CPU busy."""
TILE = 16384
"""Elements of a tile of rows: 64 KB of f32."""


class Reduced(NamedTuple):
    """What is reduced: sorted dimensions, shapes of the result and of what is kept."""

    dims: tuple[int, ...]
    shape: tuple[int, ...]
    kept: tuple[int, ...]
    columns: int


def reduced(name: str, x: Operand, dim: Any, keepdim: bool) -> Reduced:
    """What a function reduces.

    Args:
        name: of the function.
        x: its operand.
        dim: the dimensions as the caller names them; None or none: all.
        keepdim: whether they stay, with extent 1.

    Raises:
        LaunchError: there is no such dimension, or one is named twice.
    """
    given: Any = dim
    if dim is None or dim == () or dim == []:
        given = tuple(range(x.ndim))
    given = (given,) if isinstance(given, int) else tuple(given)
    dims = tuple(sorted(find_dim(name, x, each) for each in given)) if x.ndim else ()
    if len(set(dims)) != len(dims):
        raise wrong_shape(name, f"`dim` is {dim}", "name each dimension once")
    kept = tuple(n for i, n in enumerate(x.shape) if i not in dims)
    whole = tuple(1 if i in dims else n for i, n in enumerate(x.shape))
    columns = prod(x.shape[i] for i in dims)
    return Reduced(dims, whole if keepdim else kept, kept, columns)


def views_of(x: Operand, dims: tuple[int, ...], keepdim: bool) -> tuple[View, View]:
    """Views: of x as (..., m, n), n what is reduced, of the result as (..., m, 1)."""
    if not x.ndim:
        return (lambda a: a.reshape(1, 1), lambda a: a.reshape(1, 1))
    kept = [i for i in range(x.ndim) if i not in dims]
    lead = [x.shape[i] for i in kept] or [1]

    def source(a: Numbers) -> Numbers:
        moved = a.transpose([*kept, *dims])
        return moved.reshape([*lead, prod(x.shape[i] for i in dims)])

    def target(a: Numbers) -> Numbers:
        without = a.reshape(lead) if keepdim or not kept else a
        return without[..., None]

    return source, target


def are_lines(made: Sequence[Operand]) -> bool:
    """Whether results can be seen with fewer dimensions."""
    return all(array_of(x).flags.c_contiguous for x in made)


def rows_of_tile(what: Reduced, width: int) -> int:
    """How many rows a program has, if a tile of that width holds them."""
    if what.columns > width:
        return 1
    return max(1, min(TILE // width, prod(what.kept) // ENOUGH))


def spread(context: Context, grad: Any) -> Any:
    """The gradient of a sum: the same for all that was added."""
    shape, dim = context.shape_of("input"), context.options["dim"]
    if not context.options["keepdim"] and dim not in (None, (), []):
        dims = [dim] if isinstance(dim, int) else dim
        for each in sorted(i % len(shape) for i in dims):
            grad = grad.unsqueeze(each)
    return grad.expand(shape).to(context.dtype_of("input"))
