"""Functions like torch's, for all arrays that a kernel takes.

A module is loaded when one of its functions is asked for; where torch is, all are, for
torch is told of each.
"""

import sys
from typing import TYPE_CHECKING

from xetl.imports import import_whole

__all__ = [
    "adamw",
    "addmm",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "argsort",
    "baddbmm",
    "batch_norm",
    "bmm",
    "conv1d",
    "conv2d",
    "cross_entropy",
    "cumsum",
    "dropout",
    "embedding",
    "flash_attn_varlen_func",
    "flash_attn_with_kvcache",
    "gather",
    "geglu",
    "gelu",
    "group_norm",
    "grouped_mm",
    "index_select",
    "kl_div",
    "layer_norm",
    "linear",
    "linear_cross_entropy",
    "linear_int4",
    "log_softmax",
    "matmul",
    "max",
    "mean",
    "min",
    "mse_loss",
    "nll_loss",
    "prepack",
    "relu",
    "rms_norm",
    "rope",
    "scaled_dot_product_attention",
    "scaled_mm",
    "scatter_add",
    "sgd",
    "sigmoid",
    "silu",
    "softmax",
    "sort",
    "sum",
    "swiglu",
    "tanh",
    "topk",
    "var",
]

_NAMES = {
    "activations": "geglu gelu relu sigmoid silu swiglu tanh",
    "added_products": "addmm baddbmm",
    "channel_norms": "batch_norm group_norm",
    "convolutions": "conv1d conv2d",
    "dot_product_attention": "scaled_dot_product_attention",
    "dropouts": "dropout",
    "extremes": "max min",
    "flash_attention": "flash_attn_varlen_func flash_attn_with_kvcache",
    "fused_losses": "linear_cross_entropy",
    "indexing": "embedding gather index_select scatter_add",
    "losses": "cross_entropy nll_loss",
    "matrix_product": "bmm linear matmul prepack",
    "normalization": "layer_norm rms_norm",
    "optimisers": "adamw sgd",
    "ordering": "argsort sort topk",
    "pointwise_losses": "kl_div mse_loss",
    "reductions": "amax amin argmax argmin cumsum mean sum",
    "rotary": "rope",
    "scaled_products": "grouped_mm linear_int4 scaled_mm",
    "softmaxes": "log_softmax softmax",
    "variances": "var",
}
"""The functions of each module."""
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

if TYPE_CHECKING:
    from xetl.ops.activations import geglu, gelu, relu, sigmoid, silu, swiglu, tanh
    from xetl.ops.added_products import addmm, baddbmm
    from xetl.ops.channel_norms import batch_norm, group_norm
    from xetl.ops.convolutions import conv1d, conv2d
    from xetl.ops.dot_product_attention import scaled_dot_product_attention
    from xetl.ops.dropouts import dropout
    from xetl.ops.extremes import max, min
    from xetl.ops.flash_attention import flash_attn_varlen_func, flash_attn_with_kvcache
    from xetl.ops.fused_losses import linear_cross_entropy
    from xetl.ops.indexing import embedding, gather, index_select, scatter_add
    from xetl.ops.losses import cross_entropy, nll_loss
    from xetl.ops.matrix_product import bmm, linear, matmul, prepack
    from xetl.ops.normalization import layer_norm, rms_norm
    from xetl.ops.optimisers import adamw, sgd
    from xetl.ops.ordering import argsort, sort, topk
    from xetl.ops.pointwise_losses import kl_div, mse_loss
    from xetl.ops.reductions import amax, amin, argmax, argmin, cumsum, mean, sum
    from xetl.ops.rotary import rope
    from xetl.ops.scaled_products import grouped_mm, linear_int4, scaled_mm
    from xetl.ops.softmaxes import log_softmax, softmax
    from xetl.ops.variances import var
else:  # a checker would take any name to be there

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


if "torch" in sys.modules:  # else with the first call once it is
    import_whole("xetl.ops.torch_library").register()
