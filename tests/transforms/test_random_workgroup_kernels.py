"""From workgroups to blocks, random kernels keep what they do, pass by pass."""

import warnings

import pytest
from hypothesis import given, settings
from meaning import same_meaning
from workgroup_kernels import WorkgroupKernel, kernel_of, kernels
from xdsl.dialects.builtin import ModuleOp

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


@settings(max_examples=10, deadline=None)
@given(kernels(most_statements=5))
def test_any_kernel_goes_all_the_way(kernel: WorkgroupKernel) -> None:
    keeps_its_meaning(kernel)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3000, 3600))
def test_many_kernels_go_all_the_way(seed: int) -> None:
    keeps_its_meaning(kernel_of(seed, statements=12))
