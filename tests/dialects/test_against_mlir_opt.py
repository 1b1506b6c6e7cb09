"""A second opinion: mlir-opt 22 reads what we print, and we read what it prints."""

import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.printer import Printer
from xdsl.traits import IsTerminator

from xetl.dialects.parser import parse_module
from xetl.dialects.verify import verify

MLIR_OPT = shutil.which("mlir-opt-22") or shutil.which("mlir-opt")
DIALECTS = (
    *("arith", "math", "scf", "gpu", "memref", "vector", "index", "cf_func"),
    "seldom",
)

pytestmark = pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt is not installed")


def mlir_opt(module: ModuleOp, *options: str, generic: bool = False) -> ModuleOp:
    assert MLIR_OPT is not None
    text = StringIO()
    Printer(text, print_generic_format=generic).print_op(module)
    done = subprocess.run(
        [MLIR_OPT, "-", *options],
        input=text.getvalue(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    theirs = parse_module(done.stdout)
    verify(theirs)
    return theirs


@pytest.mark.parametrize("dialect", DIALECTS)
def test_text_is_mlirs(dialect: str) -> None:
    ours = parse_module((Path(__file__).parent / f"{dialect}.mlir").read_text())
    assert ours.is_structurally_equivalent(mlir_opt(ours))


# MLIR writes some defaults out: of gpu.func how many of no buffers are the workgroup's,
# of an outer product that it is added, of poison that it is.
@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d not in ("gpu", "seldom")])
def test_properties_are_mlirs(dialect: str) -> None:
    ours = parse_module((Path(__file__).parent / f"{dialect}.mlir").read_text())
    theirs = mlir_opt(ours, "--mlir-print-op-generic")
    assert ours.is_structurally_equivalent(theirs)


# Of gpu.func mlir-opt wants the name elsewhere in generic form.
@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d != "gpu"])
def test_attributes_stand_where_mlir_prints_them(dialect: str) -> None:
    ours = parse_module((Path(__file__).parent / f"{dialect}.mlir").read_text())
    for op in ours.walk():
        if op is not ours:
            op.attributes.setdefault("note", UnitAttr())
    theirs = mlir_opt(ours, generic=True)
    shown = [op for op in theirs.walk() if not op.has_trait(IsTerminator)]
    assert all("note" in op.attributes for op in shown if op is not theirs)
