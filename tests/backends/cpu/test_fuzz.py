"""Random kernels give on the CPU what they give on the reference backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_generator import random_kernel
from launching import BF16, copied, laid_out, same

from xetl.runtime.config import config

DTYPES = (np.float32, np.float32, np.int32, np.float16, BF16, np.float64, np.int8)
LAYOUTS = ("rows", "rows", "columns", "neither")


def arrays(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    layouts = rng.choice(LAYOUTS, 3)
    found = [
        laid_out(rng.integers(-4, 5, rng.integers(4, 60, 2)).astype(dtype), layout)
        for layout in layouts
    ]
    if seed % 10 == 0:
        found[1] = found[0]  # the very same view twice
    return found


def check(seed: int, target: str) -> None:
    dtype = DTYPES[seed % len(DTYPES)]
    kernel, source = random_kernel(seed, dtype in (np.float32, np.float16, BF16))
    config.target, config.cache = target, False
    try:
        grid = (3, 4) if seed % 2 else (1, 1)
        for n in (0, 1, 3):
            ours = copied([*arrays(seed), n])
            theirs = copied([*arrays(seed), n])
            kernel[grid](*ours)
            del config.target
            kernel[grid](*theirs, backend="reference")
            config.target = target
            for one, other in zip(ours[:3], theirs[:3]):
                same(one, other, f"n = {n}, {arrays(seed)[0].dtype}\n{source}")
    finally:
        config.assigned = {}


@pytest.mark.parametrize("seed", range(50))
def test_random_kernels(seed: int) -> None:
    check(seed, ("host", "avx2")[seed // 2 % 2])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50, 400))
def test_more_random_kernels(seed: int) -> None:
    check(seed, ("avx2", "host")[seed // 2 % 2])
