"""What the checks find in accesses of `vector` operations, which only texts have."""

import numpy as np
import pytest

from xetl import load_mlir
from xetl.errors import CheckError


@pytest.mark.parametrize(
    ("read", "types"),
    [
        ("vector.transfer_read %s[%i], %p {in_bounds = [true]}", "vector<8xf32>"),
        (
            "vector.gather %s[%i] [%at], %mask, %v",
            "vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>",
        ),
        (
            "vector.maskedload %s[%i], %mask, %v",
            "vector<8xi1>, vector<8xf32> into vector<8xf32>",
        ),
    ],
)
def test_vectors_of_a_text_read_what_is_not_written(read, types):
    text = f"""gpu.module @m {{ gpu.func @f(%x: memref<8xf32>, %i: index) kernel {{
      %s = memref.alloc() : memref<16xf32, 3>
      %c0 = arith.constant 0 : index
      %p = arith.constant 0.0 : f32
      %v = arith.constant dense<1.0> : vector<8xf32>
      %at = vector.step : vector<8xindex>
      %mask = vector.create_mask %i : vector<8xi1>
      vector.store %v, %s[%c0] : memref<16xf32, 3>, vector<8xf32>
      %r = {read} : memref<16xf32, 3>, {types}
      vector.store %r, %x[%c0] : memref<8xf32>, vector<8xf32>
      gpu.return
    }} }}"""
    kernel = load_mlir(text)["f"]
    out = np.zeros(8, np.float32)
    kernel.interpret(out, 0, grid=1)
    assert out.all()
    with pytest.raises(CheckError, match=r"reads element \(8,\) of the shared memory"):
        kernel.interpret(out, 5, grid=1)
