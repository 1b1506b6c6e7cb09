"""Functions like torch's, on any array a kernel takes, written in the language."""

from xetl.ops.matrix_product import matmul
from xetl.ops.prepacking import prepack

__all__ = ["matmul", "prepack"]
