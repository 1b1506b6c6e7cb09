"""Barriers and fences in the code of GPUs: they are there, and of the right kind."""

from __future__ import annotations

import re

import pytest

from tests.backends.xegpu.emit.on_opencl import kernel, parsed
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from tests.backends.xegpu.spirv_tools import validate
from xetl_xegpu.emit.emitter import LINE
from xetl_xegpu.emit.module import emit
from xetl_xegpu.offline.ocloc import KernelFacts, compile_spirv

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
TARGETS = ("pvc", "bmg")

_STEPS = re.compile(r"(fence\.\w+\.\w+\.\w+|signal barrier|sync\.bar|dpas)")
PRODUCT = """
      %x = arith.constant dense<1> : vector<8xi16>
      %y = arith.constant dense<1> : vector<8xi32>
      %z = arith.constant dense<0.0> : vector<8xf32>
      %c = simt.dpas %x, %y, %z {a_type = "bf16", b_type = "bf16"}
          : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
      %e = vector.extract %c[0] : f32 from vector<8xf32>"""
STORE = "simt.store %e, %p, %on : f32"


def compiled(body: str, target: str) -> tuple[list[str], KernelFacts]:
    """What orders memory, in order; the products between."""
    text = kernel("k", "%p: i64", body, lanes=64)
    spirv = emit(parsed(text), target).spirv
    assert validate(spirv) is None
    made = compile_spirv(spirv, target)
    assembly = made.assembly["k"]
    assert not re.search(r"\bcalla?\b", assembly)
    return _STEPS.findall(assembly), made.kernels["k"]


BOTH = ["fence.slm.none.group", "fence.ugm.none.group"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_product_stands_between_the_halves(target: str):
    body = f"simt.barrier_arrive\n{PRODUCT}\nsimt.barrier_wait\n{STORE}"
    found, facts = compiled(body, target)
    assert found == [*BOTH, "signal barrier", "dpas", *BOTH, "sync.bar"]
    assert facts.barriers


@pytest.mark.parametrize("target", TARGETS)
def test_a_whole_barrier(target: str):
    found, facts = compiled(f"{PRODUCT}\nsimt.barrier\n{STORE}", target)
    assert [step for step in found if step != "dpas"] == [
        *BOTH,
        "signal barrier",
        "sync.bar",
    ]
    assert facts.barriers == 1


@pytest.mark.parametrize("target", TARGETS)
def test_named_barriers(target: str):
    body = "simt.named_barrier 1 of 2\nsimt.named_barrier 2 of 3"
    found, facts = compiled(body, target)
    once = [*BOTH, "fence.slm.none.group", "signal barrier", "sync.bar"]
    assert found == once * 2
    assert facts.barriers >= 3


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("fence", "messages"),
    [
        ('"workgroup" {memory = "local"}', ["fence.slm.none.group"]),
        ('"device" {memory = "local"}', ["fence.slm.none.group"]),
        ('"workgroup" {memory = "global"}', ["fence.ugm.none.group"]),
        ('"device" {memory = "global"}', ["fence.ugm.invalidate.gpu"]),
        ('"workgroup"', BOTH),
        ('"device"', ["fence.slm.none.group", "fence.ugm.invalidate.gpu"]),
    ],
)
def test_fences(fence: str, messages: list[str], target: str):
    body = f"{PRODUCT}\n{STORE}\nsimt.fence {fence}\n{STORE}"
    found, _ = compiled(body, target)
    assert [step for step in found if step != "dpas"] == messages


@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_that_asserts_has_whole_barriers_and_one_more_at_each_end(target: str):
    body = f"""
      %fine = arith.cmpi ne, %p, %wide : i64
      simt.barrier_arrive
      simt.assert %fine, "fails" {{shapes = []}}
      {PRODUCT}
      simt.barrier_wait
      {STORE}"""
    found, facts = compiled(body, target)
    barriers = [step for step in found if not step.startswith(("fence", "dpas"))]
    assert barriers == ["signal barrier", "sync.bar"] * 3
    assert facts.barriers == 1
    assert facts.private_bytes == 0
    assert 0 < facts.slm_bytes <= LINE
