"""Random texts give on CPU and device what they give on the reference backend."""

from __future__ import annotations

import numpy as np
import pytest
from generated_text import random_text
from texts import copied

import xetl
from tests.backends.xegpu import device


@pytest.mark.parametrize("seed", range(30))
def test_random_texts(seed):
    same_as_reference("cpu", seed)


@pytest.mark.parametrize("seed", range(30, 50))
def test_random_texts_on_a_device(seed):
    device.require()
    same_as_reference("xegpu", seed)


def same_as_reference(other, seed):
    text, arguments = random_text(seed)
    kernel, results = xetl.load_mlir(text)["k"], []
    for backend in ("reference", other):
        own = copied(arguments)
        with np.errstate(all="ignore"):
            kernel[1](*own, backend=backend)
        results.append(own[:-1])
    for expected, found in zip(*results):
        assert found.tobytes() == expected.tobytes() or np.array_equal(
            *(each.astype(np.float64) for each in (found, expected)), equal_nan=True
        ), text
