"""docs/ops.md: its examples run, and its table names what is exported."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from xetl import ops

TEXT = (Path(__file__).parents[2] / "docs" / "ops.md").read_text("utf-8")


def test_the_examples_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    blocks = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    file = tmp_path / "examples.py"
    file.write_text("\n".join(blocks))
    runpy.run_path(str(file))


def test_each_function_is_in_the_table() -> None:
    table = TEXT[: TEXT.index("**Dtypes.**")]
    missing = [name for name in ops.__all__ if not re.search(rf"`{name}\b", table)]
    assert not missing
