"""The examples of the pages that show code run, each in a file of its own."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from xetl import xetile

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("language.md", "migration.md")
_BLOCK = re.compile(r"^```python *(setup)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples() -> list[object]:
    """Page, first line, and the code with the page's setup before it."""
    found: list[object] = []
    for page in PAGES:
        text = (DOCS / page).read_text()
        setup = ""
        for block in _BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            if block[1]:
                setup = block[2]
            else:
                found.append(pytest.param(setup + block[2], id=f"{page}:{line}"))
    return found


@pytest.mark.parametrize("code", examples())
def test_it_runs(code: str, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(code)
    runpy.run_path(str(path))


def test_the_page_names_every_operation() -> None:
    words = set(re.findall(r"\w+", (DOCS / "language.md").read_text()))
    assert set(xetile.__all__) <= words
