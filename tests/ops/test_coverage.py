"""Each function that is exported is documented, measured, and tested in every way."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.ops.function_cases import CASES
from xetl import ops

ROOT = Path(__file__).parents[2]
CALLED = {
    "adamw": "adamw_step",
    "argsort": "sort_with_indices",
    "conv1d": "conv2d",
    "dropout": "seeded_dropout",
    "sgd": "sgd_step",
    "sort": "sort_with_indices",
    "topk": "topk_with_indices",
}
"""The operator of torch behind a function, or the function that it is a case of."""

EXACT = {"sort", "argsort", "topk"}
"""Their derivatives are compared bit by bit: 64-bit numbers, which gradcheck asks for,
are refused."""

NO_OPERATOR = {"prepack"}


@cache
def documented() -> dict[str, str]:
    """What the table of docs/ops.md says about the derivative of each function."""
    found: dict[str, str] = {}
    for line in (ROOT / "docs/ops.md").read_text().splitlines():
        if line.startswith("| `"):
            cells = line.split(" | ")
            for name in re.findall(r"`(\w+)", cells[0]):
                found.setdefault(name, cells[2].strip())
    return found


@cache
def sources() -> list[str]:
    """The source of each test of a function."""
    found: list[str] = []
    for path in (ROOT / "tests/ops").glob("test_*.py"):
        text = path.read_text()
        functions = (x for x in ast.parse(text).body if isinstance(x, ast.FunctionDef))
        found += [ast.get_source_segment(text, each) or "" for each in functions]
    return found


def is_tested(name: str, how: str) -> bool:
    """Whether a case of all functions, or a test that says ``how``, is about it."""
    cases = [case for case in CASES if case.name == name]
    if any(case.smooth or how != "gradcheck" for case in cases):
        return True
    wanted = re.compile(rf"\b({name}|{CALLED.get(name, name)})\b")
    return any(wanted.search(text) and how in text for text in sources())


@pytest.mark.parametrize("name", ops.__all__)
def test_a_function_is_documented_measured_and_tested(name: str) -> None:
    derivative = documented().get(name)
    assert derivative is not None, "docs/ops.md has no row"
    assert getattr(ops, name).__doc__, "it has no docstring"
    files = [ROOT / f"benchmarks/ops_{part}.py" for part in ("functions", "composed")]
    rows = " ".join(path.read_text() for path in files)
    assert f'"{name}"' in rows, "benchmarks/ops.py has no row"
    assert is_tested(name, ""), "no test is about it"
    if name not in NO_OPERATOR:
        assert is_tested(name, "opcheck"), "no opcheck"
    if not derivative.startswith("no") and name not in EXACT:
        assert is_tested(name, "gradcheck"), "it has a derivative, but no gradcheck"
