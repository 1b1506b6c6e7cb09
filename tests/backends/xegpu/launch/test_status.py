"""Prints and failed checks of a launch, and results in spite of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from launched import aligned, counting

from xetl import xetile
from xetl.errors import LaunchError
from xetl.xetile import f32

pytestmark = pytest.mark.optimised  # the driver forms no subgroups of these otherwise


@xetile.kernel
def telling(A, C, limit):
    row = xetile.program_id(0) * 16
    a = xetile.load_tile(xetile.init_tile(A, [row, 0], (16, 16)))
    total = a.sum()
    xetile.device_print("rows from {}: {}", row, total)
    xetile.device_assert(row < limit, f"row {row} is too much")
    xetile.store_tile(a + a, xetile.init_tile(C, [row, 0], (16, 16)))


@pytest.mark.parametrize("offset", [0, 4])
def test_lines_come_in_the_order_of_programs(
    capsys: pytest.CaptureFixture[str], offset: int
) -> None:
    a, c = counting((48, 16), offset=offset), aligned((48, 16))
    for _ in range(2):
        telling[3](a, c, 100)
        lines = capsys.readouterr().out.splitlines()
        sums = a.reshape(3, -1).sum(1)
        assert lines == [f"rows from {16 * n}: {sums[n]}" for n in range(3)]
    assert np.array_equal(c, 2 * a)


@pytest.mark.parametrize("options", [{}, {"wait": False}])
def test_a_check_that_failed(options: dict[str, Any]) -> None:
    a, c = counting((48, 16)), aligned((48, 16))
    with pytest.raises(LaunchError, match="row 16 is too much") as caught:
        telling[3](a, c, 16, **options)
    assert caught.value.code == "X0820"
    assert caught.value.source_line is not None
    assert "device_assert" in caught.value.source_line
    assert np.array_equal(c[:16], 2 * a[:16])


def test_on_a_device_that_copies(pretend: Any) -> None:
    pretend(reads_host=False)
    a, c = counting((48, 16)), aligned((48, 16))
    with pytest.raises(LaunchError, match="row 32 is too much"):
        telling[3](a, c, 32)
    assert np.array_equal(c[:32], 2 * a[:32])


@xetile.kernel(subgroups=[1, 4])
def meeting(X, Y, bad):
    me = xetile.subgroup_id()
    room = xetile.slm((4, 20), f32)
    v = xetile.load_tile(xetile.init_tile(X, [me, 0], (1, 20)))
    for turn in range(3):
        if turn == 1:
            xetile.device_assert(me != bad, f"subgroup {me} fails")
        xetile.store_tile(v, xetile.init_tile(room, [me, 0], (1, 20)))
        xetile.barrier()
        v = xetile.load_tile(xetile.init_tile(room, [(me + 1) % 4, 0], (1, 20)))
        xetile.barrier()
        xetile.store_tile(v, xetile.init_tile(Y, [me, 0], (1, 20)))


@pytest.mark.parametrize("bad", range(5))
def test_others_do_not_wait_for_a_subgroup_that_has_failed(bad: int) -> None:
    x, y = counting((4, 20)), aligned((4, 20))
    if bad == 4:
        meeting[1](x, y, bad)
        assert np.array_equal(y, np.roll(x, -3, axis=0))
        return
    with pytest.raises(LaunchError, match=f"subgroup {bad} fails"):
        meeting[1](x, y, bad)
    assert np.array_equal(y, np.roll(x, -1, axis=0))
