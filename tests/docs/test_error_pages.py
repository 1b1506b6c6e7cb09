"""Every code an error can carry has a page, and every page belongs to a code."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from functools import cache
from pathlib import Path
from runpy import run_path

import numpy as np
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


@cache
def trees() -> dict[Path, ast.Module]:
    """All sources, parsed: two seconds, which only these tests are to take."""
    return {
        path: ast.parse(path.read_text())
        for folder in ("xetl", "backends")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def literal_codes() -> set[str]:
    """Codes that stand in the sources as a text of their own."""
    return {
        node.value
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and CODE.fullmatch(node.value)
    }


def errors_without_code() -> list[tuple[Path, int, str]]:
    """Where an error is made that takes the code of its family."""
    return [
        (path, node.lineno, node.func.id)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in CLASSES
        and len(node.args) < 2
        and not any(keyword.arg in ("code", None) for keyword in node.keywords)
    ]


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    general = {f"{CLASSES[name].family}00" for _, _, name in errors_without_code()}
    pages = {path.stem for path in PAGES.glob("*.md")}
    assert literal_codes() | general == pages


def test_only_errors_of_ours_may_lack_a_code_of_their_own() -> None:
    found = [each for each in errors_without_code() if each[2] != "InternalError"]
    assert not found


KERNEL = """\
import numpy as np
import xetl
from xetl import xetile
from xetl.xetile import bf16, constexpr, f16, f32, i32

def plain_helper(v):
    return v

@xetile.function
def endless(v):
    return endless(v)

@xetile.kernel(grid=1)
def k(X, A, n: int, BM: constexpr = 4):
    t = xetile.init_tile(X, [0, 0], (8, 4))
    v = xetile.load_tile(t)
"""
BEFORE = {
    "X0201": "a = xetile.zeros((32, 64)); acc = b = xetile.zeros((32, 128))",
    "X0202": "a, b = xetile.zeros((32, 64)), xetile.zeros((16, 64))",
    "X0205": "a = xetile.zeros((4, 4))",
    "X0206": "X = A",
    "X0208": "t = xetile.init_tile(X, [0, 0], (4, 8))",
    "X0210": "v = xetile.zeros((8,))",
    "X0302": "a, b = v.to(f16), v.to(bf16)",
    "X0306": "t = xetile.init_tile(X[0], xetile.arange(4))",
    "X0311": "acc = v.to(bf16)",
    "X0312": "v = v.to(f16); t = xetile.init_tile(A[0], [0, 0], (8, 4))",
    "X0314": "a, b = v.to(f16), xetile.zeros((4, 8))",
    "X0315": "i = 3",
    "X0505": "A, B = X, X",
}
"""Lines before an example that needs more than the kernel has."""

ELSEWHERE = {"X0108", "X0401", "X0405", "X0408", "X0506", "X0609", "X0611", "X0612"}
"""Examples that are no lines of that kernel."""


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(PAGES.glob("X0[1-6]*.md")) if p.stem not in ELSEWHERE],
    ids=lambda p: p.stem,
)
def test_an_example_of_a_kernel_has_this_error(path: Path, tmp_path: Path) -> None:
    example = path.read_text().split("```python\n")[1].split("```")[0]
    lines = f"{BEFORE.get(path.stem, '')}\n{example}"
    file = tmp_path / "example.py"
    file.write_text(KERNEL + textwrap.indent(lines, "    "))
    kernel = run_path(str(file))["k"]
    x, a = np.zeros((8, 8), np.float32), np.zeros((2, 8, 4), np.float16)
    with pytest.raises(errors.CompileError) as caught:
        kernel(x, a, 3, backend="reference")
    assert caught.value.code == path.stem


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda p: p.stem)
def test_a_page_says_what_it_is_about(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert re.fullmatch(rf"# {path.stem}: \S.*[^.]", lines[0])
    assert any(line.strip() for line in lines[1:])
    assert sum(line.startswith("```") for line in lines) % 2 == 0
    assert len(lines) <= 40
