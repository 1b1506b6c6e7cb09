"""The GEMMs in Python on their way to a device, at sizes that no tile divides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xetl
from tests.seeds.examples import f16, numbers, unset, wide
from tests.seeds.test_python_gemms import (
    cooperative,
    name,
    prefetching,
    row_sums,
    two_caches,
)
from tests.transforms.meaning import same_meaning
from xetl.transforms.device_pipeline import device_passes

M, N, K = 300, 200, 70


def case(kernel: Any) -> tuple[tuple[int, int, int], list[Any], Any]:
    """The grid, the arguments, and what the last of them holds in the end."""
    a, b = f16(M, K), f16(K, N, seed=1)
    grid = (1 if kernel is two_caches else 2, 1, 1)
    if kernel is not row_sums:
        return grid, [a, b, unset(numbers(1), M, N)], wide(a) @ wide(b)
    bias, bt = numbers(1, N), np.ascontiguousarray(b.T)
    sums = (wide(a) @ wide(b) + wide(bias)).sum(1, keepdims=True)
    return grid, [a, bt, bias, unset(numbers(1), M, 1)], sums


KERNELS = pytest.mark.parametrize(
    "kernel", [prefetching, row_sums, cooperative, two_caches], ids=name
)


@KERNELS
def test_every_pass_keeps_the_meaning(kernel: Any) -> None:
    grid, arrays, expected = case(kernel)
    truth = [None] * (len(arrays) - 1) + [expected]
    text = kernel.ir("xetile", *arrays)
    same_meaning(text, grid, arrays, device_passes(), truth=truth)


@KERNELS
@pytest.mark.parametrize("stage", ["xetile-mapped", "xetile-sg", "xetile-blocked"])
def test_the_text_of_a_stage_runs_on_the_cpu(kernel: Any, stage: str) -> None:
    grid, arrays, expected = case(kernel)
    library = xetl.load_mlir(kernel.ir(stage, *arrays))
    library[name(kernel)][grid](*arrays, backend="cpu")
    assert np.array_equal(arrays[-1].astype(np.float64), expected)


def test_any_backend_shows_the_stages_of_a_device() -> None:
    a, b, c = np.zeros((64, 64), "f2"), np.zeros((64, 64), "f2"), numbers(64, 64)
    for backend in ("reference", "cpu"):
        text = prefetching.ir("xetile-blocked", a, b, c, backend=backend)
        assert 'xetile.level = "subgroup"' in text
        assert "xetile.subgroups = array<i64: 8, 4>" in text
