"""`make docs` makes the site without a warning; a cell that fails is named."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

from xetl.backend import find_backend
from xetl.pipeline import common_passes

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
    for words in (["docs/site/gather.py", "--quick"], sphinx):
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


@pytest.fixture
def gather(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SITE))
    return importlib.import_module("gather")


def test_each_page_of_docs_is_in_a_list_of_the_site(gather: Any) -> None:
    listed = {page for pages in gather.PAGES.values() for page in pages}
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")}
    assert pages - set(gather.FROM.values()) <= {f"docs/{page}.md" for page in listed}


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_docs_runs_the_snippets_before_it_makes_the_site() -> None:
    command = ["make", "--dry-run", "--assume-old=.venv/.test", "docs"]
    # Under `make test`, make would take over its settings and name its folder.
    alone = {name: os.environ[name] for name in os.environ if "MAKE" not in name}
    run = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, check=True)
    said = run.stdout.decode().splitlines()
    snippets, *rest = [line.split() for line in said if "/" in line]
    assert snippets[1:5] == ["-m", "pytest", "-q", "-n0"]
    files = {
        "tests/test_readme.py",
        "tests/docs/test_language_examples.py",
        "tests/docs/test_ops_page.py",
    }
    assert set(snippets[5:]) == files
    assert all((ROOT / each).exists() for each in files)
    assert "docs/site/gather.py" in rest[0]
    assert rest[1][0].endswith("sphinx-build")
    assert "-W" in rest[1]


def test_documentation_of_passes_is_prose_and_examples(
    gather: Any,
) -> None:
    text = """Merge operations.

*What*: one of two, as
``a`` is ``b``.
*Why*: shorter.

before: ``%a = f``
after:  %b = g
"""
    assert gather.design.as_markdown(text) == (
        "Merge operations.\n\n*What*: one of two, as\n`a` is `b`.\n\n"
        "*Why*: shorter.\n\n```text\nbefore: %a = f\nafter:  %b = g\n```"
    )


def test_a_cell_that_fails_is_named(tmp_path: Path, gather: Any) -> None:
    script = tmp_path / "t.py"
    script.write_text("x = 1\n# %%\nprint(x)\n# %%\n\nassert x == 2\n")
    with pytest.raises(SystemExit, match=r"t.py: cell 2, line 6: AssertionError"):
        gather.run(script, tmp_path)
    script.write_text(script.read_text().replace("2", "1"))
    assert json.dumps(gather.run(script, tmp_path)) == '["", "1\\n", ""]'


def test_a_picture_that_is_not_drawn_is_named(
    tmp_path: Path, gather: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "SOURCE", tmp_path)
    (tmp_path / "tutorials").mkdir()
    script = tmp_path / "t.py"
    text = '"""00  T.  You will: draw."""\n# %%\n{}\n# %%\n# savefig("t.png")\n'
    script.write_text(text.format(""))
    with pytest.raises(SystemExit, match=r"t\.py: t\.png was not drawn"):
        gather.tutorial(script)
    script.write_text(text.format("raise SystemExit(0)"))
    gather.tutorial(script)  # what it needs is not installed
    assert "t.png)" not in (tmp_path / "tutorials" / "t.md").read_text()
    script.write_text(text.format("open('t.png', 'w')"))
    gather.tutorial(script)
    assert "](t.png)" in (tmp_path / "tutorials" / "t.md").read_text()


def test_a_missing_docstring_is_named(
    gather: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("pages")
    exec("def told():\n    'Does.'\ndef untold(): ...", vars(module))
    monkeypatch.setitem(sys.modules, "pages", module)
    monkeypatch.setattr(gather, "API", {"Pages": "pages"})
    with pytest.raises(SystemExit, match=r"without a docstring: pages\.untold$"):
        gather.api()


def test_a_picture_without_its_section_is_named(gather: Any) -> None:
    page = "## 1. One\nWords,\nwords.\n{}\nMore.\n"
    shown = gather.illustrated(page.format(""), {"1.": "![x](y)\n"})
    assert shown == page.format("\n![x](y)\n")
    with pytest.raises(SystemExit, match=r"no section 2\. for a picture"):
        gather.illustrated("## 1. One\n", {"2.": "![x](y)"})


def test_tables_are_whole() -> None:
    """A table has a head, and ends with an empty line, or the site shows other rows."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    code = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
    last = re.compile(r"^\|.*\n(?!\||\n|\Z)", re.MULTILINE)
    first = re.compile(r"\n\n\|.*\n(?!\|[-:| ]+\n)")
    texts = {page.name: code.sub("", page.read_text("utf-8")) for page in pages}
    assert [p for p, text in texts.items() if last.search(text)] == []
    assert [p for p, text in texts.items() if first.search(text)] == []


def test_each_group_of_operations_has_a_picture(gather: Any, tmp_path: Path) -> None:
    shown = gather.figures.write(tmp_path / "figures")
    text = gather.illustrated((ROOT / "docs" / "language.md").read_text(), shown)
    assert text.count("](figures/") == 10
    for path in (tmp_path / "figures").iterdir():
        assert ElementTree.fromstring(path.read_text()).tag.endswith("svg")


def test_each_pass_is_shown(gather: Any) -> None:
    page = gather.design.passes_page()
    for name, target in gather.design.TARGETS.items():
        backend = find_backend(name)
        for each in [*common_passes(backend, target), *backend.passes(target)]:
            assert f"### `{each.name}`" in page
            file = each.name.replace("-", "_")
            assert f"/{file}.py`" in page or f"/{file}/__init__.py`" in page
    assert ElementTree.fromstring(gather.design.chart()).tag.endswith("svg")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["[x](nowhere.md)", "![x](nowhere.png)", "[x](#nowhere)"]
)
def test_a_bad_link_or_picture_fails(text: str, tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the extra `docs` is not installed")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text(f"# A page\n\n{text}\n")
    words = ["-m", "sphinx", "-q", "-W", "--keep-going", "-c", SITE, "pages", "site"]
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "index.md:3" in done.stderr
    assert "nowhere" in done.stderr
