"""mlir-opt 22 takes what the conversion makes of the conformance suite."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import xetl

MLIR_OPT = shutil.which("mlir-opt-22")
CONFORMANCE = Path(__file__).parents[2] / "conformance"
MODULES = sorted(CONFORMANCE.glob("[sw]g_*.mlir"))

pytestmark = pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt-22 is not installed")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_mlir_opt_takes_it(path: Path) -> None:
    text = path.read_text("utf-8")
    library = xetl.load_mlir(text)
    for name in set(re.findall(r"// launch: (\S+)", text)):
        ours = library[name].ir("xegpu", backend="xegpu", target="pvc")
        taken = subprocess.run(
            [str(MLIR_OPT), "--allow-unregistered-dialect"],
            input=ours,
            capture_output=True,
            text=True,
            check=False,
        )
        assert taken.returncode == 0, taken.stderr
