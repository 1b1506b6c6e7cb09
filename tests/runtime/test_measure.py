"""`xetl.do_bench`: what it returns, and what it says of noise."""

from __future__ import annotations

import time
from itertools import cycle
from typing import Any

import pytest

import xetl
from xetl.errors import LaunchError
from xetl.runtime import measure


def short() -> None:
    time.sleep(0.001)


def long() -> None:
    time.sleep(0.004)


def test_milliseconds_of_a_call() -> None:
    ms = xetl.do_bench(short, warmup=1, rep=10)
    assert isinstance(ms, float)
    assert 1 <= ms < 100  # not microseconds, not seconds; others may be running


def test_quantiles_and_modes() -> None:
    low, high = xetl.do_bench(short, 1, 10, quantiles=[0.0, 1.0])
    assert 1 <= low <= high
    every = xetl.do_bench(short, 1, 100, return_mode="all")
    assert len(every) > 2
    assert min(every) >= 1


def test_calls_that_are_too_short_for_the_clock() -> None:
    assert 0 < xetl.do_bench(lambda: None, 1, 5) < 0.01


def test_cold_caches() -> None:
    seen: list[int] = []
    xetl.do_bench(lambda: seen.append(1), 0, 1, cache="cold")
    assert seen
    warm = measure.time_calls(short, 0.0, before=lambda: seen.append(2), least=3)
    assert len(warm) == 3
    assert seen.count(2) == 4


def test_several_functions_take_turns() -> None:
    order: list[str] = []
    result = xetl.do_bench(
        {
            "a": lambda: order.append("a") or short(),
            "b": lambda: order.append("b") or long(),
        },
        warmup=0,
        rep=20,
    )
    a, b = result
    assert a < b
    assert result.fastest == "a"
    assert not result.undecided
    assert "a" in order[order.index("b") :]
    assert "1.00x" in str(result)


def test_noise_that_exceeds_a_difference_is_said() -> None:
    result = measure.Comparison({"f": [1.0, 2.0, 3.0], "g": [1.1, 2.1, 3.1]}, "median")
    assert result.undecided == ["g"]
    assert "noise exceeds the difference between f and g" in str(result)
    assert list(result) == [2.0, 2.1]


def test_gradients_are_dropped_and_events_waited_for() -> None:
    waited = []

    class Event:
        def wait(self) -> None:
            waited.append(1)

    tensor: Any = type("Tensor", (), {"grad": 1})()
    xetl.do_bench(Event, 0, 1, grad_to_none=[tensor])
    assert waited
    assert tensor.grad is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fn": 3}, "was given 3, which cannot be timed"),
        ({"fn": []}, r"was given \[\], which"),
        ({"fn": short, "cache": "hot"}, "`cache=` is 'hot'"),
        ({"fn": short, "return_mode": "meen"}, "`return_mode=` is 'meen'"),
        ({"fn": [short], "return_mode": "all"}, "`return_mode=` is 'all'"),
        ({"fn": [short], "quantiles": [0.5]}, "`quantiles=` is for one function"),
        ({"fn": short, "quantiles": [2]}, r"`quantiles=` is \[2\]"),
        ({"fn": short, "quantiles": 0.5}, "`quantiles=` is 0.5"),
    ],
)
def test_wrong_calls(options: Any, said: str) -> None:
    with pytest.raises(LaunchError, match=said) as caught:
        xetl.do_bench(**options)
    assert caught.value.code == "X0850"


def test_the_clock_is_read_around_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    times = cycle([0.0, 1.0])
    monkeypatch.setattr(measure, "perf_counter", lambda: next(times))
    assert measure._time_batch(lambda: None, 4) == 0.25
