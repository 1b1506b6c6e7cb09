"""The functions that are tested against torch, with arguments for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

from xetl import ops


@dataclass(frozen=True)
class Case:
    """A function and arguments.

    Attributes:
        name: of the operator, and of the test.
        make: gives tensors of a dtype, and numbers; first what has derivatives.
        options: the other arguments of both.
        like: torch's function; None: the one of that name.
        smooth: how many of the tensors have derivatives.
        is_operator: whether the operator of torch takes the same arguments.
    """

    name: str
    make: Callable[[Any], tuple[Any, ...]]
    options: tuple[Any, ...] | Mapping[str, Any] = ()
    like: Callable[..., Any] | None = None
    smooth: int = 1
    is_operator: bool = True

    def __str__(self) -> str:
        return f"{self.name}{self.options or ''}"

    @property
    def args(self) -> tuple[Any, ...]:
        """The other arguments that are passed by position."""
        return () if isinstance(self.options, Mapping) else self.options

    @property
    def keywords(self) -> Mapping[str, Any]:
        """Those that are passed by name."""
        return self.options if isinstance(self.options, Mapping) else {}

    @property
    def ours(self) -> Callable[..., Any]:
        """The function of `xetl.ops`."""
        function = getattr(ops, self.name)
        return lambda *tensors: function(*tensors, *self.args, **self.keywords)

    @property
    def theirs(self) -> Callable[..., Any]:
        """That of torch."""
        like = self.like or getattr(F, self.name, None) or getattr(torch, self.name)
        return lambda *tensors: like(*tensors, *self.args, **self.keywords)


def normal(*shape: int, seed: int = 0) -> Callable[[Any], Any]:
    """Gives a tensor of a dtype."""
    values = torch.randn(
        shape, generator=torch.Generator().manual_seed(seed + sum(shape))
    )
    return lambda dtype: values.to(dtype, copy=True)


def tensors(*makers: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Gives them all."""
    return lambda dtype: tuple(make(dtype) for make in makers)


def positive(*shape: int) -> Callable[[Any], Any]:
    """Gives a tensor of numbers from 0.1 on."""
    make = normal(*shape)
    return lambda dtype: make(dtype).abs() + 0.1


def indices(*shape: int) -> Any:
    """Numbers below 4, some of them twice."""
    return torch.arange(torch.Size(shape).numel()).reshape(shape) * 7 % 4


X, Y = normal(4, 6, 18), normal(4, 6, 18, seed=1)
ROW, SHIFT = normal(18), normal(18, seed=1)


def _var(x: Any, dim: Any = None, correction: float = 1, keepdim: bool = False) -> Any:
    return torch.var(x, dim, correction=correction, keepdim=keepdim)


def _layer_norm(x: Any, w: Any, b: Any, *rest: Any) -> Any:
    return F.layer_norm(x, (18,), w, b, *rest)


