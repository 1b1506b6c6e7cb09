"""The random kernels of this folder are legal, exact and always the same."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from meaning import fresh
from workgroup_kernels import WorkgroupKernel, kernel_of, kernels

from tests.run_module import run_module
from xetl.dialects.text import read_module


def run(kernel: WorkgroupKernel) -> list[np.ndarray]:
    module = read_module(kernel.text)
    module.verify()
    arrays = fresh(kernel.arrays)
    run_module(module, kernel.grid, arrays, checks=("race", "uninit"))
    return arrays


def assert_exact(arrays: list[np.ndarray]) -> None:
    """Whole numbers, no negative zero: sums in any order are the same."""
    for array in arrays:
        if array.dtype.kind not in "iu":
            numbers = array.astype(np.float64)
            assert np.array_equal(numbers, np.floor(numbers))
            assert not np.signbit(numbers).any()


@pytest.mark.parametrize("seed", range(40))
def test_a_seed_gives_a_kernel_that_runs_exactly(seed: int) -> None:
    assert_exact(run(kernel_of(seed)))


@settings(max_examples=20)
@given(kernels())
def test_hypothesis_gives_kernels_that_run_exactly(kernel: WorkgroupKernel) -> None:
    assert_exact(run(kernel))


def test_a_seed_gives_the_same_kernel_twice() -> None:
    one, two = kernel_of(5), kernel_of(5)
    assert one.text == two.text
    assert all(map(np.array_equal, one.arrays, two.arrays))


def test_everything_occurs() -> None:
    text = "".join(kernel_of(seed).text for seed in range(60))
    found = set(re.findall(r"(?:xetile|scf|gpu|memref)\.\w+", text))
    assert found >= {
        *("xetile.tile_mma", "xetile.tile_reduce", "xetile.tile_broadcast"),
        *("xetile.tile_transpose", "xetile.tile_conv_layout", "xetile.tile_scan"),
        *("xetile.atomic_rmw_tile", "xetile.load_gather", "xetile.store_scatter"),
        *("scf.for", "scf.if", "scf.while", "memref.alloc", "gpu.barrier"),
        *("xetile.wg_map", "xetile.update_tile_offset", "xetile.prefetch_tile"),
    }
