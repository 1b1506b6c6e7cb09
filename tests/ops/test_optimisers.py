"""`ops.adamw` and `ops.sgd` against the optimisers of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from xetl import ops
from xetl.errors import LaunchError

BOUNDS = {torch.float64: 1e-12, torch.float32: 1e-5}
SETTINGS = [
    ("adamw", {}),
    ("adamw", {"lr": 0.1, "weight_decay": 0.3, "maximize": True}),
    ("sgd", {"lr": 0.1}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("sgd", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
]


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize(("name", "options"), SETTINGS)
def test_five_steps(name: str, options: Any, dtype: Any) -> None:
    ours = [torch.randn(33, 130, dtype=dtype).T, torch.randn(5000, dtype=dtype)]
    theirs = [torch.nn.Parameter(each.clone()) for each in ours]
    kinds = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    optimiser = kinds[name](theirs, **options)
    states = [[torch.zeros_like(each) for each in ours] for _ in range(2)]
    for step in range(1, 6):
        for each in theirs:
            each.grad = torch.randn_like(each)
        optimiser.step()
        grads = [each.grad for each in theirs]
        if name == "adamw":
            ops.adamw(ours, grads, *states, step, **options)
        else:
            ops.sgd(
                ours, grads, states[0] if "momentum" in options else None, **options
            )
    for one, two in zip(ours, theirs):
        torch.testing.assert_close(one, two.detach(), rtol=BOUNDS[dtype], atol=1e-6)
        assert one._version > 0


def test_states_may_be_wider_and_gradients_may_be_missing() -> None:
    p, g = torch.ones(40).bfloat16(), torch.randn(40).bfloat16()
    m, v = torch.zeros(40), torch.zeros(40)
    other = np.ones(3, np.float32)
    ops.adamw([p], [g], [m], [v], 1, lr=0.5)
    torch.testing.assert_close(m, g.float() * 0.1)
    torch.testing.assert_close(p, (1 - 0.005 - 0.5 * g.sign()).to(p.dtype))
    ops.sgd([other, other], [None, np.ones(3, np.float32)], lr=0.25)
    assert other.tolist() == [0.75] * 3


def test_what_torch_is_told_of_a_step() -> None:
    arrays = [torch.rand(20) for _ in range(4)]
    numbers = (0.1, 0.9, 0.99, 0.1, 1e-8, 0.1, 0.2)
    torch.library.opcheck(torch.ops.xetl.adamw_step.default, (*arrays, *numbers))
    sgd = torch.ops.xetl.sgd_step.default
    torch.library.opcheck(sgd, (*arrays[:2], None, 0.1, 0.0, 0.0, 0.0, False))
    found, wanted = [each.clone() for each in arrays], [each.clone() for each in arrays]
    compiled = torch.compile(
        lambda p, g, m, v: ops.adamw([p], [g], [m], [v], 2),
        fullgraph=True,
        backend="aot_eager",
    )
    compiled(*found)
    ops.adamw(*([each] for each in wanted), 2)
    for one, two in zip(found, wanted):
        assert torch.equal(one, two)


def test_what_is_refused() -> None:
    p = torch.ones(3, requires_grad=True)
    with pytest.raises(LaunchError, match="requires a gradient") as caught:
        ops.sgd([p], [torch.ones(3)])
    assert caught.value.code == "X0838"
    with pytest.raises(LaunchError, match="same shape"):
        ops.sgd([torch.ones(3)], [torch.ones(4)])


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("X0827", (2, 1, 2, 2, 1)),
        ("X0827", (2, 2, 2, 1, 1)),
        ("X0827", (1, 1, 3, 1, 1)),
        ("X0829", (1, 1, 1, 1, 0)),
        ("X0829", (1, 1, 1, 1, "a")),
    ],
)
def test_nothing_is_changed_by_what_is_refused(
    code: str, given: tuple[Any, ...]
) -> None:
    """Lists of so many arrays (3: no list), or step 0, which would divide by 0."""
    arrays = [torch.ones(3) for _ in range(2)]
    *counts, step = given
    lists: Any = [x if x == 3 else arrays[:x] for x in counts]
    with pytest.raises(LaunchError) as caught:
        ops.adamw(lists[0], lists[1], lists[2], lists[3], step)
    assert caught.value.code == code
    assert all(torch.equal(each, torch.ones(3)) for each in arrays)


def test_sgd_refuses_lists_of_other_lengths() -> None:
    p = torch.ones(3)
    wrong: Any = (([p, p], [p]), ([p], [p], [p, p]), ([p], 3), (3, [p]))
    for given in wrong:
        with pytest.raises(LaunchError) as caught:
            ops.sgd(*given)
        assert caught.value.code == "X0827"
    assert torch.equal(p, torch.ones(3))
