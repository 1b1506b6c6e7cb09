"""A second opinion: mlir-opt 22 reads what we print, and we read what it prints."""

import shutil
import subprocess
from pathlib import Path

import pytest

from xetl.dialects.parser import parse_module
from xetl.dialects.verify import verify

MLIR_OPT = shutil.which("mlir-opt-22") or shutil.which("mlir-opt")
DIALECTS = ("arith", "math", "scf", "gpu", "memref", "vector", "index", "cf_func")

pytestmark = pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt is not installed")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_text_is_mlirs(dialect: str) -> None:
    ours = parse_module((Path(__file__).parent / f"{dialect}.mlir").read_text())
    assert MLIR_OPT is not None
    done = subprocess.run(
        [MLIR_OPT, "-"], input=str(ours), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    theirs = parse_module(done.stdout)
    verify(theirs)
    assert ours.is_structurally_equivalent(theirs)
