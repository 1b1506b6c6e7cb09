"""Texts of XeGPU at subgroup level are launched as they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from launched import aligned, counting, scale

import xetl
from xetl.errors import IRError, LaunchError

PRODUCT = """
#a = #xegpu.layout<lane_layout = [1, 16], lane_data = [1, 1]>
#b = #xegpu.layout<lane_layout = [1, 16], lane_data = [2, 1]>
gpu.module @kernels {
  gpu.func @product(%A: memref<16x64xf16>, %B: memref<64x32xf16>,
                    %C: memref<16x32xf32>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %id = gpu.subgroup_id : index
    %i = arith.divui %id, %c2 : index
    %j = arith.remui %id, %c2 : index
    %y = arith.muli %i, %c8 : index
    %x = arith.muli %j, %c16 : index
    %a = xegpu.create_nd_tdesc %A : memref<16x64xf16>
         -> !xegpu.tensor_desc<8x16xf16, #a>
    %b = xegpu.create_nd_tdesc %B : memref<64x32xf16>
         -> !xegpu.tensor_desc<16x16xf16, #b>
    %c = xegpu.create_nd_tdesc %C : memref<16x32xf32>
         -> !xegpu.tensor_desc<8x16xf32, #a>
    %zero = arith.constant dense<0.0> : vector<8x16xf32>
    %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %zero)
        -> (vector<8x16xf32>) {
      %l = xegpu.load_nd %a[%y, %k] <{layout = #a}>
           : !xegpu.tensor_desc<8x16xf16, #a> -> vector<8x16xf16>
      %r = xegpu.load_nd %b[%k, %x] <{packed}>
           : !xegpu.tensor_desc<16x16xf16, #b> -> vector<8x16x2xf16>
      %next = xegpu.dpas %l, %r, %acc
           : vector<8x16xf16>, vector<8x16x2xf16>, vector<8x16xf32> -> vector<8x16xf32>
      scf.yield %next : vector<8x16xf32>
    }
    xegpu.store_nd %sum, %c[%y, %x]
        : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32, #a>
    gpu.return
  }
}
"""

COPY = """
gpu.module @kernels {
  gpu.func @copied(%X: memref<8x96xf32>, %Y: memref<8x96xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = xegpu.create_nd_tdesc %X, shape : [8, WIDTH], strides : [PITCH, 1]
         : memref<8x96xf32> -> !xegpu.tensor_desc<8x16xf32>
    %y = xegpu.create_nd_tdesc %Y : memref<8x96xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %x[%c0, AT] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %v, %y[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""


def sized(text: str, width: int = 96, pitch: int = 96, at: str = "0") -> str:
    return (
        text.replace("WIDTH", f"{width}").replace("PITCH", f"{pitch}").replace("AT", at)
    )


def copy(width: int = 96, pitch: int = 96, at: str = "0") -> Any:
    return xetl.load_mlir(sized(COPY, width, pitch, at))["copied"]


def test_a_product_of_four_subgroups() -> None:
    random = np.random.default_rng(0)
    a, b, c = aligned((16, 64), "e"), aligned((64, 32), "e"), aligned((16, 32))
    a[:], b[:] = random.standard_normal(a.shape), random.standard_normal(b.shape)
    xetl.load_mlir(PRODUCT)["product"][1](a, b, c)
    np.testing.assert_allclose(c, a.astype("f") @ b.astype("f"), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("at", ["%c0", "0", "3"])
def test_places_may_be_constants(at: str) -> None:
    x, y = counting((8, 96)), aligned((8, 96))
    copy(at=at)[1](x, y)
    start = 3 if at == "3" else 0
    assert np.array_equal(y[:, :16], x[:, start : start + 16])


def test_what_is_stored_is_known() -> None:
    x, y = counting((8, 96)), aligned((8, 96))
    x.flags.writeable = False
    copy()[1](x, y)
    assert np.array_equal(y[:, :16], x[:, :16])
    with pytest.raises(LaunchError, match="read-only"):
        copy()[1](y, x)


@pytest.mark.parametrize(("width", "pitch"), [(8, 96), (96, 97), (96, 64), (24, 12)])
def test_illegal_surfaces(width: int, pitch: int) -> None:
    """No launch looks at what a text describes: the emulated message does."""
    x, y = counting((8, 96)), aligned((8, 96))
    with pytest.raises(LaunchError, match="sends a block message that no GPU") as error:
        copy(width, pitch)[1](x, y)
    assert error.value.code == "X0835"
    assert f"width {width * 4} and pitch {pitch * 4} bytes" in str(error.value)
    assert error.value.line == 8
    assert np.isnan(y[:, :16]).all()


def test_a_base_that_no_message_takes() -> None:
    with pytest.raises(LaunchError, match="that no GPU takes"):
        copy()[1](counting((8, 96), offset=4), aligned((8, 96)))


BRANCH = """%is = arith.cmpi eq, %id, %c0 : index
    scf.if %is {
      gpu.barrier
    }
    %y ="""


LAYOUT = "no message spreads a block"


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (PRODUCT, "lane_layout = [1, 16]", "lane_layout = [16, 1]", LAYOUT),
        (PRODUCT, "lane_layout", "inst_data = [8, 16], lane_layout", LAYOUT),
        (PRODUCT, "%y =", BRANCH, "barrier"),
        (COPY, "8x16xf32", "8x24xf32", "no load of"),
    ],
)
def test_what_is_refused_with_its_line(
    text: str, old: str, new: str, said: str
) -> None:
    (kernel,) = xetl.load_mlir(sized(text.replace(old, new))).values()
    with pytest.raises(IRError, match=said) as error:
        kernel.ir("lanes", backend="xegpu", target="pvc")
    assert error.value.line


def test_other_backends_have_no_messages() -> None:
    with pytest.raises(IRError, match="backend `cpu` cannot go on") as error:
        copy()[1](counting((8, 96)), aligned((8, 96)), backend="cpu")
    assert error.value.code == "X0705"
    assert "simt.block_load" in copy().ir("lanes", backend="xegpu", target="pvc")


def test_what_the_compiler_prints() -> None:
    types = "f32[M,N] f32[M,N] f64"
    text = scale.ir("xegpu", types, backend="xegpu", target="opencl")
    x, y = counting((32, 48)), aligned((32, 48))
    xetl.load_mlir(text)["scale"][2, 3](x, y, 3.0)
    assert np.array_equal(y, 3 * x)
