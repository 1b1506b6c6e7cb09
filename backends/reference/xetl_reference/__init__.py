"""The backend `reference`: runs XeTile IR with NumPy.

It defines the meaning of every operation and is the oracle of tests. This module
imports nothing heavy; tests use `xetl_reference.executable`.
"""

from xetl_reference.backend import BACKEND

__all__ = ["BACKEND"]
