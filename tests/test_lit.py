"""Runs the lit tests, one pytest test for each file."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
RUN_LIT = "from lit.main import main; main()"
# The corpus has launches in its comments instead: conformance/test_conformance.py.
FILES = sorted(file for file in ROOT.rglob("*.mlir") if "conformance" not in file.parts)


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_lit(file: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN_LIT, "-v", str(file)]
    environment = {"XETL_LIT_OUTPUT": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
