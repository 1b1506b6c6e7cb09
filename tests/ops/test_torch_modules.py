"""Functions of `xetl.ops` in place of those that modules of `torch.nn` call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from xetl import ops
from xetl.errors import LaunchError

nn: Any = torch.nn
F: Any = torch.nn.functional
IMAGES = torch.linspace(-2, 3, 2 * 6 * 5 * 4, dtype=torch.float64).reshape(2, 6, 5, 4)
ROWS = torch.linspace(-3, 2, 7 * 6, dtype=torch.float64).reshape(7, 6)
LOGS = torch.log_softmax(ROWS, 1)
CLASSES = torch.tensor([0, 5, 2, 1, 1, 3, 4])
MODULES: dict[str, tuple[str, Callable[[], Any], tuple[Any, ...]]] = {
    "ReLU": ("relu", nn.ReLU, (ROWS,)),
    "SiLU": ("silu", nn.SiLU, (ROWS,)),
    "GELU": ("gelu", lambda: nn.GELU("tanh"), (ROWS,)),
    "Softmax": ("softmax", lambda: nn.Softmax(1), (ROWS,)),
    "LogSoftmax": ("log_softmax", lambda: nn.LogSoftmax(-1), (ROWS,)),
    "Linear": ("linear", lambda: nn.Linear(6, 3), (ROWS,)),
    "LayerNorm": ("layer_norm", lambda: nn.LayerNorm(6), (ROWS,)),
    "RMSNorm": ("rms_norm", lambda: nn.RMSNorm(6), (ROWS,)),
    "GroupNorm": ("group_norm", lambda: nn.GroupNorm(3, 6), (IMAGES,)),
    "BatchNorm1d": ("batch_norm", lambda: nn.BatchNorm1d(6).eval(), (ROWS,)),
    "BatchNorm2d": ("batch_norm", lambda: nn.BatchNorm2d(6).eval(), (IMAGES,)),
    "BatchNorm1d in training": ("batch_norm", lambda: nn.BatchNorm1d(6), (ROWS,)),
    "BatchNorm2d in training": ("batch_norm", lambda: nn.BatchNorm2d(6), (IMAGES,)),
    "Conv1d": ("conv1d", lambda: nn.Conv1d(6, 4, 3, padding=1), (IMAGES[..., 0],)),
    "Conv2d": ("conv2d", lambda: nn.Conv2d(6, 4, 3, padding="same"), (IMAGES,)),
    "Dropout": ("dropout", lambda: nn.Dropout(0.5).eval(), (ROWS,)),
    "Embedding": ("embedding", lambda: nn.Embedding(6, 5, 2), (CLASSES,)),
    "CrossEntropyLoss": ("cross_entropy", nn.CrossEntropyLoss, (ROWS, CLASSES)),
    "NLLLoss": ("nll_loss", nn.NLLLoss, (LOGS, CLASSES)),
    "MSELoss": ("mse_loss", nn.MSELoss, (ROWS, LOGS)),
    "KLDivLoss": (
        "kl_div",
        lambda: nn.KLDivLoss(reduction="sum"),
        (LOGS, ROWS.square()),
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_call_our_functions(name: str, monkeypatch: Any) -> None:
    function, make, given = MODULES[name]
    torch.manual_seed(1)
    module, calls = make().double(), []
    weights = list(module.parameters())

    def ours(*args: Any, **kwargs: Any) -> Any:
        calls.append(function)
        return getattr(ops, function)(*args, **kwargs)

    def results() -> list[Any]:
        first = given[0].clone()
        if first.is_floating_point():
            first.requires_grad_()
        with torch.no_grad():
            found = [module(first, *given[1:]) for _ in range(3)][-1]
        result = module(first, *given[1:])
        wanted = [x for x in (first, *weights) if x.requires_grad]
        return [found, result, *torch.autograd.grad(result.square().sum(), wanted)]

    wanted = results()
    monkeypatch.setattr(F, function, ours)
    found = results()
    assert len(calls) == 4
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


def test_what_we_lack_is_refused() -> None:
    table = torch.ones(6, 5)
    for i, (name, value) in enumerate(
        [("max_norm", 1.0), ("norm_type", "a"), ("scale_grad_by_freq", True)]
    ):
        refused(lambda x: ops.embedding(CLASSES, table, **x), {name: value}, name)
        taken = [None, 2.0, False][:i]
        refused(
            lambda x: ops.embedding(CLASSES, table, None, *x), [*taken, value], name
        )
    refused(lambda x: ops.embedding(CLASSES, table, **x), {"sparse": True}, "sparse")
    refused(lambda x: ops.relu(ROWS, x), 1, "inplace")
    refused(lambda x: ops.silu(ROWS, inplace=x), "a", "inplace")
    refused(lambda x: ops.softmax(ROWS, 1, None, x), ROWS, "_stacklevel")
    refused(lambda x: ops.mse_loss(ROWS, ROWS, weight=x), ROWS, "weight")
    index = torch.zeros(1, 1, dtype=torch.int64)
    refused(lambda x: ops.gather(ROWS, 0, index, sparse_grad=x), True, "sparse_grad")


@pytest.mark.parametrize("name", ["relu", "silu"])
def test_in_place(name: str) -> None:
    ours, theirs = getattr(ops, name), getattr(F, name)
    for _ in range(4):
        x = torch.randn(7, 6)
        for given in (x.clone(), x.numpy().copy()):
            assert ours(given, inplace=True) is given
            torch.testing.assert_close(torch.as_tensor(given), theirs(x))
        given = x.clone()
        assert ours(given, True) is given
        torch.testing.assert_close(given, theirs(x))
        assert ours(x, inplace=False) is not x


@pytest.mark.parametrize("name", ["relu", "silu"])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_training_in_place(name: str, is_compiled: bool) -> None:
    def run(function: Callable[..., Any]) -> list[Any]:
        def call(x: Any) -> Any:
            between = x * 2
            function(between, inplace=True)
            return between.cos()

        if is_compiled:
            call = torch.compile(call, fullgraph=True, backend="aot_eager")
        x = ROWS.clone().requires_grad_()
        found = call(x)
        return [found.detach(), *torch.autograd.grad(found.sum(), x)]

    for _ in range(3):
        found, wanted = run(getattr(ops, name)), run(getattr(F, name))
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    with pytest.raises(LaunchError) as caught:  # as torch refuses a leaf
        getattr(ops, name)(ROWS.clone().requires_grad_(), inplace=True)
    assert caught.value.code == "X0838"
    rows = ROWS.clone().requires_grad_() * 2
    with pytest.raises(LaunchError) as caught:
        ops.sum(rows, out=rows)
    assert caught.value.code == "X0827"


def refused(call: Callable[[Any], Any], wrong: object, name: str) -> None:
    with pytest.raises(LaunchError, match=f"{name}=") as caught:
        call(wrong)
    assert caught.value.code == "X0829"
    assert caught.value.file == __file__


def test_too_many_arguments() -> None:
    call: Any = ops.embedding
    with pytest.raises(TypeError, match="at most 7 arguments"):
        call(CLASSES, ROWS, None, None, 2.0, False, False, None)


def test_arguments_of_torch_under_autocast_and_compile() -> None:
    def both(x: Any, table: Any) -> Any:
        rows = ops.embedding(CLASSES, table, None, None, 2.0, False, False)
        return ops.softmax(ops.relu(x, inplace=False), 1, _stacklevel=5), rows

    compiled = torch.compile(both, fullgraph=True, backend="eager")
    wanted = torch.softmax(torch.relu(ROWS), 1), ROWS[CLASSES]
    with torch.autocast("cpu"):
        found = both(ROWS, ROWS)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(compiled(ROWS, ROWS), wanted)
