"""From workgroups to blocks, random kernels keep what they do, pass by pass.

And on a device they do what they do in the interpreter.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from meaning import same_meaning
from workgroup_kernels import WorkgroupKernel, kernel_of, kernels
from xdsl.dialects.builtin import ModuleOp

import xetl
from tests.backends.xegpu import device
from xetl.errors import TileMapWarning
from xetl.transforms.device_pipeline import STAGE_AFTER, device_passes
from xetl.transforms.stages import check_stage


def check(name: str, module: ModuleOp) -> None:
    if name in STAGE_AFTER:
        check_stage(module, STAGE_AFTER[name])


def keeps_its_meaning(kernel: WorkgroupKernel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TileMapWarning)
        same_meaning(
            kernel.text, kernel.grid, kernel.arrays, device_passes(), look=check
        )


@pytest.mark.parametrize("seed", range(2000, 2030))
def test_a_kernel_of_a_seed_goes_all_the_way(seed: int) -> None:
    keeps_its_meaning(kernel_of(seed))


@pytest.mark.slow
@settings(max_examples=10)
@given(kernels(most_statements=5))
def test_any_kernel_goes_all_the_way(kernel: WorkgroupKernel) -> None:
    keeps_its_meaning(kernel)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3000, 3250))
def test_many_kernels_go_all_the_way(seed: int) -> None:
    keeps_its_meaning(kernel_of(seed, statements=12))


def runs_on_a_device(kernel: WorkgroupKernel) -> None:
    device.require()
    compiled = xetl.load_mlir(kernel.text)["kernel"]
    left = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TileMapWarning)
        for backend in ("reference", "xegpu"):
            arrays = [array.copy(order="K") for array in kernel.arrays]
            compiled[kernel.grid](*arrays, backend=backend)
            left.append(arrays)
    for expected, found in zip(*left):
        assert np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")


@pytest.mark.parametrize("seed", range(5000, 5003))
def test_a_kernel_of_a_seed_runs_on_a_device(seed: int) -> None:
    runs_on_a_device(kernel_of(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5003, 5030))
def test_many_kernels_run_on_a_device(seed: int) -> None:
    runs_on_a_device(kernel_of(seed))
