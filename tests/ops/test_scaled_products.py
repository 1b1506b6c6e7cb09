"""`ops.grouped_mm` and `ops.scaled_mm` against loops and wider numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from tests.ops.test_like_torch import BOUNDS, close
from xetl import ops
from xetl.errors import LaunchError
from xetl.language.dtypes import i32
from xetl.ops.calling.declare import FUNCTIONS
from xetl.ops.products.scaled_products import scaled_product

ENDS = [5, 5, 40, 70]


def by_loop(a: Any, b: Any) -> Any:
    starts = [0, *ENDS[:-1]]
    if b.ndim == 2:
        return torch.stack([a[:, i:j] @ b[i:j] for i, j in zip(starts, ENDS)])
    return torch.cat([a[i:j] @ each for i, j, each in zip(starts, ENDS, b)])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shapes", [((70, 33), (4, 33, 20)), ((33, 70), (70, 20))])
def test_groups(shapes: Any, dtype: Any) -> None:
    make = torch.Generator().manual_seed(0)
    ours = [torch.randn(each, generator=make).to(dtype) for each in shapes]
    theirs = [each.clone().requires_grad_() for each in ours]
    ours = [each.requires_grad_() for each in ours]
    found = ops.grouped_mm(*ours, torch.tensor(ENDS, dtype=torch.int32))
    wanted = by_loop(*theirs)
    close(found, wanted, BOUNDS[dtype])
    found.square().sum().backward()
    wanted.square().sum().backward()
    for one, two in zip(ours, theirs):
        close(one.grad, two.grad, 8 * BOUNDS[dtype])


def test_what_torch_is_told_of_groups() -> None:
    a, b = torch.randn(70, 8), torch.randn(4, 8, 5)
    ends = torch.tensor(ENDS, dtype=torch.int32)
    given = (a.requires_grad_(), b.requires_grad_(), ends)
    torch.library.opcheck(torch.ops.xetl.grouped_mm.default, given)
    wide = tuple(x.detach().double().requires_grad_() for x in given[:2])
    assert torch.autograd.gradcheck(ops.grouped_mm, (*wide, ends), fast_mode=True)
    with pytest.raises(LaunchError, match="`offs` of i64"):
        ops.grouped_mm(a, b, ends.long())
    with pytest.raises(LaunchError, match="`offs` is"):
        ops.grouped_mm(a, b, ends[:2])


@pytest.mark.parametrize("turned", [False, True])
def test_ends_are_read_by_the_launch(turned: bool) -> None:
    """The same launch for other ends, of groups of any size."""
    rng = np.random.default_rng(3)
    a, b, c = (
        rng.integers(-3, 4, shape).astype(np.float32)
        for shape in ((90, 33), (4, 33, 20), (90, 20))
    )
    if turned:
        a, b = (
            np.asfortranarray(a),
            np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2),
        )
    for ends in ([90] * 4, [0, 0, 0, 90], [1, 1, 90, 90], [20, 50, 70, 90]) * 2:
        offs, starts = np.array(ends, np.int32), [0, *ends[:-1]]
        wanted = [a[i:j] @ b[g] for g, (i, j) in enumerate(zip(starts, ends))]
        assert np.array_equal(ops.grouped_mm(a, b, offs), np.concatenate(wanted))
        wanted = [a.T[:, i:j] @ c[i:j] for i, j in zip(starts, ends)]
        assert np.array_equal(ops.grouped_mm(a.T, c, offs), np.stack(wanted))
    plans = FUNCTIONS["xetl::grouped_mm"].plans._known.values()
    assert all(len(plan.steps) <= 1 for plan in plans)


@pytest.mark.parametrize("kind", ["int8", "float8_e4m3fn"])
@pytest.mark.parametrize("per_row", [False, True])
def test_scales(kind: str, per_row: bool) -> None:
    make = torch.Generator().manual_seed(0)
    a, w = (torch.randn(each, generator=make) * 20 for each in ((33, 64), (50, 64)))
    a, w = (each.to(getattr(torch, kind)) for each in (a, w))
    scales = torch.rand(33, 1) + 0.5, torch.rand(1, 50) + 0.5
    if not per_row:
        scales = torch.tensor([0.5]), torch.tensor([0.25])
    bias = torch.randn(50)
    found = ops.scaled_mm(a, w.T, *scales, bias, torch.bfloat16)
    wanted = (a.double() @ w.double().T) * scales[0] * scales[1] + bias
    assert found.dtype is torch.bfloat16
    close(found.double(), wanted, 2.0**-7)
    wide = ops.scaled_mm(a, w.T, *scales)
    close(wide, (wanted - bias).float(), 1e-5)
    if kind == "int8":  # Of 8-bit floats torch cannot compare results
        torch.library.opcheck(torch.ops.xetl.scaled_mm.default, (a, w.T, *scales, bias))


def test_what_is_refused() -> None:
    a, one = np.ones((4, 8), np.int8), np.ones(1, np.float32)
    for code, call in (
        ("X0827", lambda: ops.scaled_mm(a, a, one, one)),
        ("X0827", lambda: ops.scaled_mm(a, a.T, one, np.ones(3, np.float32))),
        ("X0828", lambda: ops.scaled_mm(a, a.T, one, one.astype(np.float64))),
        ("X0828", lambda: ops.scaled_mm(a, a.T.astype(np.float32), one, one)),
    ):
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.code == code


def test_linear_names_its_arguments() -> None:
    x, w = np.ones((4, 8), np.float32), np.ones((5, 7), np.float32)
    with pytest.raises(
        LaunchError, match=r"`linear`: `input` is .* `weight` is"
    ) as one:
        ops.linear(x, w)
    assert one.value.file == __file__
    with pytest.raises(LaunchError, match="input of dtype f32 and weight of dtype f64"):
        ops.linear(x, np.ones((5, 8)))


@pytest.mark.parametrize("is_one", [(False, False), (True, False), (False, True)])
def test_only_rows_of_the_matrix_are_multiplied(is_one: tuple[bool, bool]) -> None:
    """33 rows are no 64: the product knows how many are stored."""
    sizes = [1 if one else n for one, n in zip(is_one, (33, 96))]
    types = f"i8[33,64] i8[64,96] f32[{sizes[0]}] f32[{sizes[1]}] None f32[33,96]"
    tiles = {"SUMS": i32, "IS_ONE": is_one, "BM": 64, "BN": 64, "BK": 32}
    text = scaled_product.ir("xsmm", types, backend="cpu", **tiles)
    (product,) = (line for line in text.splitlines() if "xsmm.brgemm.tile(" in line)
    assert " rows %" in product
    assert " cols %" in product
