"""Functions of `xetl.ops` against torch's of the same name: values and derivatives."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from tests.ops.function_cases import CASES, Case
from xetl import ops
from xetl.errors import LaunchError
from xetl.ops.calling.declarations import Context

BOUNDS = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2.0**-6}
each_case = pytest.mark.parametrize("case", CASES, ids=str)
QUICK = 4
few_quick = pytest.mark.parametrize(
    "case",
    [*CASES[:QUICK], *(pytest.param(c, marks=pytest.mark.slow) for c in CASES[QUICK:])],
    ids=str,
)


def close(found: Any, wanted: Any, bound: float) -> None:
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    if found.dtype.is_floating_point:
        scale = max(1.0, wanted.detach().abs().max().item()) if wanted.numel() else 1.0
        torch.testing.assert_close(found, wanted, rtol=bound, atol=bound * scale)
    else:
        assert torch.equal(found, wanted)


def as_tuple(found: Any) -> tuple[Any, ...]:
    return (found,) if isinstance(found, torch.Tensor) else tuple(found)


@each_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_and_derivatives(case: Case, dtype: Any) -> None:
    ours, theirs = case.make(dtype), case.make(dtype)
    for each in (*ours[: case.smooth], *theirs[: case.smooth]):
        each.requires_grad_()
    found, wanted = as_tuple(case.ours(*ours)), as_tuple(case.theirs(*theirs))
    assert len(found) == len(wanted)
    for one, two in zip(found, wanted):
        close(one, two, BOUNDS[dtype])
    if not case.smooth:
        return
    weights = torch.randn(found[0].shape, generator=torch.Generator().manual_seed(1))
    found[0].backward(weights.to(dtype))
    wanted[0].backward(weights.to(dtype))
    for one, two in zip(ours[: case.smooth], theirs):
        close(one.grad, two.grad, 4 * BOUNDS[dtype])


@few_quick
def test_arrays_of_numpy_and_out(case: Case) -> None:
    given = case.make(torch.float32)
    wanted = as_tuple(case.theirs(*given))
    arrays = [x.numpy() if isinstance(x, torch.Tensor) else x for x in given]
    function = getattr(ops, case.name)
    found = function(*arrays, *case.args, **case.keywords)
    for one, two in zip(found if len(wanted) > 1 else (found,), wanted):
        assert isinstance(one, np.ndarray)
        close(torch.from_numpy(one), two, 1e-5)
    places = [torch.empty_like(each) for each in wanted]
    out = places[0] if len(wanted) == 1 else tuple(places)
    given_back = function(*given, *case.args, **case.keywords, out=out)
    assert given_back is out or tuple(given_back) == out
    for one, two in zip(places, wanted):
        close(one, two, 1e-5)
        assert one._version == 1


@few_quick
def test_strided_operands(case: Case) -> None:
    """Every second element, and dimensions in another order."""
    plain = case.make(torch.float32)
    wanted = as_tuple(case.theirs(*plain))
    for strided in (_every_second, _turned):
        found = as_tuple(
            case.ours(*(x if isinstance(x, int) else strided(x) for x in plain))
        )
        for one, two in zip(found, wanted):
            close(one, two, 1e-5)


def _every_second(x: Any) -> Any:
    return (
        torch.stack([x, ~x if x.dtype is torch.bool else x + 1], -1).flatten(-2)[
            ..., ::2
        ]
        if x.ndim
        else x
    )


def _turned(x: Any) -> Any:
    dims = tuple(reversed(range(x.ndim)))
    return x.permute(dims).contiguous().permute(dims)


@few_quick
def test_gradcheck(case: Case) -> None:
    if not case.smooth:
        return
    given = case.make(torch.float64)
    for each in given[: case.smooth]:
        each.requires_grad_()
    assert torch.autograd.gradcheck(case.ours, given, fast_mode=True)


@few_quick
def test_opcheck(case: Case) -> None:
    given = case.make(torch.float32)
    for each in given[: case.smooth]:
        each.requires_grad_()
    torch._dynamo.reset()

    def called(*tensors: Any) -> Any:
        return case.ours(*tensors)

    compiled = torch.compile(called, fullgraph=True, backend="aot_eager")
    for one, two in zip(as_tuple(compiled(*given)), as_tuple(case.ours(*given))):
        close(one, two, 1e-6)
    for operator, args, keywords in _operators(case, given):
        torch.library.opcheck(operator, args, keywords)


def _operators(case: Case, given: Any) -> list[Any]:
    """The operator of torch, where a call is a call of it."""
    operator = getattr(torch.ops.xetl, case.name, None)
    if operator is None or not case.is_operator:
        return []
    return [(operator.default, (*given, *case.args), case.keywords)]


WEIGHT = torch.ones(4, 3, 3, requires_grad=True)
DERIVED = {
    "layer_norm": lambda v: ops.layer_norm(v, (8,)),  # the name of its operator differs
    "silu": ops.silu,
    "scaled_dot_product_attention": lambda v: ops.scaled_dot_product_attention(v, v, v),
    "conv1d": lambda v: ops.conv1d(v, WEIGHT),
    "cross_entropy": lambda v: ops.cross_entropy(v, torch.ones(2, 8).long()),
}


@pytest.mark.parametrize("name", DERIVED)
def test_a_second_derivative_is_refused_by_name(name: str) -> None:
    x = torch.randn(2, 3, 8, requires_grad=True)
    (first,) = torch.autograd.grad(DERIVED[name](x).sum(), x, create_graph=True)
    with pytest.raises(LaunchError, match=f"`{name}`.* twice") as caught:
        first.sum().backward()
    assert caught.value.code == "X0838"


def test_out_with_a_gradient_is_refused() -> None:
    x = torch.randn(3, 16, requires_grad=True)
    with pytest.raises(LaunchError) as caught:
        ops.softmax(x, out=torch.empty(3, 16))
    assert caught.value.code == "X0838"
    assert caught.value.file == __file__
    with torch.no_grad():
        ops.softmax(x, out=torch.empty(3, 16))


@few_quick
def test_places_that_are_not_contiguous(case: Case) -> None:
    given = case.make(torch.float32)
    wanted = as_tuple(case.theirs(*given))
    places = [torch.full(x.shape[::-1], 7, dtype=x.dtype) for x in wanted]
    places = [x.permute(tuple(reversed(range(x.ndim)))) for x in places]
    out = places[0] if len(wanted) == 1 else tuple(places)
    function = getattr(ops, case.name)
    for _ in range(3):  # planned, recorded, repeated
        function(*given, *case.args, **case.keywords, out=out)
        for one, two in zip(places, wanted):
            close(one, two, 1e-5)
            one.fill_(7)


class _Block(torch.nn.Module):
    def forward(self, x: Any, w: Any) -> Any:
        return ops.layer_norm(ops.gelu(ops.linear(x, w)), (6,))


def test_torch_export() -> None:
    x, w = torch.randn(4, 18), torch.randn(6, 18)
    program = torch.export.export(_Block(), (x, w))
    called = {str(node.target) for node in program.graph.nodes}
    assert {"xetl.matmul.default", "xetl.gelu.default"} <= called
    close(program.module()(x, w), _Block()(x, w), 1e-6)


def test_older_forms_of_calls() -> None:
    x, w, b = torch.randn(3, 18), torch.randn(18), torch.randn(18)
    out = torch.empty(3, 18)
    assert ops.softmax(x, out) is out
    assert torch.equal(ops.softmax(x=x), out)
    wanted = torch.nn.functional.layer_norm(x, (18,), w, b, 1e-3)
    for found in (
        ops.layer_norm(x, w, b, 1e-3),
        ops.layer_norm(x, w, bias=b, eps=1e-3),
        ops.layer_norm(x, weight=w, bias=b, eps=1e-3),
        ops.layer_norm(x, 18, w, b, 1e-3),
    ):
        close(found, wanted, 1e-5)
    close(
        ops.layer_norm(x, None, b),
        torch.nn.functional.layer_norm(x, (18,), None, b),
        1e-5,
    )


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda x: ops.softmax(x, 2), "X0827"),
        (lambda x: ops.relu(x.int()), "X0828"),
        (lambda x: ops.gelu(x, "erf"), "X0829"),
        (lambda x: ops.swiglu(x, x[:2]), "X0827"),
        (lambda x: ops.swiglu(x, x.double()), "X0828"),
        (lambda x: ops.layer_norm(x, (17,)), "X0827"),
        (lambda x: ops.relu(x, out=torch.empty(3, 17)), "X0827"),
        (lambda x: ops.swiglu(x, x.to("meta")), "X0813"),
        (lambda x: ops.group_norm(x, 5), "X0827"),
        (lambda x: ops.batch_norm(x[:1], None, None, training=True), "X0827"),
        (lambda x: ops.batch_norm(x, x[0], None, training=True), "X0827"),
        (lambda x: ops.batch_norm(x, x[0, 1:], x[0, 1:], training=True), "X0827"),
        (lambda x: ops.batch_norm(x, x[0].int(), x[0], training=True), "X0828"),
        (lambda x: ops.batch_norm(x, None, None), "X0827"),
        (lambda x: ops.kl_div(x, x, reduction="all"), "X0829"),
        (lambda x: ops.addmm(x, x, x), "X0827"),
        (lambda x: ops.rope(x, x, x), "X0827"),
    ],
)
def test_wrong_calls(call: Any, code: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call(torch.ones(3, 18))
    assert caught.value.code == code
    assert caught.value.file == __file__


def test_calls_that_python_would_refuse() -> None:
    x = np.ones((3, 4), np.float32)
    for wrong in (
        lambda: ops.relu(),
        lambda: ops.relu(x, 1, 2),
        lambda: ops.softmax(x, dims=1),
        lambda: ops.relu(x, input=x),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_numbers_of_no_dimension_and_no_elements() -> None:
    assert ops.relu(torch.tensor(-2.0)).item() == 0
    assert ops.relu(np.array(2.0, np.float32)).shape == ()
    assert ops.gelu(torch.empty(0, 3)).shape == (0, 3)
    none = torch.empty(0, 5), torch.empty(0, dtype=torch.int64)
    for loss in ("cross_entropy", "nll_loss"):
        for reduction, wanted in (("sum", 0.0), ("mean", math.nan)):
            found = getattr(ops, loss)(*none, reduction=reduction)
            torch.testing.assert_close(found, torch.tensor(wanted), equal_nan=True)
    x = torch.empty(0, 18, requires_grad=True)
    w = torch.ones(18, requires_grad=True)
    ops.layer_norm(x, (18,), w).sum().backward()
    assert torch.equal(w.grad, torch.zeros(18))


@pytest.mark.parametrize("mask", [(10, 21), (4, 10, 21), (2, 1, 10, 21), (2, 4, 1, 21)])
def test_heads_that_share_keys(mask: tuple[int, ...]) -> None:
    make = torch.Generator().manual_seed(0)
    shapes = (2, 4, 10, 16), (2, 2, 21, 16), (2, 2, 21, 24)
    ours = [torch.randn(each, generator=make).requires_grad_() for each in shapes]
    theirs = [each.detach().clone().requires_grad_() for each in ours]
    options = {"attn_mask": torch.randn(mask), "enable_gqa": True, "scale": 0.3}
    found = ops.scaled_dot_product_attention(*ours, **options)
    like = torch.nn.functional.scaled_dot_product_attention
    wanted = like(*theirs, **options)
    close(found, wanted, 1e-5)
    found.square().sum().backward()
    wanted.square().sum().backward()
    for one, two in zip(ours, theirs):
        close(one.grad, two.grad, 1e-4)


def test_attention_that_is_refused() -> None:
    x = torch.ones(2, 3, 4, 8)
    for code, options in (
        ("X0829", {"dropout_p": 1.0}),
        ("X0827", {"window_size": (1, -2)}),
        ("X0827", {"attn_mask": torch.ones(5, 4)}),
        ("X0828", {"attn_mask": torch.ones(4, 4, dtype=torch.int32)}),
    ):
        with pytest.raises(LaunchError) as caught:
            ops.scaled_dot_product_attention(x, x, x, **options)
        assert caught.value.code == code
    with pytest.raises(LaunchError, match="multiple of"):
        ops.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True)


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_what_has_no_derivative_is_refused_by_name(name: str) -> None:
    x, weight = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    loss = getattr(ops, name)(x, torch.tensor([0, 2]), weight)
    with pytest.raises(LaunchError, match=r"`weight` of .* cannot") as caught:
        loss.backward()
    assert caught.value.code == "X0838"
    assert caught.value.help == "pass `weight.detach()`"
    assert weight.grad is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_derivative_of_an_embedding(dtype: Any) -> None:
    numbers = torch.tensor([[1, 3, 3], [0, 2, 3]])
    ours = torch.randn(5, 70).to(dtype).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    gradient = torch.randn(2, 3, 70).to(dtype)
    ops.embedding(numbers, ours, 2).backward(gradient)
    torch.nn.functional.embedding(numbers, theirs, 2).backward(gradient)
    close(ours.grad, theirs.grad, BOUNDS[dtype])
    wide = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    embedding = partial(ops.embedding, numbers)
    assert torch.autograd.gradcheck(embedding, (wide,), fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(4, 6, 18), (2, 6, 5, 70), (5, 6), (70, 6)])
@pytest.mark.parametrize("name", ["group_norm", "batch_norm"])
def test_norms_of_channels(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    make = torch.Generator().manual_seed(0)
    parts = [torch.randn(each, generator=make).to(dtype) for each in (shape, 6, 6)]
    ours, theirs = ([each.clone().requires_grad_() for each in parts] for _ in "12")
    first: tuple[Any, ...] = (3 if len(shape) > 2 else 1,)
    if name == "batch_norm":
        first = torch.randn(6).to(dtype), torch.rand(6).to(dtype) + 0.5
    found = getattr(ops, name)(ours[0], *first, *ours[1:])
    wanted = getattr(torch.nn.functional, name)(theirs[0], *first, *theirs[1:])
    close(found, wanted, BOUNDS[dtype])
    weights = torch.randn(shape, generator=make).to(dtype)
    found.backward(weights)
    wanted.backward(weights)
    for one, two in zip(ours, theirs):
        close(one.grad, two.grad, 8 * BOUNDS[dtype])


def test_a_step_of_a_graph_bears_the_name_of_its_function() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    assert ops.softmax(x, 1).grad_fn.name() == "softmaxBackward"
    assert ops.relu(x).grad_fn.name() == "reluBackward"


def test_nodes_are_what_derivatives_are_computed_from() -> None:
    """No object is made beside the node; it has tensors only where torch saves them."""
    x = torch.randn(5, 9, requires_grad=True)
    node = ops.softmax(x, 1).grad_fn
    assert isinstance(node, Context)
    assert (node["dim"], node.dtype_of("input")) == (1, torch.float32)
    assert (node.shape_of("input"), node.needs("input")) == ((5, 9), True)
    torch.testing.assert_close(node.saved[0], torch.softmax(x, 1))
    assert not any(isinstance(each, torch.Tensor) for each in vars(node).values())


def test_a_tensor_that_outlives_its_transform() -> None:
    x, left = torch.ones(2, 3, requires_grad=True), list[Any]()
    torch.func.grad(lambda v: left.append(v) or v.sum())(x)
    found = ops.relu(left[0])
    assert torch.equal(found, torch.relu(left[0]))
    assert found.requires_grad


@pytest.mark.parametrize("columns", [16, 100, 1024, 1500])
@pytest.mark.parametrize("number", [0.7, 1000.1])
def test_rows_of_equal_numbers(columns: int, number: float) -> None:
    """The rounding of a mean is not divided by a deviation of nothing."""
    x = torch.full((33, columns), number, requires_grad=True)
    w, b = (torch.ones(columns, requires_grad=True) for _ in range(2))
    grad = torch.rand(33, columns, generator=torch.Generator().manual_seed(0))
    found = ops.layer_norm(x, (columns,), w, b)
    torch.testing.assert_close(found, torch.ones(33, columns), rtol=0, atol=1e-5)
    by_x, by_w, by_b = torch.autograd.grad(found, (x, w, b), grad)
    torch.testing.assert_close(by_w, torch.zeros(columns), rtol=0, atol=1e-5)
    torch.testing.assert_close(by_b, grad.sum(0))
    exact = (grad - grad.mean(1, keepdim=True)) * 1e5**0.5
    torch.testing.assert_close(by_x, exact, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
@pytest.mark.parametrize("mean", [0.0, 1000.1, 3e4])
def test_a_variance_beside_a_large_mean(
    mean: float, dim: int | tuple[int, ...]
) -> None:
    x = mean + torch.rand(1500, 70, generator=torch.Generator().manual_seed(0)) / 50
    exact = torch.var(x.double(), dim)
    torch.testing.assert_close(ops.var(x, dim).double(), exact, rtol=1e-4, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("given", [torch.int64, torch.uint8, torch.bool])
def test_mean_of_integers(given: Any, dtype: Any) -> None:
    x = (torch.arange(60).reshape(3, 4, 5) % 7 - int(given is torch.int64)).to(given)
    for dim in (0, 1, -1):
        found = ops.mean(x, dim, dtype=dtype)
        close(found, torch.mean(x, dim, dtype=dtype), BOUNDS[dtype])


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "min", "argmax", "var"])
@pytest.mark.filterwarnings("ignore:var")
@pytest.mark.parametrize("keepdim", [False, True])
def test_a_dimension_of_a_number(name: str, keepdim: bool) -> None:
    for dim in (0, -1):
        ours, theirs = (torch.tensor(1.5, requires_grad=True) for _ in "12")
        found = as_tuple(getattr(ops, name)(ours, dim, keepdim=keepdim))
        wanted = as_tuple(getattr(torch, name)(theirs, dim, keepdim=keepdim))
        for one, two in zip(found, wanted):
            torch.testing.assert_close(one, two, equal_nan=True)
        if wanted[0].requires_grad:
            found[0].backward()
            wanted[0].backward()
            torch.testing.assert_close(ours.grad, theirs.grad, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_integers_are_summed_as_floats(dtype: Any) -> None:
    x = torch.full((3, 5), 2**62)
    for dim in (0, 1):
        close(ops.sum(x, dim, dtype=dtype), torch.sum(x, dim, dtype=dtype), 1e-6)
        close(ops.cumsum(x, dim, dtype), torch.cumsum(x, dim, dtype=dtype), 1e-6)


@pytest.mark.parametrize("given", [torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_integers(name: str, given: Any) -> None:
    x = (torch.arange(60).reshape(3, 4, 5) % 7).to(given)
    like = getattr(torch.nn.functional, name)
    for dim in (0, 1, 2):
        for dtype in (torch.float64, torch.bfloat16):
            found = getattr(ops, name)(x, dim, dtype=dtype)
            close(found, like(x, dim, dtype=dtype), BOUNDS[dtype])


def test_other_forms_that_torch_takes() -> None:
    x = torch.randn(4, 6)
    for found, wanted in (
        (ops.var(x, unbiased=False), torch.var(x, unbiased=False)),
        (ops.var(x, False), torch.var(x, False)),
        (ops.var(x, 1, unbiased=True), torch.var(x, 1, unbiased=True)),
        (ops.sum(x, axis=1, keepdims=True), torch.sum(x, axis=1, keepdims=True)),
        (ops.softmax(x, axis=0), torch.softmax(x, axis=0)),
    ):
        close(found, wanted, 1e-6)
    rows = torch.tensor([2, 0])
    close(ops.embedding(rows, x.int()), torch.nn.functional.embedding(rows, x.int()), 0)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 5), (0, 5)])
@pytest.mark.parametrize(("k", "n"), [(0, 5), (5, 0)])
def test_derivatives_of_products_with_nothing(
    shape: tuple[int, ...], k: int, n: int
) -> None:
    x, w, b = torch.ones(*shape[:-1], k), torch.ones(n, k), torch.ones(n)
    for each in (x, w, b):
        each.requires_grad_()
    found = ops.linear(x, w, b)
    wanted = torch.nn.functional.linear(x, w, b)
    close(found, wanted, 0)
    ours = torch.autograd.grad(found.sum(), (x, w, b))
    for one, two in zip(ours, torch.autograd.grad(wanted.sum(), (x, w, b))):
        close(one, two, 0)


def test_derivatives_of_groups_of_nothing() -> None:
    x, w, b = torch.ones(3, 8, 0), torch.ones(8), torch.ones(8)
    for each in (x, w, b):
        each.requires_grad_()
    ops.group_norm(x, 2, w, b).sum().backward()
    assert x.grad.shape == x.shape
    assert torch.equal(w.grad, torch.zeros(8))
    assert torch.equal(b.grad, torch.zeros(8))


def test_the_derivative_of_relu_at_nan() -> None:
    x = torch.tensor([math.nan, -math.inf, -0.0, 0.0, 1.0, math.inf] * 9)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    ops.relu(ours).sum().backward()
    torch.relu(theirs).sum().backward()
    assert torch.equal(ours.grad, theirs.grad)
