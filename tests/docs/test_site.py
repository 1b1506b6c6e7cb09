"""`make docs` makes the site without a warning; a cell that fails is named."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "site"


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [v or "" for k, v in attrs if k in ("href", "src")]


@pytest.mark.slow
def test_the_site_is_made(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the extra `docs` is not installed")
    copy = tmp_path / "project"
    left_out = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=left_out)
    options = ["-q", "-E", "-W", "--keep-going", "-c", "docs/site"]
    sphinx = ["-m", "sphinx", *options, "build/docs", "build/site"]
    for words in (["docs/site/gather.py"], sphinx):
        command = [sys.executable, *words]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    site = copy / "build" / "site"
    assert (site / "search.html").exists()
    assert list((site / "_images").glob("*.png"))
    for page in site.rglob("*.html"):
        parser = _Links()
        parser.feed(page.read_text())
        for link in parser.found:
            path, _, _ = link.partition("#")
            path = path.partition("?")[0]
            if path and ":" not in path:
                assert (page.parent / path).exists(), f"{page.name}: {link}"
        others = [each for each in parser.found if each.startswith("http")]
        assert all("//" not in each or ".js" not in each for each in others), page


def test_a_cell_that_fails_is_named(tmp_path: Path) -> None:
    script = tmp_path / "t.py"
    script.write_text("x = 1\n# %%\nprint(x)\n# %%\n\nassert x == 2\n")
    spec = importlib.util.spec_from_file_location("gather", SITE / "gather.py")
    assert spec is not None
    assert spec.loader is not None
    gather = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gather)
    with pytest.raises(SystemExit, match=r"t.py: cell 2, line 6: AssertionError"):
        gather.run(script, tmp_path)
    script.write_text(script.read_text().replace("2", "1"))
    assert json.dumps(gather.run(script, tmp_path)) == '["", "1\\n", ""]'
