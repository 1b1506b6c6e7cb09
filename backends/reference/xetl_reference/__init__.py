"""The backend `reference`: runs XeTile IR with NumPy.

It is the meaning of every operation and the oracle of every test. Nothing heavy is
imported here; `xetl_reference.executable` has what tests use.
"""

from xetl_reference.backend import BACKEND

__all__ = ["BACKEND"]
