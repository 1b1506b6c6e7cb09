"""Passes for products are loaded for modules that have some."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
import numpy as np
from xetl import ops

LATE = ("lowering.pack_operands", "lowering.raise_to_brgemm", "microkernels.gemm")

def loaded():
    return [each for each in LATE if f"xetl_cpu.{each}" in sys.modules]

X = np.ones((16, 64), np.float32)
ops.softmax(X, 1)
print(loaded())
ops.matmul(X, X.T)
print(loaded() == list(LATE))
"""


def test_products_load_their_passes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env={"PYTHONPATH": ":".join(sys.path), "XETL_CACHE": "0"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.split() == ["[]", "True"]
