"""Compiling for arguments that are described in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xetl.errors import LaunchError
from xetl.language import dtypes
from xetl.language.operation import constexpr
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam
from xetl.runtime.kernel import kernel
from xetl.settings import no_compile


def make() -> Any:
    def k(A, B, C=None, n=1.0, BM: constexpr = 32, flag=False):
        pass

    return kernel(k)


def params(fake: Any) -> tuple[Any, ...]:
    return fake.compiled[-1][1].params


def test_signature(fake: Any) -> None:
    make().warmup("bf16[M, 64]  f32[64,N]^T None f32", BM=64)
    assert params(fake) == (
        ArrayParam("A", dtypes.bf16, 2, 1),
        ArrayParam("B", dtypes.f32, 2, 0),
        ConstParam("C", None),
        ScalarParam("n", "f64"),
        ConstParam("BM", 64),
        ScalarParam("flag", "i1"),
    )
    make().warmup("f16[H,N,64] float64[9] f16[H,N,64]^T i32 i1")
    a, b, c, n, bm, flag = params(fake)
    assert (a.rank, a.unit_dim, b.rank, b.unit_dim, c.unit_dim) == (3, 2, 1, 0, 1)
    assert (n.kind, bm.value, flag.kind) == ("i64", 32, "i1")


def test_a_launch_finds_it_compiled(fake: Any) -> None:
    k = make()
    k.warmup("f32[M,N] f32[N]")
    with no_compile():
        k[1](np.zeros((3, 4), "f4"), np.zeros(4, "f4"))
    assert len(fake.launches) == 1


def test_ir(fake: Any) -> None:
    assert make().ir("llvm", "f32[M] f32[M]", target="avx2") == "k at llvm for avx2"


@pytest.mark.parametrize(
    ("text", "why", "advice"),
    [
        ("f32[M", "`f32[M` cannot be read", "write dtypes and sizes"),
        ("f32[M] @", "`@` cannot be read", "write dtypes"),
        ("float31[M] f32", "`float31` is not the dtype", "did you mean `float3"),
        ("tf32[M] f32", "`tf32` is not the dtype", ""),
        ("f32[] f32", "`` is neither the name of a size", "write"),
        ("f32[M,0] f32", "`0` is neither the name of a size", "write"),
        ("f32[M,9999999999999999999] f32", "9` is neither the name of a", "write"),
        ("f32[M]^T f32", "only arrays of rank 2", "write"),
        ("i64 " * 6, "it has 6 arguments for 5 parameters", "`A`, `B`, `C`"),
    ],
)
def test_wrong(fake: Any, text: str, why: str, advice: str) -> None:
    with pytest.raises(LaunchError) as caught:
        make().warmup(text)
    assert why in str(caught.value)
    assert advice in (caught.value.help or "")


def test_missing(fake: Any) -> None:
    with pytest.raises(LaunchError, match="without `B`"):
        make().warmup("f32[M]")
