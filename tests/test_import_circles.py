"""Each module can be imported first: no circle of imports runs when modules load.

A circle that another order of imports hides fails on a stranger's machine only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TREES = (ROOT, *(ROOT / "backends" / name for name in ("cpu", "reference", "xegpu")))
Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """All modules of the product by name."""
    found: dict[str, Path] = {}
    for tree in TREES:
        for package in tree.glob("xetl*"):
            for file in package.rglob("*.py"):
                parts = file.relative_to(tree).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                found[name] = file
    return found


def statements(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a module loads."""
    for each in body:
        if isinstance(each, ast.Import | ast.ImportFrom):
            yield each
        elif isinstance(each, ast.If):
            is_for_checkers = "TYPE_CHECKING" in ast.unparse(each.test)
            yield from statements(each.orelse if is_for_checkers else each.body)
        elif isinstance(each, ast.Try):
            yield from statements(each.body)


def named(statement: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    """What a statement imports; ``a.b`` of ``from a import b`` may be no module."""
    if isinstance(statement, ast.Import):
        yield from (each.name for each in statement.names)
        return
    start = statement.module or ""
    if statement.level:
        parts = package.split(".")
        parts = parts[: len(parts) - statement.level + 1]
        start = ".".join([*parts, *filter(None, [statement.module])])
    for each in statement.names:
        yield f"{start}.{each.name}"


def needs(name: str, file: Path, known: dict[str, Path]) -> set[str]:
    """The modules that load before one: what it imports, and the packages of these."""
    package = name if file.stem == "__init__" else name.rpartition(".")[0]
    around = {name[: i.start()] for i in dots(name)} | {name}
    found: set[str] = set()
    for statement in statements(ast.parse(file.read_text("utf-8")).body):
        for wanted in named(statement, package):
            module = wanted if wanted in known else wanted.rpartition(".")[0]
            packages = {module[: i.start()] for i in dots(module)} - around
            found |= {module, *packages} & known.keys()
    return found - {name}


def dots(name: str) -> Iterator[re.Match[str]]:
    return re.finditer(r"\.", name)


def circles(graph: Graph) -> list[str]:
    """What is left when modules that need nothing are taken away, again and again."""
    left = {name: set(needed) for name, needed in graph.items()}
    while free := [name for name, needed in left.items() if not needed & left.keys()]:
        for name in free:
            del left[name]
    used = {each for needed in left.values() for each in needed}
    return sorted(name for name in left if name in used)


def test_no_circle_of_imports() -> None:
    known = modules()
    assert len(known) > 300
    graph = {name: needs(name, file, known) for name, file in known.items()}
    assert circles(graph) == []


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c"]
