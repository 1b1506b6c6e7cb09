"""Elementary functions on vectors, of our own making: no libm is called.

Errors are stated in units in the last place (ulp) of the true result.
"""

from xetl_cpu.vector_math.emit import FUNCTIONS, emit_math

__all__ = ["FUNCTIONS", "emit_math"]
