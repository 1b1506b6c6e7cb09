"""A tile kernel language in Python; see README.md."""

from xetl import errors, xetile

__version__ = "0.1.0"

__all__ = ["errors", "xetile"]
