"""What torch's automatic derivatives are told of launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from xetl import load_mlir, ops, xetile
from xetl.errors import LaunchError

torch: Any = pytest.importorskip("torch")

SIZE = 32


@xetile.kernel
def double(X, Y, Z=None):
    i = xetile.program_id(0) * 16
    x = xetile.load_tile(xetile.init_tile(X, [i], (16,)))
    xetile.store_tile(x * 2, xetile.init_tile(Y, [i], (16,)))
    if Z is not None:
        xetile.store_tile(x, xetile.init_tile(Z, [i], (16,)))


TEXT = """
func.func @double(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %t = xetile.init_tile %x[0, 0] : memref<4x8xf32> -> !xetile.tile<4x8xf32>
  %v = xetile.load_tile %t : !xetile.tile<4x8xf32> -> vector<4x8xf32>
  %s = arith.addf %v, %v : vector<4x8xf32>
  %u = xetile.init_tile %y[0, 0] : memref<4x8xf32> -> !xetile.tile<4x8xf32>
  xetile.store_tile %s, %u : vector<4x8xf32>, !xetile.tile<4x8xf32>
  return
}
"""
LIBRARY = load_mlir(TEXT)


def by_position(x: Any, y: Any) -> None:
    double[2](x, y)


def by_keyword(x: Any, y: Any) -> None:
    double[2](Y=y, X=x)


def by_plan(x: Any, y: Any) -> None:
    plan = double.bind(x, y, grid=2)
    before = _version(y)
    plan()
    assert _version(y) == before + 1  # binding writes nothing


def on_reference(x: Any, y: Any) -> None:
    double[2](x, y, backend="reference")


def interpreted(x: Any, y: Any) -> None:
    double.interpret(x, y, grid=2)


def by_text(x: Any, y: Any) -> None:
    LIBRARY["double"][1](x.reshape(4, 8), y.reshape(4, 8))


ROADS = [by_position, by_keyword, by_plan, on_reference, interpreted, by_text]


def _version(tensor: Any) -> int:
    return 0 if tensor.is_inference() else tensor._version


def tensors(count: int = 2, dtype: str = "float32") -> list[Any]:
    return [torch.ones(SIZE, dtype=getattr(torch, dtype)) for _ in range(count)]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("wrong", [0, 1])
def test_gradients_are_not_dropped(road: Callable[..., None], wrong: int) -> None:
    given = tensors()
    road(*given)
    given[wrong].requires_grad_()
    kept = [each.detach().clone() for each in given]
    with pytest.raises(LaunchError) as caught:
        road(*given)
    text = str(caught.value)
    assert caught.value.code == "X0838"
    for word in (f"`{'XY'[wrong]}", "detach()", "torch.no_grad()"):
        assert word.lower() in text.lower()
    for each, old in zip(given, kept):
        assert torch.equal(each.detach(), old)


@pytest.mark.parametrize("road", ROADS)
def test_what_is_not_recorded_may_require_gradients(road: Callable[..., None]) -> None:
    x, y = (each.requires_grad_() for each in tensors())
    with torch.no_grad():
        road(x, y)
    assert y.tolist() == [2.0] * SIZE
    with torch.inference_mode():
        road(x, y)
    road(x.detach(), y.detach())


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_written_tensors_have_a_new_version(
    road: Callable[..., None], dtype: str
) -> None:
    if road is by_text and dtype != "float32":
        return  # its types are fixed
    x, y = tensors(dtype=dtype)
    for launches in (1, 2, 3):
        road(x, y)
        assert (x._version, y._version) == (0, launches)


def test_a_plan_bumps_versions_and_asks_each_time() -> None:
    x, y = tensors()
    plan = double.bind(x, y, grid=2)
    for launches in (1, 2, 3):
        plan()
        assert (x._version, y._version) == (0, launches)
    x.requires_grad_()
    with pytest.raises(LaunchError, match="`X` requires a gradient"):
        plan()
    with torch.no_grad():
        plan()
    assert y._version == 4


def test_a_saved_tensor_that_a_kernel_writes_is_noticed() -> None:
    weight = torch.ones(SIZE, requires_grad=True)
    x, y = tensors()
    for _ in range(2):
        product = weight * y  # which saves y
        double[2](x, y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()


def test_only_what_this_call_writes_is_new() -> None:
    x, y, z = tensors(3)
    double[2](x, y, z)
    double[2](x, y)
    double[2](x, y, Z=z)
    double[2](x, y, None)
    double[2](x, Y=y, Z=z)
    assert (x._version, y._version, z._version) == (0, 5, 3)


def test_tensors_of_inference_mode_have_no_version() -> None:
    with torch.inference_mode():
        y = torch.zeros(SIZE)
    for _ in range(2):
        double[2](torch.ones(SIZE), y)
    assert y.tolist() == [2.0] * SIZE


def _functions(tensor: Callable[..., Any]) -> dict[str, Callable[[], Sequence[Any]]]:
    def matmul() -> Sequence[Any]:
        out = tensor(4, 4)
        ops.matmul(tensor(4, 4), tensor(4, 4), out=out, bias=tensor(4))
        return [out]

    def softmax() -> Sequence[Any]:
        out = tensor(4, 4)
        ops.softmax(tensor(4, 4), out=out)
        return [out]

    def layer_norm() -> Sequence[Any]:
        out = tensor(4, 4)
        ops.layer_norm(tensor(4, 4), tensor(4), tensor(4), out=out)
        return [out]

    def attention() -> Sequence[Any]:
        out = tensor(4, 4)
        each = [tensor(4, 4) for _ in range(3)]
        ops.scaled_dot_product_attention(*each, out=out)
        return [out]

    return {each.__name__: each for each in (matmul, softmax, layer_norm, attention)}


COUNTS = {"matmul": 4, "softmax": 2, "layer_norm": 4, "attention": 4}


@pytest.mark.parametrize("name", COUNTS)
def test_functions(name: str) -> None:
    """Each operand that requires a gradient is refused; ``out`` has a new version."""
    made = 0

    def tensor(*shape: int) -> Any:
        nonlocal made
        made += 1
        return torch.ones(shape, requires_grad=made == wrong[0])

    wrong = [0]
    for out in _functions(tensor)[name]():
        assert out._version >= 1
    assert made == COUNTS[name]
    for each in range(1, COUNTS[name] + 1):
        made, wrong[0] = 0, each
        with pytest.raises(LaunchError, match="requires a gradient"):
            _functions(tensor)[name]()


def test_prepacked_operands_are_asked_too() -> None:
    weight = torch.ones(64, 64, requires_grad=True)
    with pytest.raises(LaunchError, match="`b` requires a gradient"):
        ops.prepack(weight)
    packed = ops.prepack(weight.detach())
    assert ops.matmul(torch.ones(8, 64), packed)[0, 0].item() == 64


def test_a_plan_notices_other_memory() -> None:
    x, y = tensors()
    plan = double.bind(x, y, grid=2)
    y.data = torch.zeros(SIZE)
    with pytest.raises(LaunchError, match="`Y` has other memory"):
        plan()
    array = np.ones(SIZE, np.float32)
    plan = double.bind(array, np.ones_like(array), grid=2, backend="reference")
    plan()
    array.resize(1 << 20, refcheck=False)
    with pytest.raises(LaunchError, match="`X` has other memory"):
        plan()
