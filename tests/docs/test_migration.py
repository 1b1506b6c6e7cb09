"""The migration page's tables of names: each row runs, and errors know the name."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from xetl import xetile
from xetl.language.other_names import advice_on

PAGE = Path(__file__).parents[2] / "docs" / "migration.md"
ROWS = re.findall(
    r"^\| `(?:tl|libdevice)\.(\w+)` \| `(.*)` \|$", PAGE.read_text(), re.M
)
ALL = [name for name in dir(xetile) if not name.startswith("_")]
OF_VECTORS = {"cast", "expand_dims"}
"""What is no operation but a method or an index."""

PROGRAM = """
import numpy as np
from xetl import xetile
from xetl.xetile import f32

@xetile.kernel
def k(X, I, n):
    tile = xetile.init_tile(X, [0, 0], (16, 16))
    v = xetile.load_tile(tile)
    w = v * v + 1.0
    i = xetile.load_tile(xetile.init_tile(I, [0], (16,)))
    flag = v > 0
    {line}

X, I = np.ones((16, 16), np.float32), np.arange(16, dtype=np.int32)
k[1](X, I, 5, backend="{backend}")
"""


def test_the_tables_were_read() -> None:
    assert len(ROWS) > 60


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize(("name", "line"), ROWS, ids=[name for name, _ in ROWS])
def test_it_runs(name: str, line: str, backend: str, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(PROGRAM.format(line=line, backend=backend))
    with np.errstate(all="ignore"):
        runpy.run_path(str(path))


@pytest.mark.parametrize("name", sorted({name for name, _ in ROWS} - OF_VECTORS))
def test_an_error_says_what_to_write(name: str) -> None:
    assert advice_on(name, ALL) is not None
