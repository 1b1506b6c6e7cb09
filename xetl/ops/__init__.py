"""Functions like torch's, for all arrays that a kernel takes."""

import sys

from xetl.imports import import_whole
from xetl.ops.activations import geglu, gelu, relu, sigmoid, silu, swiglu, tanh
from xetl.ops.added_products import addmm, baddbmm
from xetl.ops.channel_norms import batch_norm, group_norm
from xetl.ops.convolutions import conv1d, conv2d
from xetl.ops.dot_product_attention import scaled_dot_product_attention
from xetl.ops.dropout import dropout
from xetl.ops.extremes import max, min
from xetl.ops.flash_attention import flash_attn_varlen_func, flash_attn_with_kvcache
from xetl.ops.fused_losses import linear_cross_entropy
from xetl.ops.indexing import embedding, gather, index_select, scatter_add
from xetl.ops.int4_products import linear_int4
from xetl.ops.losses import cross_entropy, nll_loss
from xetl.ops.matrix_product import bmm, linear, matmul
from xetl.ops.normalization import layer_norm, rms_norm
from xetl.ops.optimisers import adamw, sgd
from xetl.ops.ordering import argsort, sort, topk
from xetl.ops.pointwise_losses import kl_div, mse_loss
from xetl.ops.prepacking import prepack
from xetl.ops.reductions import amax, amin, argmax, argmin, cumsum, mean, sum
from xetl.ops.rope import rope
from xetl.ops.scaled_products import grouped_mm, scaled_mm
from xetl.ops.softmaxes import log_softmax, softmax
from xetl.ops.variances import var

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

if "torch" in sys.modules:  # else with the first call once it is
    import_whole("xetl.ops.torch_library").register()
