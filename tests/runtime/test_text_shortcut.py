"""The short road of text kernels: taken for like calls, never past a check."""

from __future__ import annotations

import numpy as np
import pytest

import xetl
from xetl.errors import LaunchError
from xetl.settings import no_compile

TEXT = """
func.func @k(%a: memref<4x8xf32>, %b: memref<4x8xf32>, %n: i16) {
  %c0 = arith.constant 0 : index
  %v = vector.load %a[%c0, %c0] : memref<4x8xf32>, vector<4x8xf32>
  %f = arith.sitofp %n : i16 to f32
  %w = vector.broadcast %f : f32 to vector<4x8xf32>
  %s = arith.addf %v, %w : vector<4x8xf32>
  vector.store %s, %b[%c0, %c0] : memref<4x8xf32>, vector<4x8xf32>
  return
}
"""


def launched():
    """A kernel after its first launch, and arguments."""
    kernel = xetl.load_mlir(TEXT)["k"]
    a, b = np.ones((4, 8), "f4"), np.zeros((4, 8), "f4")
    kernel[1](a, b, 2)
    return kernel, a, b


def test_a_like_call_takes_it(monkeypatch):
    kernel, a, b = launched()
    monkeypatch.setattr(type(kernel), "launch", None)
    kernel[1](a + 1, b, -3)
    assert np.all(b == -1)


def test_several_are_kept(monkeypatch):
    """With other subgroups it is other code."""
    kernel, a, b = launched()
    kernel[1, (2, 1, 1)](a, b, 2)
    monkeypatch.setattr(type(kernel), "launch", None)
    kernel[1](a, b, 5)
    kernel[1, (2, 1, 1)](a, b, 6)
    assert np.all(b == 7)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda a, b: (a[:2], b, 2), "X0824"),
        (lambda a, b: (np.ones((8, 4), "f4").T, b, 2), "X0824"),
        (lambda a, b: (a.astype("f8"), b, 2), "X0824"),
        (lambda a, b: (a, b, 1 << 16), "X0805"),
        (lambda a, b: (a, b, 2.5), "X0805"),
        (lambda a, b: (a, b), "X0803"),
        (lambda a, b: (a.tolist(), b, 2), "X0805"),
    ],
)
def test_every_check_is_still_done(change, code):
    kernel, a, b = launched()
    b[:] = 0
    with pytest.raises(LaunchError) as caught:
        kernel[1](*change(a, b))
    assert caught.value.code == code
    assert not b.any()


def test_another_backend_does_not_take_it(monkeypatch):
    kernel, a, b = launched()
    monkeypatch.setenv("XETL_BACKEND", "reference")
    called = []
    monkeypatch.setattr(type(kernel), "launch", lambda *args: called.append(args))
    kernel[1](a, b, 2)
    assert called


def test_the_code_is_kept_on_disk():
    launched()
    with no_compile():
        _, _, b = launched()
    assert np.all(b == 3)
    changed = xetl.load_mlir(TEXT.replace("addf", "subf"))["k"]
    with no_compile(), pytest.raises(LaunchError) as caught:
        changed[1](b, b.copy(), 1)
    assert caught.value.code == "X0815"
