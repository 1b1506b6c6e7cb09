"""The most that the machine can calculate: multiply and add, all in registers."""

import os

from harness import Job
from operands import flops

from xetl.tools.performance.peak import MultiplyAdds


def gemm(dtype: str, shape: str) -> Job:
    """The rate on all threads: of f32 FMA, or of the dot products of bf16 pairs.

    A call has as many operations as the product of ``shape``: the clock goes up and
    down, and the best of many short calls would be one that no long call can reach.
    """
    threads = int(os.environ["OMP_NUM_THREADS"])
    call = MultiplyAdds(dtype, threads, 1e9 * flops(shape) / threads)
    return Job([call], 1e-9 * call.operations)
