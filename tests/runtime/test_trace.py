"""`xetl.TileTrace`: the tiles that a program touches, as a list and as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import xetl
from xetl import xetile
from xetl.errors import LaunchError
from xetl.runtime.trace import TileAccess


@xetile.kernel
def move(X, Y):
    i, j = xetile.program_id(0), xetile.program_id(1)
    tile = xetile.init_tile(X[j], [8 * i, 0], (8, 16))
    xetile.prefetch_tile(tile)
    for _ in range(2):
        v = xetile.load_tile(tile)
        xetile.store_tile(v, xetile.init_tile(Y[j], [8 * i, 0], (8, 16)))
        tile = xetile.update_tile_offset(tile, [0, 16])


def arrays() -> tuple[np.ndarray, np.ndarray]:
    x = np.ones((2, 20, 32), "f4")
    return x, np.zeros_like(x)


@pytest.mark.parametrize("check", ["oob,uninit,race", ""])
def test_one_program_in_order(check: str) -> None:
    x, y = arrays()
    with xetl.TileTrace(program=(2, 1)) as trace:
        move.interpret(x, y, grid=(3, 2), check=check)
    assert y[:, :, :16].all()
    kinds = [each.kind for each in trace.accesses]
    assert kinds == ["prefetch", "load", "store", "load", "store"]
    first = trace.accesses[1]
    line = move.fn.__code__.co_firstlineno + 6
    expected = TileAccess("load", "X", 640, (20, 32), 16, 0, (8, 16), line)
    assert first == expected
    assert trace.accesses[3].column == 16
    text = str(trace)
    assert text.splitlines()[0] == "program (2, 1, 0): 5 tiles"
    assert f"line {line}: load X rows 16-23, columns 0-15" in text


def test_nothing_is_traced_outside() -> None:
    x, y = arrays()
    trace = xetl.TileTrace(0)
    move.interpret(x, y, grid=(3, 2))
    assert not trace.accesses


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_picture(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    x, y = arrays()
    with xetl.TileTrace() as trace:
        move[3, 2](x, y, backend="reference")
    trace.picture(tmp_path / f"tiles{suffix}")
    assert (tmp_path / f"tiles{suffix}").stat().st_size > 5000
    assert "<svg" in trace._repr_svg_()


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="no tile was traced"):
        xetl.TileTrace((9, 9)).picture(tmp_path / "x.png")
    for program in ((1, 2, 3, 4), "x", ()):
        with pytest.raises(LaunchError, match="must be up to three ints"):
            xetl.TileTrace(program)
