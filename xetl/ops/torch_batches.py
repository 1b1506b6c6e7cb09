"""``torch.func.vmap`` of operators: the batch becomes the first dimension.

Functions of elements, of rows and of matrices take it as one more leading dimension.
Others are computed for each element of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xetl.imports import import_whole
from xetl.ops.declare import Function

torch: Any = import_whole("torch")

_ELEMENTS = ("relu", "gelu", "silu", "sigmoid", "tanh", "swiglu", "geglu")
_ALONG = ("softmax", "log_softmax", "cumsum", "argmax", "argmin")
_OVER = ("sum", "mean", "amax", "amin", "var")
_ROWS = ("layer_norm", "rms_norm", "rope", "linear_int4")
_ATTENTION = "scaled_dot_product_attention"


def batched(declared: Function, operator: Any) -> Callable[..., Any]:
    """The rule of an operator: ``rule(info, in_dims, *args)``."""
    fold = _rule_of(declared.name)

    def rule(info: Any, in_dims: Any, *args: Any, **kwargs: Any) -> Any:
        values = declared.complete(args, kwargs)[:-1]
        dims = {i: dim for i, dim in enumerate(in_dims) if isinstance(dim, int)}
        for i, dim in dims.items():
            values[i] = values[i].movedim(dim, 0)
        which = list(dims)
        size = info.batch_size
        folded = None if fold is None else fold(values, which, size)
        if folded is not None:
            return operator(*folded), 0
        each = [operator(*_at(values, which, i)) for i in range(size)]
        if declared.results == 1:
            return torch.stack(each), 0
        stacked = [torch.stack(parts) for parts in zip(*each)]
        return tuple(stacked), (0,) * declared.results

    return rule


def _at(values: Sequence[Any], which: Sequence[int], i: int) -> list[Any]:
    return [x[i] if place in which else x for place, x in enumerate(values)]


def _rule_of(name: str) -> Callable[[list[Any], list[int], int], Any] | None:
    """What folds the batch into arguments; it gives None where that is not natural."""
    if name in _ELEMENTS:
        return _of_elements
    if name in _ALONG or name in _OVER:
        return _along
    if name in _ROWS:
        return lambda values, which, size: values if which == [0] else None
    return {"matmul": _of_matrices, _ATTENTION: _of_attention}.get(name)


def _of_elements(values: list[Any], which: list[int], size: int) -> Any:
    arrays = [i for i, x in enumerate(values) if isinstance(x, torch.Tensor)]
    for i in arrays:
        if i not in which:
            values[i] = values[i].expand(size, *values[i].shape)
    return values


def _along(values: list[Any], which: list[int], size: int) -> Any:
    dim, rank = values[1], values[0].ndim - 1
    if rank == 0 or dim is None:
        return None
    if isinstance(dim, int):
        values[1] = dim % rank + 1 if -rank <= dim < rank else dim
    else:
        values[1] = tuple(each % rank + 1 for each in dim or range(rank))
    return values


def _of_matrices(values: list[Any], which: list[int], size: int) -> Any:
    ranks = [x.ndim - (i in which) for i, x in enumerate(values[:2])]
    if min(ranks) < 2 or 2 in which:
        return None
    return _aligned(values, which, ranks)


def _of_attention(values: list[Any], which: list[int], size: int) -> Any:
    if any(i > 3 for i in which):
        return None
    arrays = [x for x in values[:4] if x is not None]
    ranks = [x.ndim - (i in which) for i, x in enumerate(arrays)]
    return _aligned(values, which, ranks)


def _aligned(values: list[Any], which: list[int], ranks: Sequence[int]) -> Any:
    """The same with as many dimensions behind the batch."""
    for i in which:
        size, *rest = values[i].shape
        values[i] = values[i].reshape(size, *[1] * (max(ranks) - len(rest)), *rest)
    return values
