"""Runs the lit tests, one pytest test for each file.

Nearly all are pipes of `xetl-opt` and `filecheck`. Starting these two costs ten times
what they do, so they are called in this process; files with anything else go to lit.
"""

import contextlib
import io
import re
import subprocess
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser
from lit.ShUtil import ShParser

from xetl.tools import xetl_opt

ROOT = Path(__file__).parent
RUN_LIT = "from lit.main import main; main()"
# The corpus has launches in its comments instead: conformance/test_conformance.py.
FILES = sorted(file for file in ROOT.rglob("*.mlir") if "conformance" not in file.parts)
RUN = re.compile(r"^\s*//\s*RUN:(.*)$", re.MULTILINE)
FOR_LIT = re.compile(
    r"\b(?:REQUIRES|UNSUPPORTED|XFAIL|DEFINE|ALLOW_RETRIES):|RUN:.*\\$"
)

Pipe = list[list[str]]
"""Commands with their arguments; each reads what the one before it prints."""


def pipes(file: Path) -> list[Pipe] | None:
    """What the RUN lines of a file say; None if only lit can run them."""
    text = file.read_text("utf-8")
    if FOR_LIT.search(text):
        return None
    found = []
    for line in RUN.findall(text):
        parsed = ShParser(line.strip(), pipefail=True).parse()
        commands = getattr(parsed, "commands", ())
        pipe = [
            [str(file) if word == "%s" else word for word in command.args]
            for command in commands
        ]
        plain = pipe and not any(command.redirects for command in commands)
        names = [words[0] for words in pipe]
        if not plain or names[-1] != "filecheck" or {*names[:-1]} != {"xetl-opt"}:
            return None
        found.append(pipe)
    return found


def run_pipe(pipe: Pipe) -> str:
    """Run a pipe in this process; what it complains of, empty if it succeeds."""
    text = ""
    for command, *arguments in pipe:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            call = run_filecheck if command == "filecheck" else run_xetl_opt
            status, text = call(arguments, text)
        if status:
            return f"{command} {' '.join(arguments)}\n{errors.getvalue()}{status}"
    return ""


def run_xetl_opt(arguments: list[str], text: str) -> tuple[int | str, str]:
    printed = io.StringIO()
    with (
        contextlib.redirect_stdout(printed),
        patch("sys.stdin", io.StringIO(text)),
        warnings.catch_warnings(record=True),
    ):
        warnings.simplefilter("default")  # for pytest, they are errors
        try:
            status = xetl_opt.main(arguments)
        except SystemExit as left:
            status = left.code or 0
    return status, printed.getvalue()


def run_filecheck(arguments: list[str], text: str) -> tuple[int | str, str]:
    options = parse_argv_options(["filecheck", *arguments])
    checked = FInput("-", FInput.canonicalize_line_ends(text))
    return Matcher(options, checked, Parser.from_opts(options)).run(), ""


def run_lit(file: Path, output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN_LIT, "-v", str(file)]
    environment = {"XETL_LIT_OUTPUT": str(output), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False
    )


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_lit(file: Path, tmp_path: Path) -> None:
    found = pipes(file)
    assert found != [], "there is no RUN line"
    if found is None:
        done = run_lit(file, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return
    for pipe in found:
        complaint = run_pipe(pipe)
        assert not complaint, complaint


def test_lit_itself_runs_a_file(tmp_path: Path) -> None:
    done = run_lit(ROOT / "transforms" / "cse.mlir", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


WRONG = {
    "check": "// RUN: xetl-opt %s | filecheck %s\n// CHECK: no such line",
    "status": "// RUN: xetl-opt %s | filecheck %s --allow-empty\n// CHECK-NOT: x\n?",
    "no check": "// RUN: xetl-opt %s | filecheck %s",
    "later": "// RUN: xetl-opt %s | filecheck %s\n"
    "// RUN: xetl-opt %s | filecheck %s --check-prefix=B\n"
    "// CHECK: module\n// B: no such line",
    "pass": "// RUN: xetl-opt %s -p no-such-pass | filecheck %s\n// CHECK: module",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_wrong_files_fail(text: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.mlir"
    file.write_text(text)
    found = pipes(file)
    assert found
    assert run_pipe(found[-1])


@pytest.mark.parametrize(
    "line",
    [
        "RUN: not xetl-opt %s | filecheck %s",
        "RUN: xetl-opt %s 2>&1 | filecheck %s",
        "RUN: xetl-opt %s && xetl-opt %s | filecheck %s",
        "RUN: xetl-opt %s | cat",
        "REQUIRES: it",
    ],
)
def test_other_commands_are_left_to_lit(line: str, tmp_path: Path) -> None:
    file = tmp_path / "other.mlir"
    file.write_text(f"// {line}\n")
    assert pipes(file) is None


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, why in (("nowhere", "No such file"), ("binary", "is no text in UTF-8")):
        status, _ = run_xetl_opt([str(tmp_path / name)], "")
        assert f"{name}` cannot be read: " in str(status)
        assert why in str(status)
