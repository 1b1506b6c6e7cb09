"""The CPU backend of xetl: BRGEMM micro-kernels and vectorised loops, by LLVM."""

from xetl_cpu.backend import BACKEND

__all__ = ["BACKEND"]
