"""Random texts give on the CPU what they give on the reference backend."""

from __future__ import annotations

import numpy as np
import pytest
from generated_text import random_text
from texts import copied

import xetl


@pytest.mark.parametrize("seed", range(30))
def test_random_texts(seed):
    text, arguments = random_text(seed)
    kernel, results = xetl.load_mlir(text)["k"], []
    for backend in ("reference", "cpu"):
        own = copied(arguments)
        with np.errstate(all="ignore"):
            kernel[1](*own, backend=backend)
        results.append(own[:-1])
    for expected, found in zip(*results):
        assert found.tobytes() == expected.tobytes() or np.array_equal(
            *(each.astype(np.float64) for each in (found, expected)), equal_nan=True
        ), text
