"""A second opinion: mlir-opt 22 reads what we print, and we read what it prints."""

import shutil
import subprocess

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.backends.xegpu.dialect.test_xegpu_dialect import parse
from tests.backends.xegpu.dialect.xegpu_forms import FORMS

MLIR_OPT = shutil.which("mlir-opt-22")

pytestmark = pytest.mark.skipif(
    MLIR_OPT is None, reason="mlir-opt-22 is not installed (apt install mlir-22-tools)"
)


def mlir_opt(module: ModuleOp, *options: str) -> ModuleOp:
    assert MLIR_OPT is not None
    done = subprocess.run(
        [MLIR_OPT, "-", *options],
        input=str(module),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


@pytest.mark.parametrize("form", FORMS)
def test_text_is_mlirs(form: str) -> None:
    ours = parse(FORMS[form])
    assert ours.is_structurally_equivalent(mlir_opt(ours))


# MLIR's generic form of `gpu.func` also says that it has no buffers.
@pytest.mark.parametrize("form", [form for form in FORMS if form != "blocks"])
def test_properties_are_mlirs(form: str) -> None:
    ours = parse(FORMS[form])
    theirs = mlir_opt(ours, "--mlir-print-op-generic")
    assert ours.is_structurally_equivalent(theirs)
