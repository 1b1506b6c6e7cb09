"""Which maps a kernel names, and whether two of them may meet."""

import numpy as np
import pytest

from xetl import xetile
from xetl.dialects.text import functions_of, read_module
from xetl.dialects.xetile.used_maps import maps_may_meet, used_maps
from xetl.transforms.propagate_wg_maps import PropagateWgMapsPass
from xetl.xetile import constexpr

WIDE = xetile.wg_map(sg_layout=[2, 2], sg_data=[8, 8])
TALL = xetile.wg_map(sg_layout=[4, 1], sg_data=[4, 16])


@xetile.kernel
def turned_twice(X, Y, FIRST: constexpr = None, SECOND: constexpr = None):
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 16)))
    once = xetile.tile_transpose(2.0 * x, [1, 0], wg_map=FIRST)
    twice = xetile.tile_transpose(once + 1.0, [1, 0], wg_map=SECOND)
    xetile.store_tile(twice, xetile.init_tile(Y, [0, 0], (16, 16)))


@pytest.mark.parametrize(
    ("first", "second", "count", "may_meet"),
    [
        (None, None, 0, False),
        (WIDE, None, 1, False),
        (WIDE, WIDE, 1, True),
        (WIDE, TALL, 2, True),
    ],
)
def test_one_map_alone_meets_no_other(first, second, count, may_meet):
    x = np.zeros((16, 16), np.float32)
    text = turned_twice.ir("xetile", x, x, FIRST=first, SECOND=second)
    (function,) = functions_of(read_module(text))
    assert len(used_maps(function)) == count
    assert maps_may_meet(function) == may_meet


@pytest.mark.parametrize("second", [None, TALL])
def test_maps_are_followed_where_they_may_meet(monkeypatch, second):
    monkeypatch.setenv("XETL_CACHE", "0")
    followed = []
    rewrite = "rewrite", lambda _, module: followed.append(module)
    monkeypatch.setattr(PropagateWgMapsPass, *rewrite)
    x = np.ones((16, 16), np.float32)
    y = np.zeros_like(x)
    turned_twice[(1,)](x, y, FIRST=WIDE, SECOND=second)
    assert len(followed) == (second is not None)
    assert (y == 3).all()
