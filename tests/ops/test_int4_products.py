"""`ops.linear_int4` against the product with the numbers it stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from tests.ops.test_like_torch import BOUNDS, close
from xetl import ops
from xetl.errors import LaunchError
from xetl.language.dtypes import bf16, f32
from xetl.ops.calling.declarations import Operand
from xetl.ops.products import int4_products
from xetl.ops.products.int4_products import cut_int4, int4_product, int4_rows
from xetl.settings import config


def operands(n: int, k: int, groups: int, dtype: Any) -> tuple[Any, ...]:
    """Numbers (n, k), the same as bytes, scales and zeros."""
    rng = np.random.default_rng([n, k])
    q = rng.integers(0, 16, (n, k), dtype=np.uint8)
    parts = q.T.reshape(groups, 2, k // groups // 2, n)
    weight = (parts[:, 1] << 4 | parts[:, 0]).reshape(k // 2, n)
    scales, zeros = rng.random((2, groups, n)) + 0.5
    rest = [torch.from_numpy(x).to(dtype) for x in (scales, zeros - 1)]
    return torch.from_numpy(q), torch.from_numpy(weight), *rest


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("m", [1, 2, 3, 6, 70])
@pytest.mark.parametrize(("groups", "has_zeros"), [(1, False), (3, True)])
def test_values(m: int, groups: int, has_zeros: bool, dtype: Any) -> None:
    n, k = 150, 96
    q, weight, scales, zeros = operands(n, k, groups, dtype)
    make = torch.Generator().manual_seed(m)
    x, bias = (torch.randn(each, generator=make).to(dtype) for each in ((m, k), (n,)))
    w = (q.double() - 8) * scales.double().T.repeat_interleave(k // groups, 1)
    if has_zeros:
        w += zeros.double().T.repeat_interleave(k // groups, 1)
    rest = (zeros, bias) if has_zeros else ()
    found = ops.linear_int4(x, weight, scales, *rest)
    wanted = x.double() @ w.T + (bias.double() if has_zeros else 0)
    close(found, wanted.to(dtype), BOUNDS[dtype])
    turned = x.T.contiguous().T[None]
    close(ops.linear_int4(turned, weight, scales, *rest), found[None], BOUNDS[dtype])
    if dtype is torch.float32:
        arrays = [each.numpy() for each in (x, weight, scales, *rest)]
        close(torch.from_numpy(ops.linear_int4(*arrays)), found, 1e-6)


def operands_of(m: int) -> tuple[Any, ...]:
    """Of a kernel for m rows of bf16, that lie as they should."""
    _, weight, scales, zeros = operands(128, 64, 2, torch.bfloat16)
    x, out = (torch.ones(m, n, dtype=torch.bfloat16) for n in (64, 128))
    return x, weight.contiguous(), scales, zeros, None, out


@pytest.mark.parametrize("m", [1, 4])
def test_a_byte_becomes_two_floats_once_for_all_rows(m: int) -> None:
    """As 32 bits: extended, masked, shifted, converted twice; 8 is taken off later."""
    constants = f32, 16, 16, m, 16, 128
    code = int4_rows.ir("loops", *operands_of(m), *constants, target="avx2")
    start = code.index("arith.shrsi")
    whole = code[code.rindex("scf.if", 0, start) : code.index("} else {", start)]
    counts = [whole.count(f"arith.{name} ") for name in ("extui", "andi", "shrsi")]
    assert counts == [2, 2, 2]  # vectors of 16 columns
    assert (whole.count("arith.sitofp "), whole.count("math.fma ")) == (4, 4 * m)


@pytest.mark.parametrize("m", [2, 16])
def test_both_halves_of_a_group_are_one_product(m: int) -> None:
    code = int4_product.ir("xetile", *operands_of(m), f32, bf16, 16, m, 128)
    assert code.count("xetile.tile_mma") == 1


@pytest.mark.parametrize(
    ("target", "m", "rows", "block"),
    [
        *(("avx2", 1, 1, 64), ("avx2", 2, 2, 32), ("avx2", 5, 3, 16)),
        *(("avx2", 8, 4, 16), ("avx2", 70, 4, 16)),
        *(("avx512", 1, 1, 256), ("avx512", 8, 4, 64), ("avx512", 9, 16, None)),
    ],
)
def test_few_rows_need_no_product(
    target: str, m: int, rows: int, block: int | None
) -> None:
    """Nor do many rows where products have few registers; sums take half of these."""
    config.target = target
    x = np.zeros((m, 1024), np.float32)
    try:
        kernel, grid, constants = cut_int4(Operand("x", x.shape, f32, x), m, 4096, 64)
    finally:
        del config.target
    if block is None:
        assert (kernel, constants) == (int4_product, (f32, f32, 64, rows, 128))
    else:
        assert (kernel, constants) == (int4_rows, (f32, 64, 16, rows, block, 1024))
    assert grid == (-(-4096 // constants[-1]), -(-m // rows), 1)


def test_columns_of_bytes_are_copied_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of NumPy's recipe lie along k until somebody makes them contiguous."""
    _, weight, scales, _ = operands(70, 128, 2, torch.float32)
    assert weight.stride() == (1, 64)
    x = torch.randn(1, 128)
    copied, names = int4_products.copied, list[str]()

    def noted(source: Any, *rest: Any) -> Any:
        names.append(source.name)
        return copied(source, *rest)

    monkeypatch.setattr(int4_products, "copied", noted)
    found = ops.linear_int4(x, weight, scales)
    assert names == ["weight"]
    straight = ops.linear_int4(x, weight.contiguous(), scales)
    torch.testing.assert_close(found, straight, rtol=0, atol=0)


def test_the_numbers_are_those_of_torch() -> None:
    q, weight, scales, zeros = operands(64, 128, 4, torch.bfloat16)
    x = torch.randn(4, 128).bfloat16()
    pack = torch._convert_weight_to_int4pack_for_cpu
    both = torch.stack([scales, zeros], -1)
    like = torch._weight_int4pack_mm_for_cpu
    wanted = like(x, pack(q.int(), 1), 32, both)
    close(ops.linear_int4(x, weight, scales, zeros), wanted, 2.0**-5)
    torch.library.opcheck(torch.ops.xetl.linear_int4.default, (x, weight, scales))


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("X0827", lambda x, w, s: ops.linear_int4(x[:, :-1], w, s)),
        ("X0827", lambda x, w, s: ops.linear_int4(x, w, s[:3])),
        ("X0827", lambda x, w, s: ops.linear_int4(x, w, s, s[:2])),
        ("X0827", lambda x, w, s: ops.linear_int4(x, w, s, None, s)),
        ("X0828", lambda x, w, s: ops.linear_int4(x, w.to(torch.int8), s)),
        ("X0828", lambda x, w, s: ops.linear_int4(x, w, s.double())),
    ],
)
def test_what_is_refused(code: str, call: Any) -> None:
    _, weight, scales, _ = operands(20, 64, 4, torch.float32)
    with pytest.raises(LaunchError) as caught:
        call(torch.ones(3, 64), weight, scales)
    assert caught.value.code == code
    assert caught.value.file == __file__
