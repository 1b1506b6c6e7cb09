"""Kernels of all kinds compile for both GPUs; what is planned is what is there."""

import ml_dtypes
import numpy as np
import pytest

from tests import example_kernels as family
from tests.backends.xegpu.offline.compiling import compiled, lanes_of
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from tests.example_kernels import Scalar
from xetl.runtime.executables import choose_target
from xetl_xegpu import BACKEND
from xetl_xegpu.emit import module as emission
from xetl_xegpu.offline.ocloc import need_ocloc, run

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)

BF16 = ml_dtypes.bfloat16


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def floats(count, *shape):
    return [zeros(*shape) for _ in range(count)]


CASES = {
    "gemm": [zeros(64, 64, dtype=BF16), zeros(64, 64, dtype=BF16), zeros(64, 64)],
    "gemm_bias_relu": [*floats(2, 64, 64), zeros(64), zeros(64, 64)],
    "gemm_transposed": floats(3, 64, 64),
    "batched": floats(3, 2, 64, 64),
    "elementwise": [*floats(3, 64, 64), Scalar(0.3, "f64")],
    "softmax": floats(2, 64, 70),
    "online_softmax": floats(2, 64, 70),
    "column_sums": [zeros(64, 64), zeros(1, 64)],
    "transpose": floats(2, 64, 64),
    "integers": [zeros(64, dtype=np.int32) for _ in range(3)],
    "gather_rows": [zeros(64), zeros(64, dtype=np.int32), zeros(64)],
    "layer_norm": [zeros(64, 40), *floats(2, 40), zeros(64, 40), Scalar(1e-5, "f64")],
    "attention": [*floats(4, 64, 24), Scalar(0.2, "f64")],
    "in_place_scan": floats(1, 16, 16),
    "integer_gemm": [zeros(64, 64, dtype=np.int8)] * 2 + [zeros(64, 64, dtype="i4")],
    "double_gemm": [zeros(64, 64, dtype=np.float64) for _ in range(3)],
    "mma_of_values": floats(3, 64, 64),
    "outer_product": [zeros(64), zeros(64), zeros(64, 64)],
    "nested_loops": floats(2, 64, 64),
    "swapped_tiles": [*floats(3, 64, 64), Scalar(3, "i64")],
    "shared_memory": floats(2, 64, 64),
}


@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_called_and_messages_are_those_planned(name, target):
    module = lanes_of(getattr(family, name), CASES[name], target)
    seen = compiled(module, target)
    assert name in seen
    for kernel in seen.values():
        assert kernel.counts.calls == 0
        assert kernel.found == kernel.planned
        assert kernel.facts.simd == 16


@pytest.mark.parametrize(("name", "device"), [("lnl", "lnl-m"), ("ptl", "ptl-h")])
def test_later_gpus_take_the_code_of_battlemage(name, device, tmp_path):
    target = choose_target(BACKEND, name)
    assert target == "bmg"
    spirv = emission.emit(lanes_of(family.gemm, CASES["gemm"], target), target).spirv
    (tmp_path / "k.spv").write_bytes(spirv)
    words = ["compile", "-spirv_input", "-file", "k.spv", "-device", device]
    assert run([need_ocloc(), *words], tmp_path).returncode == 0
