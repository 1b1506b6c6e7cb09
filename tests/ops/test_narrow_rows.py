"""Many rows of a few elements: sums and extremes, running sums, selected columns."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from xetl import ops
from xetl.ops.rows.running_sums import cumsum_backward

COLUMNS = [1, 2, 3, 8, 9, 16, 24, 25]
ROWS = [1, 7, 16, 1013]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.int64]
LAYOUTS = {
    "whole": lambda x: x,
    "every second row": lambda x: x[::2],
    "a part of rows": lambda x: x.repeat(1, 2)[:, 1 : x.shape[1] + 1],
    "columns": lambda x: x.T.contiguous().T,
    "three dimensions": lambda x: x[:, None, :].expand(-1, 2, -1),
    "backwards": lambda x: x.flip(0),
}


def numbers(rows: int, columns: int, dtype: Any) -> Any:
    """Small integers, whose sums are exact, in no order."""
    x = torch.randint(-9, 9, (rows, columns))
    return x.to(dtype)


@pytest.mark.parametrize("columns", [(3, 16, 25), (1, 8, 24), (2, 9)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_running_sums(dtype: Any, layout: str, columns: tuple[int, ...]) -> None:
    for shape in product(ROWS, columns):
        x = LAYOUTS[layout](numbers(*shape, dtype))
        wanted = torch.cumsum(x, -1)
        for _ in range(3):
            assert torch.equal(ops.cumsum(x, -1), wanted)
        back = cumsum_backward(x, -1, None)
        assert torch.equal(back, wanted[..., -1:] - wanted + x)
        out = torch.empty((*x.shape, 2), dtype=wanted.dtype)[..., 0]
        assert torch.equal(ops.cumsum(x, -1, out=out), wanted)
        if layout == "whole" and dtype == wanted.dtype:
            assert torch.equal(ops.cumsum(x, -1, out=x), wanted)
            assert torch.equal(x, wanted)


def test_running_sums_of_one_row_keep_to_it() -> None:
    for columns in (3, 8):
        x = torch.ones(100, columns)
        x[::3, 1], x[1::3, 0] = float("nan"), float("inf")
        torch.testing.assert_close(
            ops.cumsum(x, 1), torch.cumsum(x, 1), equal_nan=True, rtol=0, atol=0
        )
        y = torch.randn(9, columns, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda a: ops.cumsum(a, 1), (y,))
    assert ops.cumsum(torch.ones(0, 3), 1).shape == (0, 3)
    assert ops.cumsum(torch.ones(3, 0), 1).shape == (3, 0)
    assert ops.cumsum(torch.tensor(3.0), 0) == 3


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [*DTYPES, torch.int8])
def test_extremes(dtype: Any, layout: str) -> None:
    for columns in COLUMNS:
        for rows in ROWS:
            x = numbers(rows, columns, dtype)
            if dtype.is_floating_point:
                x[rows // 2, columns // 2] = float("nan")
                x[rows // 3] = float("-inf")
            x = LAYOUTS[layout](x)
            # torch says which of equal numbers is first only of the place alone.
            for pair, place in ((ops.max, torch.argmax), (ops.min, torch.argmin)):
                wanted = place(x, -1, keepdim=True)
                values, places = pair(x, -1, True)
                assert torch.equal(places, wanted)
                there = torch.gather(x, -1, wanted)
                torch.testing.assert_close(values, there, equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8])
def test_reductions(dtype: Any, layout: str) -> None:
    """Numbers are small integers, so that sums are exact."""
    for columns in (1, 3, 6, 7):
        for rows in (1, 16, 1013):
            x = LAYOUTS[layout](numbers(rows, columns, dtype))
            for name in ("sum", "amax", "amin"):
                wanted = getattr(torch, name)(x, -1, rows > 1)
                found = getattr(ops, name)(x, -1, rows > 1)
                assert torch.equal(found, wanted), (name, rows, columns)
    for shape in ((0, 3), (4, 0)):
        assert torch.equal(ops.sum(torch.ones(shape), 1), torch.zeros(shape[0]))
    y = torch.ones(70, 3)
    y[1, 2], y[69, 0] = float("nan"), -float("inf")
    for name in ("amax", "amin", "sum"):
        wanted = getattr(torch, name)(y, -1)
        torch.testing.assert_close(getattr(ops, name)(y, -1), wanted, equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_selected_columns(dtype: Any, layout: str) -> None:
    """By an index that all rows share, and by one for each row; some are outside."""
    for columns in COLUMNS:
        for rows in ROWS:
            x = LAYOUTS[layout](numbers(rows, columns, dtype))
            shared = torch.randint(-1, columns + 1, (columns + 2,))
            own = torch.randint(-1, columns + 1, (*x.shape[:-1], columns + 2))
            for index, got in (
                (shared.expand(own.shape), ops.index_select(x, -1, shared)),
                (own, ops.gather(x, -1, own)),
            ):
                is_there = (index >= 0) & (index < columns)
                wanted = torch.gather(x, -1, index.clamp(0, columns - 1))
                assert torch.equal(got, wanted * is_there), (rows, columns)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_functions_of_few_columns(dtype: Any, layout: str) -> None:
    bounds = {"rtol": 0, "atol": 4e-2 if dtype == torch.bfloat16 else 1e-5}
    for name in ("softmax", "log_softmax", "gelu"):
        theirs = getattr(torch.nn.functional, name)
        along = {} if name == "gelu" else {"dim": -1}
        for columns in (1, 3, 8, 9):
            x = LAYOUTS[layout](torch.randn(1013, columns).to(dtype))
            x, grad = x.detach(), torch.rand(x.shape).to(dtype)
            exact = x.double().requires_grad_()
            wanted = theirs(exact, **along)
            wanted.backward(grad.double())
            found = getattr(ops, name)(x.requires_grad_(), **along)
            torch.testing.assert_close(found.double(), wanted, **bounds)
            (by_x,) = torch.autograd.grad(found, x, grad)
            torch.testing.assert_close(by_x.double(), exact.grad, **bounds)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_columns_alone_are_rows(name: str) -> None:
    """Along dimensions that only dimensions of one element follow."""
    for shape, dim in (((676, 1), 0), ((3, 50, 1, 1), 1), ((1, 1), 0), ((20, 1), 1)):
        for x in (torch.randn(shape), torch.randn(*shape[:-1], 3)[..., :1]):
            x, grad = x.double().requires_grad_(), torch.randn(shape).double()
            found, wanted = (getattr(f, name)(x, dim) for f in (ops, torch))
            torch.testing.assert_close(found, wanted)
            (by_x,) = torch.autograd.grad(found, x, grad)
            torch.testing.assert_close(by_x, torch.autograd.grad(wanted, x, grad)[0])
