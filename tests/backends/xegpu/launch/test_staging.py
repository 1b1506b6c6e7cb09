"""Arrays of the host on devices that cannot read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from launched import counting, grid_of, scale

from xetl.errors import LaunchError
from xetl_xegpu.launch import devices
from xetl_xegpu.launch.places import place_of
from xetl_xegpu.launch.staging import allocated

LAYOUTS = {
    "rows": lambda: counting((20, 40)),
    "columns": lambda: counting((40, 20)).T,
    "neither": lambda: counting((40, 80))[::2, ::2],
    "backwards": lambda: counting((20, 40))[::-1, ::-1],
    "a part": lambda: counting((30, 50))[3:23, 5:45],
    "no rows": lambda: counting((0, 40)),
}


@pytest.fixture(autouse=True)
def far(pretend: Any) -> None:
    pretend(reads_host=False)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_is_copied_in_and_out(layout: str) -> None:
    a, c = LAYOUTS[layout](), LAYOUTS[layout]()
    whole = c if c.base is None else c.base
    before = whole.copy()
    scale[max(1, grid_of(a)[0]), 3](a, c)
    assert np.array_equal(c, 2 * a)
    # What lies between the elements is as it was.
    c[...] = a
    assert np.array_equal(whole, before)


def test_the_very_same_view_is_copied_once() -> None:
    a = counting((16, 16))
    scale[1](a, a)
    assert np.array_equal(a, 2 * counting((16, 16)))


def test_broadcast_inputs() -> None:
    row = counting((1, 16))
    c = counting((16, 16))
    scale[1](np.broadcast_to(row, (16, 16)), c)
    assert np.array_equal(c, np.broadcast_to(2 * row, (16, 16)))


def test_results_are_there_even_without_waiting() -> None:
    a = counting((16, 16))
    event = scale[1](a, a, wait=False)
    assert event is not None
    assert event.done
    assert a[0, 1] == 2


def test_a_second_launch_sees_what_changed() -> None:
    a, c = counting((16, 16)), counting((16, 16))
    for number in range(3):
        a[...] = number
        scale[1](a, c)
        assert np.all(c == 2 * number)


def test_no_memory_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = devices.dpctl().memory

    def full(size: int, **options: Any) -> Any:
        if size > 2000:
            raise memory.USMAllocationError("no room")
        return real(size, **options)

    real = memory.MemoryUSMDevice
    monkeypatch.setattr(memory, "MemoryUSMDevice", full)
    a, c = counting((16, 16)), counting((32, 32))
    before = c.copy()
    with pytest.raises(LaunchError, match="has no 4096 bytes left") as caught:
        scale[1](a, c)
    assert caught.value.code == "X0833"
    assert np.array_equal(c, before)
    assert "free arrays" in (caught.value.help or "")
    place = place_of(devices.default_queue())
    with pytest.raises(LaunchError, match="has no 5000000000 bytes left") as caught:
        allocated("Device", 5_000_000_000, place, "a copy")
    assert "RELAXED_ALLOCATION_LIMITS=1" in (caught.value.help or "")
