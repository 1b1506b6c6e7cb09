"""What functions compute in place of instructions is what NumPy computes."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
from tests.other_processor import pretend_if_wanted
pretend_if_wanted()

import ml_dtypes
import numpy as np
from tests import software_instructions
from xetl import ops
from xetl_cpu.targets import find_target

made = []
compiled = software_instructions._compiled
software_instructions._compiled = lambda name, given: (
    made.append(name), compiled(name, given))[1]

rng = np.random.default_rng(3)
a = rng.integers(-9, 9, (33, 70)).astype(np.int8)
b = rng.integers(-9, 9, (70, 40)).astype(np.int8)
assert np.array_equal(ops.matmul(a, b), a.astype(int) @ b)
a, b = a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
wanted = (a.astype(float) @ b.astype(float)).astype(np.float32)
assert np.array_equal(ops.matmul(a, b), wanted.astype(ml_dtypes.bfloat16))
x = np.linspace(-8, 0, 64, dtype=np.float32).reshape(1, 64)
e = np.exp(x.astype(float))
np.testing.assert_allclose(ops.softmax(x, dim=1), e / e.sum(), rtol=1e-6)
print(find_target("host").has_amx, *sorted(made))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("avx512", "avx512.mask.scalef.ps.512 avx512.pmaddw.d.512"),
        ("avx512_bf16", "avx512.vpdpbusd.512 avx512bf16.dpbf16ps.512 round"),
        ("amx", "ldtilecfg tdpbf16ps tdpbssd tileloadd64 tilerelease tilestored64"),
    ],
)
def test_a_processor_by_software(name, wanted):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "XETL_TESTS_AS": name},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(name == "amx"))
    assert all(each in done.stdout for each in wanted.split()), done.stdout
