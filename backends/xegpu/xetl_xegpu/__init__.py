"""The backend for Intel GPUs: XeGPU, lanes, SPIR-V; see docs/design/0005-xegpu.md."""

from xetl_xegpu.backend import BACKEND

__all__ = ["BACKEND"]
