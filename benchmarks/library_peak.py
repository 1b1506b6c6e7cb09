"""The most that the machine can calculate: products in registers, or in AMX tiles."""

import os

from harness import Job
from operands import flops

from xetl_cpu.peak import Products, fastest_loop


def gemm(dtype: str, shape: str) -> Job:
    """The rate on all threads: of f32 FMA, dot products of bf16 pairs, or of tiles.

    A call has as many operations as the product of ``shape``: the clock goes up and
    down, and the best of many short calls would be one that no long call can reach.
    """
    threads = int(os.environ["OMP_NUM_THREADS"])
    # At least 5 ms of FMA, which take a tenth of that in tiles.
    least = max(1.25e9, 1e9 * flops(shape) / threads)
    call = Products(fastest_loop(dtype), threads, least)
    return Job([call], 1e-9 * call.operations)
