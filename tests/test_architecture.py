"""docs/architecture.md is what its script writes; its lines are short."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_is_current() -> None:
    spec = spec_from_file_location("architecture", DOCS / "architecture.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    text = (DOCS / "architecture.md").read_text("utf-8")
    assert text == script.page(), "run `python docs/architecture.py`"
    assert max(map(len, text.splitlines())) <= 110
