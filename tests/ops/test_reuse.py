"""Constant operands that come again, where the setting asks for it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from xetl.ops import matmul
from xetl.ops.products.matrix_product import _known, reused
from xetl.settings import config

SHAPE = (64, 96)


@pytest.fixture(autouse=True)
def _setting() -> Iterator[None]:
    config.reuse_constants = True
    yield
    del config.reuse_constants
    _known.clear()


def constant() -> tuple[Any, Any]:
    """A read-only array, and the one whose memory it is."""
    whole = np.random.default_rng(0).integers(-4, 5, SHAPE).astype(np.float32)
    fixed = whole.view()
    fixed.flags.writeable = False
    return fixed, whole


A = np.random.default_rng(1).integers(-4, 5, (40, 64)).astype(np.float32)


def is_packed(b: Any) -> bool:
    """Whether a change of ``b`` behind everybody's back is not noticed."""
    before = A @ b
    for _ in range(3):
        assert np.array_equal(matmul(A, b), before)
    b.base[:] = 0
    return np.array_equal(matmul(A, b), before)


def test_what_comes_again_is_packed_once() -> None:
    assert is_packed(constant()[0])


def test_only_where_it_is_asked_for() -> None:
    config.reuse_constants = False
    assert not is_packed(constant()[0])


def test_only_what_is_read_only() -> None:
    whole = constant()[1]
    assert not is_packed(whole.view())


def test_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    del config.reuse_constants
    b = constant()[0]
    assert [reused(b), reused(b)] == [None, None]
    monkeypatch.setenv("XETL_REUSE_CONSTANTS", "1")
    assert reused(b) is None
    assert reused(b).array is b
    config.reuse_constants = True


def test_nothing_is_kept_alive() -> None:
    b = constant()[0]
    for _ in range(3):
        matmul(A, b)
    assert len(_known) == 1
    del b
    gc.collect()
    assert not _known


def test_an_array_in_the_place_of_another_is_not_it() -> None:
    for number in range(50):
        b = np.full(SHAPE, number, np.float32)
        b.flags.writeable = False
        for _ in range(2):
            assert np.array_equal(matmul(A, b), A @ b)
