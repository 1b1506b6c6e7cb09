"""Whatever is passed as an array is read rightly, or refused by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from hostile_arrays import (
    RIGHT,
    RIGHT_TENSORS,
    SIZE,
    WRONG,
    WRONG_TENSORS,
    plain,
    transformed,
)

from xetl import ops, xetile
from xetl.errors import LaunchError

# torch warns of its own prototypes: sparse rows, quantised and nested tensors.
pytestmark = pytest.mark.filterwarnings("ignore")


@xetile.kernel
def copy(X, Y):
    i = xetile.program_id(0) * 16
    tile = xetile.load_tile(xetile.init_tile(X, [i], (16,)))
    xetile.store_tile(tile, xetile.init_tile(Y, [i], (16,)))


def new() -> Any:
    return np.full(SIZE, -1, np.float32)


def launched(x: Any) -> Any:
    y = new()
    copy[2](x, y)
    return y


def launched_again(x: Any) -> Any:
    """By the shortcut, if there is one for such an argument."""
    launched(np.zeros(SIZE, np.float32))
    launched(plain())
    return launched(x)


def bound(x: Any) -> Any:
    y = new()
    copy.bind(x, y, grid=2)()
    return y


def interpreted(x: Any) -> Any:
    y = new()
    copy[2](x, y, backend="reference")
    return y


ROADS = [launched, launched_again, bound, interpreted]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", [*RIGHT, *RIGHT_TENSORS])
def test_right_ones_are_read(kind: str, road: Callable[[Any], Any]) -> None:
    make, elements = {**RIGHT_TENSORS, **RIGHT}[kind]
    expected = np.zeros(SIZE, np.float32)  # what is loaded besides is 0
    expected[: len(elements)] = elements
    np.testing.assert_array_equal(road(make()), expected)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", WRONG)
def test_wrong_objects_are_refused(kind: str, road: Callable[[Any], Any]) -> None:
    made = WRONG[kind]()
    with pytest.raises(LaunchError, match="`X`"):
        road(made)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", WRONG_TENSORS)
def test_wrong_tensors_are_refused(kind: str, road: Callable[[Any], Any]) -> None:
    made = WRONG_TENSORS[kind]()
    with pytest.raises(LaunchError, match="`X`"):
        road(made)


TAKEN_BY_FUNCTIONS = {"no dimensions", "requires a gradient", "has a history"}
TAKEN_BY_FUNCTIONS |= {"parameter", "class with a gradient", "fake", "meta"}
"""What only launches refuse: functions have derivatives, and operators of torch."""


@pytest.mark.parametrize(
    "kind",
    [kind for kind in {**WRONG, **WRONG_TENSORS} if kind not in TAKEN_BY_FUNCTIONS],
)
def test_functions_refuse_them_too(kind: str) -> None:
    made = {**WRONG, **WRONG_TENSORS}[kind]()
    with pytest.raises(LaunchError, match="`input`"):
        ops.softmax(made)
    with pytest.raises(LaunchError, match=r"`[ab]`"):
        ops.matmul(np.ones((4, SIZE), np.float32), made)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("kind", dict(transformed()))
def test_transformed_tensors_are_refused(kind: str, road: Callable[[Any], Any]) -> None:
    seen: list[str] = []

    def refused(x: Any) -> None:
        with pytest.raises(LaunchError, match="`X`"):
            road(x)
        seen.append(kind)

    dict(transformed())[kind](refused)
    assert seen == [kind]
