"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (".py", ".c", ".h", ".cpp", ".mlir", ".cmake")
LIMIT = 500
"""Lines of a file; functions have the limits of ruff (pyproject.toml)."""


def tracked() -> list[Path]:
    """What git knows; outside of a checkout, everything in the two trees and tests."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0 and listed.stdout:
        files = [ROOT / name for name in listed.stdout.splitlines()]
        return [file for file in files if file.is_file()]
    folders = [ROOT / name for name in ("xetl", "backends", "tests", "tutorials")]
    return [file for folder in folders for file in folder.rglob("*") if file.is_file()]


def passes() -> list[Path]:
    trees = (ROOT / "xetl", ROOT / "backends")
    files = [file for tree in trees for file in tree.rglob("*.py")]
    return sorted(file for file in files if "Pass(Pass)" in file.read_text("utf-8"))


def test_no_file_is_long() -> None:
    found = [file for file in tracked() if file.suffix in SOURCES]
    assert len(found) > 100
    lines = {file: len(file.read_text("utf-8").splitlines()) for file in found}
    long = [f"{f.relative_to(ROOT)}: {n}" for f, n in lines.items() if n > LIMIT]
    assert not long


def test_lines_of_pages_are_short() -> None:
    """Outside of tables and code, at most 110 characters, but for single words."""
    found: list[str] = []
    for file in (file for file in tracked() if file.suffix == ".md"):
        is_code = False
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            text = line.strip()
            is_code ^= text.startswith("```")
            if len(line) > 110 and " " in text and not is_code and text[0] != "|":
                found.append(f"{file.relative_to(ROOT)}:{number}")
    assert not found


def test_files_that_documents_name_are_there() -> None:
    files = "\n".join(str(each.relative_to(ROOT)) for each in tracked())
    made = (".venv/", "build/", "benchmarks/results/")
    named = {
        (name, page.name)
        for page in tracked()
        if page.suffix == ".md"
        for name in re.findall(r"`([\w./-]+)`", page.read_text("utf-8"))
        if re.search(r"\w/[a-z]|\w/$|[a-z_]\.py$", name) and not name.startswith(made)
    }
    assert len(named) > 100
    assert sorted(each for each in named if each[0].strip("/") not in files) == []


def module_name(file: Path) -> str:
    return file.parent.name if file.stem == "__init__" else file.stem


@pytest.mark.parametrize("file", passes(), ids=module_name)
def test_each_pass_is_a_module_with_a_lit_test_of_its_name(file: Path) -> None:
    text = file.read_text("utf-8")
    (words,) = re.findall(r"^class (\w+)Pass\(Pass\)", text, re.MULTILINE)
    name = re.sub("(?<=[a-z])(?=[A-Z])", "-", words).lower()
    assert name == module_name(file).replace("_", "-")
    tests = list((ROOT / "tests").rglob(f"{module_name(file)}.mlir"))
    assert len(tests) == 1
    run = tests[0].read_text("utf-8").splitlines()[0]
    assert re.search(rf"// RUN: xetl-opt .*\b{name}\b.*\| filecheck", run)


UNDOCUMENTED = ("parse", "parse_parameters", "print", "print_parameters", "rewrite")
"""With what verifies, the methods of xDSL that passes and dialects override."""


def undocumented(file: Path) -> list[str]:
    """The public classes and methods that ruff would ask a docstring of, but these."""
    classes = [
        each
        for each in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(each, ast.ClassDef) and not each.name.startswith("_")
    ]
    inside = [each for one in classes for each in one.body]
    methods = [each for each in inside if isinstance(each, ast.FunctionDef)]
    of_xdsl = re.compile(rf"_.*|verify_?|match_and_rewrite|{'|'.join(UNDOCUMENTED)}")
    return [
        f"{file}:{each.lineno}"
        for each in (*classes, *methods)
        if ast.get_docstring(each) is None
        and not of_xdsl.fullmatch(each.name)
        and not (isinstance(each, ast.ClassDef) and each.name.endswith("Pass"))
    ]


def test_passes_and_methods_of_xdsl_alone_have_no_docstring() -> None:
    cpu, xegpu = ROOT / "backends/cpu/xetl_cpu", ROOT / "backends/xegpu/xetl_xegpu"
    folders = [ROOT / "xetl/dialects", ROOT / "xetl/transforms", cpu / "lowering"]
    folders += [xegpu / name for name in ("dialect", "simt", "lowering")]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    missing = [
        each for file in (*files, cpu / "dialect.py") for each in undocumented(file)
    ]
    assert not missing


def test_each_folder_of_passes_is_named_as_its_pass() -> None:
    folders = [each for each in (ROOT / "xetl/transforms").iterdir() if each.is_dir()]
    names = {each.name for each in folders if (each / "__init__.py").is_file()}
    assert names <= {module_name(file) for file in passes()}


def test_the_index_names_every_folder() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    packages = {
        file.relative_to(ROOT).parts[:2]
        for file in tracked()
        if file.relative_to(ROOT).parts[0] in ("xetl", "backends")
        and len(file.relative_to(ROOT).parts) > 2
    }
    tops = {
        (file.relative_to(ROOT).parts[0],)
        for file in tracked()
        if len(file.relative_to(ROOT).parts) > 1
        and not file.relative_to(ROOT).parts[0].startswith(".")
    }
    names = {"/".join(parts) + "/" for parts in packages | tops}
    missing = sorted(name for name in names if f"`{name}" not in index)
    assert not missing


@pytest.mark.parametrize("backend", ["cpu", "xegpu", "reference"])
def test_no_two_files_of_a_backend_have_one_name(backend: str) -> None:
    tree = ROOT / "backends" / backend
    files = [f for f in tracked() if f.suffix == ".py" and f.is_relative_to(tree)]
    names = [file.name for file in files if file.name != "__init__.py"]
    assert len(names) > 10
    assert len(names) == len(set(names))
