"""Functions like torch's, for all arrays that a kernel takes.

A module is loaded when one of its functions is first used. If torch is imported, all
modules are loaded, because every function is registered as an operator of torch.
"""

import sys
from typing import TYPE_CHECKING

from xetl.imports import import_whole

__all__ = ["geglu", "gelu", "relu", "sigmoid", "silu", "swiglu", "tanh"]
__all__ += ["addmm", "baddbmm", "bmm", "grouped_mm", "linear", "linear_int4", "matmul"]
__all__ += ["prepack", "scaled_mm"]
__all__ += ["amax", "amin", "argmax", "argmin", "cumsum", "max", "mean", "min", "sum"]
__all__ += ["var"]
__all__ += ["argsort", "sort", "topk"]
__all__ += ["batch_norm", "group_norm", "layer_norm", "log_softmax", "rms_norm"]
__all__ += ["softmax"]
__all__ += ["conv1d", "conv2d"]
__all__ += ["flash_attn_varlen_func", "flash_attn_with_kvcache", "rope"]
__all__ += ["scaled_dot_product_attention"]
__all__ += ["cross_entropy", "kl_div", "linear_cross_entropy", "mse_loss", "nll_loss"]
__all__ += ["dropout", "embedding", "gather", "index_select", "scatter_add"]
__all__ += ["adamw", "sgd"]

_NAMES = {
    "activations": "geglu gelu relu sigmoid silu swiglu tanh",
    "products.added_products": "addmm baddbmm",
    "rows.batch_norms": "batch_norm",
    "rows.channel_norms": "group_norm",
    "convolution.convolutions": "conv1d conv2d",
    "attention.dot_product_attention": "scaled_dot_product_attention",
    "dropouts": "dropout",
    "rows.extremes": "max min",
    "attention.flash_attention": "flash_attn_varlen_func flash_attn_with_kvcache",
    "losses.fused_losses": "linear_cross_entropy",
    "indexing": "gather index_select scatter_add",
    "rows_by_number": "embedding",
    "losses.class_losses": "cross_entropy nll_loss",
    "products.matrix_product": "bmm linear matmul prepack",
    "rows.normalization": "layer_norm rms_norm",
    "optimisers": "adamw sgd",
    "rows.ordering": "argsort sort topk",
    "losses.pointwise_losses": "kl_div mse_loss",
    "rows.positions": "argmax argmin",
    "rows.reductions": "amax amin mean sum",
    "rows.running_sums": "cumsum",
    "rotary": "rope",
    "products.int4_products": "linear_int4",
    "products.scaled_products": "grouped_mm scaled_mm",
    "rows.softmaxes": "log_softmax softmax",
    "rows.variances": "var",
}
"""The functions of each module."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

if TYPE_CHECKING:
    from xetl.ops.activations import geglu, gelu, relu, sigmoid, silu, swiglu, tanh
    from xetl.ops.attention.dot_product_attention import scaled_dot_product_attention
    from xetl.ops.attention.flash_attention import (
        flash_attn_varlen_func,
        flash_attn_with_kvcache,
    )
    from xetl.ops.convolution.convolutions import conv1d, conv2d
    from xetl.ops.dropouts import dropout
    from xetl.ops.indexing import gather, index_select, scatter_add
    from xetl.ops.losses.class_losses import cross_entropy, nll_loss
    from xetl.ops.losses.fused_losses import linear_cross_entropy
    from xetl.ops.losses.pointwise_losses import kl_div, mse_loss
    from xetl.ops.optimisers import adamw, sgd
    from xetl.ops.products.added_products import addmm, baddbmm
    from xetl.ops.products.int4_products import linear_int4
    from xetl.ops.products.matrix_product import bmm, linear, matmul, prepack
    from xetl.ops.products.scaled_products import grouped_mm, scaled_mm
    from xetl.ops.rotary import rope
    from xetl.ops.rows.batch_norms import batch_norm
    from xetl.ops.rows.channel_norms import group_norm
    from xetl.ops.rows.extremes import max, min
    from xetl.ops.rows.normalization import layer_norm, rms_norm
    from xetl.ops.rows.ordering import argsort, sort, topk
    from xetl.ops.rows.positions import argmax, argmin
    from xetl.ops.rows.reductions import amax, amin, mean, sum
    from xetl.ops.rows.running_sums import cumsum
    from xetl.ops.rows.softmaxes import log_softmax, softmax
    from xetl.ops.rows.variances import var
    from xetl.ops.rows_by_number import embedding
else:  # with `__getattr__`, a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Load the module of a function on first use."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_whole(f"xetl.ops.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_all() -> None:
    """Load the modules of all functions."""
    for home in _NAMES:
        import_whole(f"xetl.ops.{home}")


if "torch" in sys.modules:  # otherwise the first call after torch's import does it
    import_whole("xetl.ops.calling.torch_library").register()
