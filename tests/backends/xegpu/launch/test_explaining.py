"""What `explain` and `stats` say of a kernel for a device."""

from __future__ import annotations

from typing import Any

from launched import scale

from xetl import xetile
from xetl.xetile import f32, wg_map


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