def _rope(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Any:
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    cos, sin = cos[: x.shape[-2]], sin[: x.shape[-2]]
    parts = a * cos - b * sin, b * cos + a * sin
    if interleaved:
        return torch.stack(parts, -1).flatten(-2)
    return torch.cat(parts, -1)


ANGLES = normal(7, 9), normal(7, 9, seed=1)
MEAN, VARIANCE = normal(6), positive(6)
A, B, W = normal(5, 33), normal(33, 7), normal(7, 33)
SMALL_MATRICES = tensors(normal(70, 1, 3), normal(70, 3, 2), normal(70, 2, 3))
BATCH_A, BATCH_B = normal(2, 3, 5, 33), normal(3, 33, 7)

Q, K, V = normal(2, 4, 10, 16), normal(2, 4, 21, 16), normal(2, 4, 21, 24)
ATTENTION = "scaled_dot_product_attention"


def classes(*shape: int) -> Callable[[Any], Any]:
    """Gives numbers of classes below 5, and some of rows that do not count."""
    found = torch.arange(torch.Size(shape).numel()).reshape(shape) * 7 % 6
    return lambda dtype: torch.where(found == 5, -100, found)


def _seen(dtype: Any) -> Any:
    """Which keys queries see; the first one sees none."""
    return torch.arange(10)[:, None] > torch.arange(21)


def _windowed(q: Any, k: Any, v: Any, window_size: tuple[int, int]) -> Any:
    behind = torch.arange(21) - torch.arange(10)[:, None]
    seen = (behind >= -window_size[0]) & (behind <= window_size[1])
    return F.scaled_dot_product_attention(q, k, v, seen)


WEIGHT = normal(5)


def NUMBERS(dtype: Any) -> Any:
    """Numbers of rows, some of them twice."""
    return torch.arange(24).reshape(4, 6) * 5 % 9


CASES = [
    Case(ATTENTION, tensors(Q, K, V), smooth=3),
    Case(ATTENTION, tensors(Q, K, V), (None, 0.0, True), smooth=3),
    Case(ATTENTION, tensors(Q, K, V, _seen), smooth=3),
    Case(ATTENTION, tensors(Q, K, V, normal(2, 1, 10, 21)), smooth=3),
    Case("matmul", tensors(A, B), smooth=2),
    Case(ATTENTION, tensors(Q, K, V), {"window_size": (3, 5)}, _windowed, 3),
    Case("matmul", tensors(BATCH_A, BATCH_B), smooth=2),
    Case("matmul", tensors(BATCH_A, B), smooth=2),
    Case("matmul", tensors(normal(33), BATCH_B), smooth=2),
    Case("matmul", tensors(A, normal(33)), smooth=2),
    Case("linear", tensors(BATCH_A, W, normal(7)), smooth=3),
    Case("linear", tensors(A, W), smooth=2),
    Case("bmm", tensors(normal(3, 5, 33), BATCH_B), smooth=2),
    Case("addmm", tensors(normal(7), A, B), smooth=3),
    Case("addmm", tensors(normal(5, 7), A, B), {"beta": 0.5, "alpha": 2.0}, smooth=3),
    Case("baddbmm", tensors(normal(3, 1, 7), normal(3, 5, 33), BATCH_B), smooth=3),
    Case("baddbmm", SMALL_MATRICES, {"beta": 0.5, "alpha": 2.0}, smooth=3),
    *(Case(name, tensors(X)) for name in ("relu", "gelu", "silu", "sigmoid", "tanh")),
    Case("gelu", tensors(X), ("tanh",), lambda x, how: F.gelu(x, approximate=how)),
    Case("swiglu", tensors(X, Y), (), lambda x, y: F.silu(x) * y, 2),
    Case("geglu", tensors(X, Y), (), lambda x, y: F.gelu(x) * y, 2),
    *(Case("softmax", tensors(X), (dim,)) for dim in (-1, 1)),
    Case("log_softmax", tensors(X), (0,)),
    Case("log_softmax", tensors(normal(18)), (-1,)),
    Case("layer_norm", tensors(X), ((18,),)),
    Case("layer_norm", tensors(X), ((6, 18),)),
    Case("layer_norm", tensors(X, ROW, SHIFT), (), _layer_norm, 3, False),
    Case("rms_norm", tensors(X), ((18,),)),
    *(Case("rope", tensors(X, *ANGLES), each, _rope) for each in ((), (True,))),
    Case("rms_norm", tensors(X), ((6, 18), None, 1e-3)),
    *(
        Case(name, tensors(X), options)
        for name in ("sum", "mean", "amax")
        for options in ((), (1,), ((0, -1), True))
    ),
    Case("sum", tensors(normal(3, 70000)), (1,)),
    Case("sum", tensors(normal(5)), (0, True)),
    Case("mean", tensors(normal(2, 768, 5)), (1,)),
    Case("amax", tensors(normal(512, 140)), (0,)),
    Case("amin", tensors(X), (2, True)),
    *(
        Case("var", tensors(X), options, _var)
        for options in ((), (1,), (-1, 0), ((0, -1), 1, True), (None, 2.0))
    ),
    Case("var", tensors(normal(3, 70000)), (1,), _var),
    Case("var", tensors(normal(2, 768, 5)), (1, 1, True), _var),
    Case("max", tensors(X), (1,)),
    Case("min", tensors(X), (-1, True)),
    *(Case("argmax", tensors(X), each, smooth=0) for each in ((), (1,), (2, True))),
    Case("argmin", tensors(X), (0,), smooth=0),
    *(
        Case(name, tensors(normal(*shape), classes(shape[0], *shape[2:])), options)
        for shape in ((12, 5), (3, 5, 2, 4))
        for name, options in (
            ("cross_entropy", ()),
            ("cross_entropy", (None, None, -100, None, "sum", 0.1)),
            ("cross_entropy", (None, None, -100, None, "none")),
            ("nll_loss", ()),
        )
    ),
    Case("cross_entropy", tensors(normal(9, 5), classes(9), WEIGHT), ()),
    *(
        Case("cross_entropy", tensors(normal(*shape), positive(*shape)), each, smooth=2)
        for shape in ((9, 19), (3, 5, 2, 4))
        for each in ({}, {"reduction": "none", "label_smoothing": 0.1})
    ),
    Case("nll_loss", tensors(normal(9, 5), classes(9), WEIGHT), ()),
    Case("embedding", tensors(NUMBERS, normal(9, 20)), smooth=0),
    Case("mse_loss", tensors(X, Y), smooth=2),
    Case("mse_loss", tensors(X, Y), (None, None, "none"), smooth=2),
    *(
        Case("kl_div", tensors(X, positive(4, 6, 18)), each, smooth=2)
        for each in (
            {"reduction": "none"},
            {"reduction": "batchmean"},
            {"reduction": "sum", "log_target": True},
        )
    ),
    Case("group_norm", tensors(normal(4, 6, 300)), (2,)),
    Case("group_norm", tensors(normal(2, 6, 5, 70)), (3, None, None, 0.1)),
    Case(
        "group_norm",
        lambda dtype: (normal(5, 600)(dtype), 2, *(normal(600)(dtype),) * 2),
    ),
    Case(
        "group_norm",
        lambda dtype: (normal(9, 12, 1, 1)(dtype), 3, *(normal(12)(dtype),) * 2),
    ),
    *(
        Case("batch_norm", tensors(normal(*shape), MEAN, VARIANCE), {"eps": 0.1})
        for shape in ((4, 6, 18), (3, 6))
    ),
    *(
        Case(
            "batch_norm",
            tensors(normal(*shape)),
            (None, None, None, None, True, 0.1, 0.1),
            is_operator=False,
        )
        for shape in ((4, 6, 18), (3, 6))
    ),
    *(
        Case("gather", lambda dtype, dim=dim: (X(dtype), dim, indices(4, 3, 7)))
        for dim in (0, 1, -1)
    ),
    *(
        Case(
            "scatter_add",
            lambda dtype, dim=dim, shape=shape: (
                (X(dtype), dim, indices(*shape), Y(dtype))
            ),
        )
        for shape in ((4, 6, 7), (3, 5, 7))
        for dim in (0, 1, -1)
    ),
    *(
        Case("index_select", lambda dtype, dim=dim: (X(dtype), dim, indices(9)))
        for dim in (0, 1, -1)
    ),
    Case("gather", lambda dtype: (normal(18)(dtype), 0, indices(25))),
    Case("cumsum", tensors(X), (1,)),
    Case("cumsum", tensors(X), (-1,)),
]
