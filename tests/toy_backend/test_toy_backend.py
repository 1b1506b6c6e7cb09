"""The backend that CONTRIBUTING shows: found by its name, it runs kernels."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.backend import find_backend
from xetl.errors import LaunchError


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A package that is called ``xetl_`` and the name of the backend."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    yield
    find_backend.cache_clear()


@xetile.kernel
def scale(X: Any, Y: Any, factor: Any) -> None:
    i = xetile.program_id(0)
    x = xetile.load_tile(xetile.init_tile(X, [8 * i, 0], (8, 16)))
    xetile.store_tile(x * factor + 1.0, xetile.init_tile(Y, [8 * i, 0], (8, 16)))


@xetile.kernel
def roots(X: Any) -> None:
    tile = xetile.init_tile(X, [0, 0], (8, 16))
    xetile.store_tile(xetile.sqrt(xetile.load_tile(tile)), tile)


@pytest.mark.parametrize("columns", [16, 11])
def test_it_runs_kernels(columns: int) -> None:
    x = np.arange(20 * columns, dtype=np.float32).reshape(20, columns)
    y = np.zeros_like(x)
    for _ in range(2):  # compiled, then again
        scale[3](x, y, 2.5, backend="toy")
        np.testing.assert_array_equal(y, x * np.float32(2.5) + 1)


def test_it_shows_its_code() -> None:
    text = scale.ir("python", "f32[M,N] f32[M,N] f64", backend="toy")
    assert "load(*v" in text


def test_what_it_lacks_is_named() -> None:
    with pytest.raises(LaunchError, match=r"cannot compile `math\.sqrt`"):
        roots[1](np.ones((8, 16), np.float32), backend="toy")


def test_defaults_do() -> None:
    toy = find_backend("toy")
    assert toy.default_target() == "python"
    assert toy.doctor()[0].text == "python"
    assert toy.slm_limit("python") == 1 << 20
