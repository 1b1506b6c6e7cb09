"""Seed 003's road, from `linalg.matmul` on: after each pass the product is NumPy's."""

import ml_dtypes
import numpy as np
import pytest
from xsmm_meaning import CALLS

from tests.run_module import run_module
from xetl.backend import find_backend
from xetl.dialects.parser import make_context, parse_module
from xetl.dialects.verify import verify

CPU = find_backend("cpu")
ROAD = (
    ("pack-operands", {"blocks": (16, 32, 8)}),
    ("raise-to-brgemm", {}),
    ("convert-forall-to-parallel", {}),
    ("tile-parallel-loops", {"sizes": (2, 3)}),
    ("insert-amx-config", {}),
    ("hoist-dispatch", {}),
    ("hoist-amx-config", {}),
)
FIRST_THAT_RUNS = 3
"""Passes before there are only loops and operations that the table knows."""

TEXT = """
func.func @entry(%a: memref<48x24x{0}>, %b: memref<24x64x{0}>, %c: memref<48x64x{0}>) {{
  linalg.matmul ins(%a, %b : memref<48x24x{0}>, memref<24x64x{0}>)
                outs(%c : memref<48x64x{0}>)
  func.return
}}
"""


def lowered(element, count):
    context = make_context(CPU.opt_dialects())
    module = parse_module(TEXT.format(element), context=context)
    for name, options in ROAD[:count]:
        CPU.opt_passes()[name](**options).apply(context, module)
        verify(module)
    return module


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("count", range(FIRST_THAT_RUNS, len(ROAD) + 1))
def test_every_step_is_the_product(element, count):
    # Sums up to 24 * 4 and what is added to are exact in bf16.
    dtype = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}[element]
    rng = np.random.default_rng(3)
    shapes = ((48, 24), (24, 64), (48, 64))
    a, b, c = (rng.integers(-2, 3, shape).astype(dtype) for shape in shapes)
    wanted = c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)
    run_module(lowered(element, count), (), [a, b, c], CALLS)
    assert np.array_equal(c.astype(np.float64), wanted)


def test_bf16_alone_needs_tiles():
    names = {"f32": 0, "bf16": 2}
    for element, wanted in names.items():
        text = str(lowered(element, len(ROAD)))
        assert text.count('"xsmm.IntelAMXtileConfig"') == wanted
