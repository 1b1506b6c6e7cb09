"""The GEMMs in Python on their way to a device, at sizes that no tile divides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize("kernel", [prefetching, cooperative, two_caches], ids=name)
def test_product(kernel: Any) -> None:
    a, b, c = f16(M, K), f16(K, N, seed=1), unset(numbers(1), M, N)
    truth = [None, None, wide(a) @ wide(b)]
    text = kernel.ir("xetile", a, b, c)
    grid = (1 if kernel is two_caches else 2, 1, 1)
    same_meaning(text, grid, [a, b, c], device_passes(), truth=truth)


def test_row_sums() -> None:
    a, bt, bias = f16(M, K), f16(N, K, seed=1), numbers(1, N)
    sums = unset(numbers(1), M, 1)
    expected = (wide(a) @ wide(bt).T + wide(bias)).sum(1, keepdims=True)
    text = row_sums.ir("xetile", a, bt, bias, sums)
    arrays, truth = [a, bt, bias, sums], [None, None, None, expected]
    same_meaning(text, (2, 1, 1), arrays, device_passes(), truth=truth)


def test_any_backend_shows_the_stages_of_a_device() -> None:
    a, b, c = np.zeros((64, 64), "f2"), np.zeros((64, 64), "f2"), numbers(64, 64)
    for backend in ("reference", "cpu"):
        text = prefetching.ir("xetile-blocked", a, b, c, backend=backend)
        assert 'xetile.level = "subgroup"' in text
        assert "xetile.subgroups = array<i64: 8, 4>" in text
