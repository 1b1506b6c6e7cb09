"""Functions like torch's, on any array a kernel takes, written in the language."""

from xetl.ops.dot_product_attention import scaled_dot_product_attention
from xetl.ops.matrix_product import matmul
from xetl.ops.normalization import layer_norm, softmax
from xetl.ops.prepacking import prepack

__all__ = [
    "layer_norm",
    "matmul",
    "prepack",
    "scaled_dot_product_attention",
    "softmax",
]
