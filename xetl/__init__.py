"""A tile kernel language in Python; see README.md."""

import importlib

from xetl import errors

__version__ = "0.1.0"

__all__ = ["errors"]


def __getattr__(name: str) -> object:
    """Load the facade on first use: what imports `xetl` need not load the runtime."""
    if name == "xetile":
        return importlib.import_module("xetl.xetile")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
