"""Every code an error can carry has a page, and every page belongs to a code."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from xetl import errors

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "errors"
CODE = re.compile(r"X\d{4}")
CLASSES = {
    name: cls
    for name, cls in vars(errors).items()
    if inspect.isclass(cls) and issubclass(cls, errors.XetlError)
}
TREES = {
    path: ast.parse(path.read_text())
    for folder in ("xetl", "backends")
    for path in sorted((ROOT / folder).rglob("*.py"))
}


def literal_codes() -> set[str]:
    """Codes that stand in the sources as a text of their own."""
    return {
        node.value
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and CODE.fullmatch(node.value)
    }


def errors_without_code() -> list[tuple[Path, int, str]]:
    """Where an error is made that takes the code of its family."""
    return [
        (path, node.lineno, node.func.id)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in CLASSES
        and not any(keyword.arg in ("code", None) for keyword in node.keywords)
    ]


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    general = {f"{CLASSES[name].family}00" for _, _, name in errors_without_code()}
    pages = {path.stem for path in PAGES.glob("*.md")}
    assert literal_codes() | general == pages


def test_only_errors_of_ours_may_lack_a_code_of_their_own() -> None:
    found = [each for each in errors_without_code() if each[2] != "InternalError"]
    assert not found


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda p: p.stem)
def test_a_page_says_what_it_is_about(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert re.fullmatch(rf"# {path.stem}: \S.*[^.]", lines[0])
    assert any(line.strip() for line in lines[1:])
    assert sum(line.startswith("```") for line in lines) % 2 == 0
    assert len(lines) <= 40
