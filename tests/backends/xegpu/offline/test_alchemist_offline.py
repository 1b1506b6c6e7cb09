"""GPUs without fp64 (Alchemist): what is compiled for them has none, in any kernel."""

import numpy as np
import pytest

from tests import example_kernels as family
from tests.backends.xegpu.offline.compiling import lanes_of
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from tests.backends.xegpu.offline.test_family_offline import CASES
from tests.backends.xegpu.spirv_tools import validate
from xetl_xegpu.emit import module as emission
from xetl_xegpu.offline.ocloc import need_ocloc, run

TARGET = "opencl_fp32"


def is_wide(arg) -> bool:
    return isinstance(arg, np.ndarray) and arg.dtype == np.float64


NARROW = sorted(name for name, args in CASES.items() if not any(map(is_wide, args)))


def lanes(name: str, target: str):
    return lanes_of(getattr(family, name), CASES[name], target)


@pytest.mark.parametrize("name", NARROW)
def test_no_kernel_asks_for_f64(name: str) -> None:
    assert "Capability Float64" not in emission.spirv_text(lanes(name, TARGET), TARGET)


@pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
@pytest.mark.parametrize("name", ["elementwise", "layer_norm", "attention"])
def test_the_compiler_for_alchemist_takes_it(name: str, tmp_path) -> None:
    """It takes nothing that says f64, so these say none: they have scalar floats."""
    words = ["compile", "-spirv_input", "-file", "k.spv", "-device", "dg2-g10"]
    for target in (TARGET, "opencl"):
        spirv = emission.emit(lanes(name, target), target).spirv
        assert validate(spirv) is None
        (tmp_path / "k.spv").write_bytes(spirv)
        done = run([need_ocloc(), *words, "-output", "k"], tmp_path)
        if target == TARGET:
            assert done.returncode == 0, done.stdout
        else:
            assert "Double type is not supported" in done.stdout
