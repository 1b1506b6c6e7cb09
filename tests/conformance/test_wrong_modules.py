"""Wrong texts: always an `IRError`, at the place and with the words they say.

A module's first comment says what comes out: ``// error: CODE LINE:COLUMN WORDS``,
of which the place may be shorter or missing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import xetl
from xetl.errors import IRError

MODULES = sorted((Path(__file__).parent / "wrong").glob("*.mlir"))
ERROR = re.compile(r"// error: (X\d+) ?([\d:]*) ?(.*)")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_wrong_text_is_an_ir_error(path: Path) -> None:
    text = path.read_text("utf-8")
    said = ERROR.match(text)
    assert said is not None
    with pytest.raises(IRError) as caught:
        xetl.load_mlir(text)
    error = caught.value
    assert error.code == said[1]
    assert f"{error.line}:{error.column}".startswith(said[2])
    assert said[3] in error.message
    assert error.line is not None
    assert error.line <= text.count("\n") + 1
