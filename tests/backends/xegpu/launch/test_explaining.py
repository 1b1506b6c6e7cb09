"""What `explain` and `stats` say of a kernel for a device."""

from __future__ import annotations

from typing import Any

from launched import scale

from xetl import xetile
from xetl.xetile import constexpr, f32, wg_map


@xetile.kernel
def step(A, B, C):
    """32 columns of A by as many rows of B: what a subgroup does in a step."""
    own = wg_map(sg_layout=[1, 2], sg_data=[32, 64])
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (32, 32)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (32, 128)))
    c = xetile.tile_mma(a, b, xetile.zeros((32, 128), f32), wg_map=own)
    xetile.store_tile(c, xetile.init_tile(C, [0, 0], (32, 128)))


def texts(report: Any, topic: str) -> list[str]:
    remarks = report.remarks
    return [each.text for each in remarks if each.topic == topic]


def test_messages_and_workgroup() -> None:
    report = step.explain("f16[M,K] f16[K,N] f32[M,N]", target="pvc")
    assert texts(report, "workgroup") == ["a program is 2 subgroups of 16 lanes"]
    (text,) = texts(report, "messages")
    assert "has 32 dpas, 3 block loads, 16 block stores; " in text
    assert "whose arguments 0, 1, 2 do not fit block messages" in text


def test_sizes() -> None:
    stats = step.stats("f16[M,K] f16[K,N] f32[M,N]", target="pvc")
    assert stats.grf in (128, 256)
    assert stats.slm_bytes == 0
    assert stats.code_bytes is not None
    assert stats.code_bytes > 1000


def test_a_kernel_of_one_subgroup() -> None:
    report = scale.explain("f32[M,N] f32[M,N] f64", target="bmg")
    assert texts(report, "workgroup") == ["a program is 1 subgroup of 16 lanes"]
    (text,) = texts(report, "messages")
    assert "dpas" not in text
    assert "arguments 0, 1 do not fit" in text


@xetile.kernel
def of_a_batch(X, C, b, h, IN_STEPS: constexpr):
    matrix = X[b][h] if IN_STEPS else X[b, h]
    x = xetile.load_tile(xetile.init_tile(matrix.T, [0, 0], (16, 32)))
    xetile.store_tile(x, xetile.init_tile(C, [0, 0], (16, 32)))


def test_views_of_views_are_moved_by_the_same_messages() -> None:
    """``X[b][h]`` is the matrix ``X[b, h]``."""
    for dtype in ("f32", "bf16"):
        given = f"{dtype}[b,h,M,N] {dtype}[M,N] i64 i64"
        both = [
            texts(of_a_batch.explain(given, target="pvc", IN_STEPS=steps), "messages")
            for steps in (False, True)
        ]
        assert both[0] == both[1]
        assert "block loads" in both[0][0]
