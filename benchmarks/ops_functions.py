"""What `ops.py` measures: the functions of `xetl.ops` and torch's of the same name.

Each takes tensors of torch and gives new ones. ``training`` is the function and its
derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from harness import Job
from ops_composed import COMPOSED, find_pair
from torch.nn import functional

from xetl import ops

Function = Callable[..., Any]
NORMS = ("layer_norm", "rms_norm")
LOSSES = ("cross_entropy", "nll_loss")
TRAINED = (
    "softmax",
    "log_softmax",
    "layer_norm",
    "group_norm",
    "gelu",
    "silu",
    "cross_entropy",
    "nll_loss",
    "mse_loss",
)
PLAIN = ("relu", "gelu", "silu", "sigmoid", "tanh", "sum", "mean", "amax")
ALONG = (
    "softmax",
    "log_softmax",
    "sum",
    "mean",
    "amax",
    "amin",
    "max",
    "min",
    "argmax",
    "argmin",
    "cumsum",
    "var",
    "sort",
    "argsort",
)
GATED = ("swiglu", "geglu")
PRODUCTS = ("linear", "conv2d", "scaled_dot_product_attention")
INDEXED = ("gather", "scatter_add", "index_select")
OPTIMISERS = ("adamw", "sgd")
TRANSPOSED = " of transposed"
IMAGES = " of images"
LAID_OUT = (
    "relu",
    "swiglu",
    "softmax dim=1",
    "softmax dim=0",
    "sum",
    "sum dim=1",
    "sum dim=0",
    "argmax dim=1",
    "layer_norm",
    "cross_entropy",
)
CLASSES = 16
WHAT = (
    *PLAIN,
    *GATED,
    *NORMS,
    *(f"{name} dim=1" for name in ALONG),
    *(f"{name} dim=0" for name in ("softmax", "sum", "max", "cumsum", "var")),
    "topk",
    *COMPOSED,
    "flash_attn_varlen_func training",
    "depthwise training",
    "depthwise_strided training",
    *LOSSES,
    "mse_loss",
    "kl_div",
    "dropout",
    "rope",
    "group_norm",
    "batch_norm",
    *(f"{name} dim={dim}" for name in INDEXED for dim in (0, 1)),
    "addmm",
    "linear_cross_entropy training",
    *OPTIMISERS,
    *PRODUCTS,
    *(f"{name} training" for name in (*TRAINED, *PRODUCTS)),
    *(name + TRANSPOSED for name in LAID_OUT),
    *(f"cross_entropy{how}{IMAGES}" for how in ("", " training")),
)


def in_xetl(what: str, dtype: str, rows: int, columns: int) -> Job:
    """The function of `xetl.ops`."""
    name = what.split()[0]
    if name in OPTIMISERS:
        return _steps_of_ours(name, dtype, rows, columns)
    if name in COMPOSED:
        pair = find_pair(name, dtype, rows, columns)
        return job_of(pair.ours, pair.args, what)
    return _job(getattr(ops, name), what, dtype, rows, columns)


def in_torch(what: str, dtype: str, rows: int, columns: int) -> Job:
    """That of torch; else the ones it is made of."""
    name = what.split()[0]
    if name in OPTIMISERS:
        return _steps_of_torch(name, dtype, rows, columns)
    if name in COMPOSED:
        pair = find_pair(name, dtype, rows, columns)
        return job_of(pair.theirs, pair.their_args, what)
    made: dict[str, Function] = {
        "swiglu": lambda a, b: functional.silu(a) * b,
        "geglu": lambda a, b: functional.gelu(a) * b,
        "rope": _rope,
    }
    found = made.get(name) or getattr(functional, name, None)
    function = found or getattr(torch, name)
    return _job(function, what, dtype, rows, columns)


def _rope(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def _steps_of_ours(name: str, dtype: str, rows: int, columns: int) -> Job:
    p, g = torch.randn(2, rows, columns).to(getattr(torch, dtype))
    m, v = torch.zeros_like(p), torch.zeros_like(p)
    step = lambda: ops.sgd([p], [g], [m], momentum=0.9)
    if name == "adamw":
        step = lambda: ops.adamw([p], [g], [m], [v], 3)
    return Job([step], 1e-9 * p.nbytes)


def _steps_of_torch(name: str, dtype: str, rows: int, columns: int) -> Job:
    p, g = torch.randn(2, rows, columns).to(getattr(torch, dtype))
    parameter = torch.nn.Parameter(p)
    parameter.grad = g
    optimiser: Any = torch.optim.SGD([parameter], momentum=0.9, fused=True)
    if name == "adamw":
        optimiser = torch.optim.AdamW([parameter], fused=True)
    return Job([optimiser.step], 1e-9 * p.nbytes)


def _job(function: Function, what: str, dtype: str, rows: int, columns: int) -> Job:
    torch.manual_seed(0)
    kind = what.removesuffix(TRANSPOSED).removesuffix(IMAGES)
    first, *rest = args = _arguments(kind, getattr(torch, dtype), rows, columns)
    if what.endswith(TRANSPOSED):
        args = first.T.contiguous().T, *rest
    elif what.endswith(IMAGES):
        images = rows // CLASSES
        labels = torch.randint(CLASSES, (images, columns))
        args = first.reshape(images, CLASSES, columns), labels
    return job_of(function, args, kind)


def job_of(function: Any, args: Any, what: str) -> Job:
    """Calls of ``function``; if ``what`` ends with ``training``, also derivatives."""
    how = what.partition(" ")[2]
    work = 1e-9 * args[0].nbytes
    if how != "training":
        return Job([lambda: function(*args)], work)
    wanted = [each for each in args if isinstance(each, torch.Tensor)]
    wanted = [each.requires_grad_() for each in wanted if each.is_floating_point()]
    gradient = torch.ones_like(function(*args))

    def trained() -> None:
        torch.autograd.grad(function(*args), wanted, gradient)

    return Job([trained], work)


def _arguments(what: str, kind: Any, rows: int, columns: int) -> tuple[Any, ...]:
    name, _, how = what.partition(" ")

    def normal(*shape: int) -> Any:
        return torch.randn(shape).to(kind)

    x, dims = normal(rows, columns), (columns,)
    if name in INDEXED:
        dim = int(how[-1])
        index = torch.randint(x.shape[dim], x.shape)
        if name == "index_select":
            return x, dim, index.flatten()[: x.shape[dim]]
        return (
            (x, dim, index) if name == "gather" else (x, dim, index, normal(*x.shape))
        )
    if how.startswith("dim"):
        return x, int(how[-1])
    if name in ("softmax", "log_softmax"):
        return x, 1
    if name in LOSSES:
        return x, torch.randint(columns, (rows,))
    if name == "rope":
        heads, d = max(1, columns // 64), min(columns, 64)
        tables = torch.rand(2, rows, d // 2).to(kind)
        return normal(1, heads, rows, d), *tables
    if name == "scaled_dot_product_attention":
        # Eight heads of 64 columns, or fewer.
        heads, length = max(1, min(8, columns // 64)), min(rows, 1024)
        return tuple(normal(1, heads, length, 64) for _ in range(3))
    if name == "conv2d":
        # 3 x 3 taps, as many channels as of the result.
        channels, side = min(columns, 64), min(columns, 128)
        images = max(1, rows * columns // (channels * side * side))
        weight = normal(channels, channels, 3, 3)
        return normal(images, channels, side, side), weight, normal(channels), 1, 1
    others: dict[str, Callable[[], tuple[Any, ...]]] = {
        "topk": lambda: (8,),
        "swiglu": lambda: (normal(rows, columns),),
        "geglu": lambda: (normal(rows, columns),),
        "mse_loss": lambda: (normal(rows, columns),),
        "layer_norm": lambda: (dims, normal(columns), normal(columns)),
        "rms_norm": lambda: (dims, normal(columns)),
        "linear_cross_entropy": lambda: (
            normal(8 * columns, columns),
            torch.randint(8 * columns, (rows,)),
        ),
        "kl_div": lambda: (torch.rand(rows, columns).to(kind), None, None, "sum"),
        "group_norm": lambda: (max(1, columns // 64),),
        "batch_norm": lambda: (normal(columns), torch.rand(columns).to(kind) + 1),
        "addmm": lambda: (normal(rows, columns), normal(columns, columns)),
        "linear": lambda: (normal(columns, columns), normal(columns)),
    }
    return (x, *others[name]()) if name in others else (x,)
