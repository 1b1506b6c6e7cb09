"""Rows added up by number: derivatives of what selects rows, and `scatter_add`."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from xetl import ops

SHAPES = [((50, 20), 0), ((5, 30, 6), 1), ((4, 300), 0), ((3, 4, 2, 3), -3), ((7,), 0)]


def gradient(function: Any, x: Any, *args: Any) -> Any:
    x = x.detach().requires_grad_()
    made = function(x, *args)
    wanted = torch.linspace(-1, 1, made.numel(), dtype=torch.float64)
    (found,) = torch.autograd.grad(made, x, wanted.reshape(made.shape).to(x.dtype))
    return found


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_rows_that_were_selected(shape: Any, dim: int, dtype: Any) -> None:
    x = torch.randn(shape, dtype=torch.float64)
    bound = torch.finfo(dtype).eps
    for count in (0, 1, 90):
        for kind in (torch.int32, torch.int64):
            index = torch.randint(shape[dim], (count,)).to(kind)
            wanted = gradient(torch.index_select, x.to(dtype).double(), dim, index)
            found = gradient(ops.index_select, x.to(dtype), dim, index)
            # Gradients are rounded as they come in, sums as they go out.
            torch.testing.assert_close(
                found.double(), wanted, rtol=bound, atol=2 * count * bound
            )
    index = torch.randint(shape[dim], (9,))
    given = x.requires_grad_(), dim, index
    assert torch.autograd.gradcheck(ops.index_select, given, fast_mode=True)


@pytest.mark.parametrize("columns", [1, 2, 5, 16, 17, 40, 56, 96, 136, 300])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int8])
def test_narrow_rows_and_numbers_that_there_are_not(columns: int, dtype: Any) -> None:
    x = torch.randint(1, 100, (2, 30, columns)).to(dtype)
    index = torch.randint(-40, 70, (150,))
    there = (index >= 0) & (index < 30)
    wanted = torch.where(there[:, None], x[:, index.clamp(0, 29)], 0)
    assert torch.equal(ops.index_select(x, 1, index), wanted)
    assert torch.equal(ops.embedding(index, x[0]), wanted[0])


TABLES = {
    "whole": lambda x: x,
    "not at a multiple of its words": lambda x: x.reshape(-1)[1:1201].reshape(25, 48),
    "a part of rows": lambda x: x[:, 3:27],
    "rows of odd strides": lambda x: x.reshape(-1)[: 49 * 20].reshape(20, 49)[:, :48],
    "every second column": lambda x: x[:, ::2],
    "columns": lambda x: x[:20, :].T,
    "the same row": lambda x: x[:1].expand(9, 48),
    "rows backwards": lambda x: x.flip(0),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool])
def test_rows_move_as_they_lie(name: str, dtype: Any) -> None:
    x = TABLES[name](torch.randn(30, 48).to(dtype))
    if dtype is not torch.bool:
        x[0, 1], x[0, 2], x[0, 3] = float("nan"), float("-inf"), -0.0
    for count in (1, 5, 70):
        index = torch.randint(len(x), (count,))
        index[0] = 0
        outs = [None, None, None, torch.empty(count, 2 * x.shape[1])[:, ::2].to(dtype)]
        if dtype is torch.float32:
            outs.append(torch.empty(count, x.shape[1], dtype=torch.float64))
        for out in outs:
            found = ops.embedding(index, x, out=out)
            wanted = x[index].to(found.dtype)
            assert torch.equal(found.nan_to_num(7), wanted.nan_to_num(7))
            assert torch.equal(found.signbit(), wanted.signbit())
    assert not ops.embedding(torch.tensor([0, 3]), x[:0]).any()
    assert ops.embedding(index, x[:, :0]).shape == (70, 0)


@pytest.mark.parametrize(("shape", "dim"), SHAPES[:-1])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64])
def test_an_index_that_says_the_same_of_a_whole_row(
    shape: Any, dim: int, dtype: Any
) -> None:
    x = torch.randint(-9, 9, shape).to(dtype)
    rows = [1] * len(shape)
    rows[dim] = 70
    larger = list(shape)
    larger[dim] = 70
    index = torch.randint(shape[dim], rows).expand(larger)
    source = torch.randint(-3, 3, larger).to(dtype)
    wanted = torch.scatter_add(x.double(), dim, index, source.double()).to(dtype)
    assert torch.equal(ops.scatter_add(x, dim, index, source), wanted)
    out = torch.empty_like(x)
    ops.scatter_add(x, dim, index, source, out=out)
    assert torch.equal(out, wanted)
    turned = source.transpose(0, -1).contiguous().transpose(0, -1)
    assert torch.equal(ops.scatter_add(x, dim, index, turned), wanted)
    ops.scatter_add(x, dim, index, source, out=x)
    assert torch.equal(x, wanted)


def test_numbers_of_no_row_add_nothing() -> None:
    x, index = torch.zeros(4, 3), torch.tensor([-1, 4, 2, 2])[:, None].expand(4, 3)
    wanted = torch.tensor([0.0, 0, 2, 0])[:, None].expand(4, 3)
    assert torch.equal(ops.scatter_add(x, 0, index, torch.ones(4, 3)), wanted)


@pytest.mark.parametrize("shape", [(9, 1), (3, 17, 1), (1, 1), (2, 1, 40, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_one_of_each_row(shape: Any, dtype: Any) -> None:
    x = torch.randint(-9, 9, (*shape[:-1], 21)).to(dtype)
    index = torch.randint(21, shape)
    turned = x.transpose(0, -1).contiguous().transpose(0, -1)
    for each in (x, turned, x[..., 2:19], x[..., ::2]):
        places = index % each.shape[-1]
        wanted = torch.gather(each, -1, places)
        assert torch.equal(ops.gather(each, -1, places), wanted)
        out = torch.empty(*shape[:-1], 2, dtype=dtype)[..., :1]
        assert torch.equal(ops.gather(each, -1, places, out=out), wanted)
    outside = index - 21
    assert not ops.gather(x, -1, outside).any()


@pytest.mark.parametrize("shape", [(70, 50), (130, 7), (2, 40, 300), (3, 67, 2)])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32]
)
def test_sums_along_many_rows(shape: Any, dtype: Any) -> None:
    """A program copies a block of rows, then adds to them; some rows have no index."""
    fewer = *shape[:-2], shape[-2] - 3, 9
    x, source = torch.randint(-9, 9, shape), torch.randint(-9, 9, (*shape[:-1], 11))
    index = torch.randint(shape[-1], fewer)
    wanted = torch.scatter_add(x, -1, index, source).to(dtype)
    given = x.to(dtype), -1, index, source.to(dtype)
    assert torch.equal(ops.scatter_add(*given), wanted)
    out = torch.empty_like(wanted)
    ops.scatter_add(*given, out=out)
    assert torch.equal(out, wanted)


@pytest.mark.parametrize("shape", [(70, 3), (130, 50), (2, 40, 300), (3, 67, 2)])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32]
)
def test_sums_down_columns(shape: Any, dtype: Any) -> None:
    """An index for each element; some are outside, and some columns have none."""
    more = *shape[:-2], 90, shape[-1] - 1
    x, source = torch.randint(-9, 9, shape), torch.randint(-9, 9, more)
    index = torch.randint(-1, shape[-2] + 1, more)
    is_there = (index >= 0) & (index < shape[-2])
    places = index.clamp(0, shape[-2] - 1)
    wanted = torch.scatter_add(x, -2, places, source * is_there).to(dtype)
    given = x.to(dtype), -2, index, source.to(dtype)
    assert torch.equal(ops.scatter_add(*given), wanted)
    out = torch.empty_like(wanted)
    ops.scatter_add(*given, out=out)
    assert torch.equal(out, wanted)
    ops.scatter_add(*given, out=given[0])
    assert torch.equal(given[0], wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
@pytest.mark.parametrize(
    ("shape", "index_shape", "dim"),
    [
        ((7, 1), (90, 1), 0),
        ((3, 7, 1), (3, 20, 1), 1),
        ((3, 40, 1, 1), (2, 9, 1, 1), 1),
    ],
)
def test_rows_of_one_element_are_elements(
    shape: Any, index_shape: Any, dim: int, dtype: Any
) -> None:
    """A column of edges is added as a line of them is."""
    make = torch.Generator().manual_seed(0)
    x, src = (
        torch.randint(-9, 9, each, generator=make).to(dtype)
        for each in (shape, (*index_shape[:-1], 3))
    )
    index = torch.randint(shape[dim], index_shape, generator=make)
    found = ops.scatter_add(x, dim, index, src)
    assert torch.equal(found, x.scatter_add(dim, index, src))
    if dtype.is_floating_point:
        x.requires_grad_()
        taken = ops.gather(x, dim, index)
        assert torch.equal(taken, x.gather(dim, index))
        weights = src[..., :1].contiguous()
        (by_x,) = torch.autograd.grad(taken, x, weights)
        assert torch.equal(by_x, torch.zeros_like(x).scatter_add(dim, index, weights))
