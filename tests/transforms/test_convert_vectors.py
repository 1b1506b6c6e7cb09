"""From tiles to MLIR's vectors and back a kernel means the same; mlir-opt agrees."""

import shutil
import subprocess

import numpy as np
import pytest
from blocked_kernels import kernels
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from meaning import same_meaning
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tests.seeds import operations, workgroups  # noqa: F401 (fill the list)
from tests.seeds.examples import EXAMPLES
from xetl.dialects.parser import parse_module
from xetl.dialects.text import read_module
from xetl.dialects.verify import verify
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.convert_xetile_to_vector import ConvertXetileToVectorPass
from xetl.transforms.diagnostics import collect_remarks
from xetl.transforms.legalize_vectors import LegalizeVectorsPass

MLIR_OPT = shutil.which("mlir-opt-22") or shutil.which("mlir-opt")
needs_mlir_opt = pytest.mark.skipif(
    MLIR_OPT is None, reason="mlir-opt is not installed: no second opinion"
)
THERE_AND_BACK = [ConvertXetileToVectorPass(), LegalizeVectorsPass()]
many = settings(max_examples=30, suppress_health_check=list(HealthCheck))


def is_text(name: str, module: ModuleOp) -> None:
    assert str(parse_module(str(module))) == str(module)


def dialects(module: ModuleOp) -> set[str]:
    return {op.name.partition(".")[0] for op in module.walk()}


def to_vector(text: str) -> ModuleOp:
    module = read_module(text)
    for each in (ConvertXetileToVectorPass(), CanonicalizePass()):
        each.apply(Context(), module)
        module.verify()
    return module


@many
@given(kernel=st.one_of(kernels(), kernels(lowest=0)))
def test_there_and_back_keeps_the_meaning(kernel):
    text, arrays = kernel
    same_meaning(text, (1,), arrays, THERE_AND_BACK, look=is_text)


@needs_mlir_opt
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(kernel=kernels(lowest=0))
def test_mlir_opt_takes_all_that_became_vectors(kernel):
    module = to_vector(kernel[0])
    if "xetile" not in dialects(module):  # atomics, scans and precisions stay
        accepted(module)


def accepted(module: ModuleOp) -> None:
    """mlir-opt verifies the module, and what it prints is what we printed."""
    assert MLIR_OPT is not None
    # Kernels carry attributes of ours, no operations.
    command = [MLIR_OPT, "-", "--allow-unregistered-dialect"]
    done = subprocess.run(
        command, input=str(module), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    theirs = parse_module(done.stdout)
    verify(theirs)
    assert module.is_structurally_equivalent(theirs)


GEMM = """
gpu.module @m { gpu.func @gemm(%a: memref<70x100xDT>, %b: memref<100x90xDT>,
                               %c: memref<70x90xACC>) kernel
    attributes {xetile.level = "subgroup"} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c100 = arith.constant 100 : index
  %x = gpu.block_id x
  %y = gpu.block_id y
  %i = arith.muli %x, %c32 : index
  %j = arith.muli %y, %c32 : index
  %zero = arith.constant dense<ZERO> : vector<32x32xACC>
  %ta = xetile.init_tile %a[%i, 0] : memref<70x100xDT> -> !xetile.tile<32x32xDT>
  %tb = xetile.init_tile %b[0, %j] : memref<100x90xDT> -> !xetile.tile<32x32xDT>
  %tc = xetile.init_tile %c[%i, %j] : memref<70x90xACC> -> !xetile.tile<32x32xACC>
  %r:3 = scf.for %k = %c0 to %c100 step %c32
      iter_args(%p = %ta, %q = %tb, %acc = %zero)
      -> (!xetile.tile<32x32xDT>, !xetile.tile<32x32xDT>, vector<32x32xACC>) {
    %va = xetile.load_tile %p : !xetile.tile<32x32xDT> -> vector<32x32xDT>
    %vb = xetile.load_tile %q : !xetile.tile<32x32xDT> -> vector<32x32xDT>
    %d = xetile.tile_mma %va, %vb, %acc : vector<32x32xDT>, vector<32x32xDT>,
        vector<32x32xACC> -> vector<32x32xACC>
    %p1 = xetile.update_tile_offset %p, [0, 32] : !xetile.tile<32x32xDT>
    %q1 = xetile.update_tile_offset %q, [32, 0] : !xetile.tile<32x32xDT>
    scf.yield %p1, %q1, %d
        : !xetile.tile<32x32xDT>, !xetile.tile<32x32xDT>, vector<32x32xACC>
  }
  xetile.store_tile %r#2, %tc : vector<32x32xACC>, !xetile.tile<32x32xACC>
  gpu.return
} }"""


def gemm(dtype: str, accumulator: str) -> str:
    zero = "0" if "i" in accumulator else "0.0"
    text = GEMM.replace("ZERO", zero).replace("ACC", accumulator)
    return text.replace("DT", dtype)


@pytest.mark.parametrize(
    ("dtype", "accumulator"), [("f16", "f32"), ("f64", "f64"), ("i8", "i32")]
)
def test_a_ragged_gemm_is_right_as_vectors(dtype, accumulator):
    numpy = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i32": "i4"}
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (70, 100)).astype(numpy[dtype])
    b = rng.integers(-4, 5, (100, 90)).astype(numpy[dtype])
    c = np.zeros((70, 90), numpy[accumulator])
    text = gemm(dtype, accumulator)
    truth = [None, None, a.astype(np.float64) @ b.astype(np.float64)]
    same_meaning(text, (3, 3), [a, b, c], THERE_AND_BACK, truth=truth, look=is_text)
    assert "xetile" not in dialects(to_vector(text))


@needs_mlir_opt
@pytest.mark.parametrize(
    ("dtype", "accumulator"), [("bf16", "f32"), ("f64", "f64"), ("i8", "i32")]
)
def test_mlir_opt_takes_a_gemm(dtype, accumulator):
    accepted(to_vector(gemm(dtype, accumulator)))


TILE = "!xetile.tile<4x8xf32>"
WHILE = f"""
gpu.module @m {{ gpu.func @k(%x: memref<32x32xf32>, %y: memref<4x8xf32>, %n: index)
    kernel attributes {{xetile.level = "subgroup"}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant dense<0.0> : vector<4x8xf32>
  %t = xetile.init_tile %x[0, 0] : memref<32x32xf32> -> {TILE}
  %r:3 = scf.while (%i = %c0, %a = %t, %s = %zero) : (index, {TILE}, vector<4x8xf32>)
      -> (index, {TILE}, vector<4x8xf32>) {{
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i, %a, %s : index, {TILE}, vector<4x8xf32>
  }} do {{
  ^bb0(%i: index, %a: {TILE}, %s: vector<4x8xf32>):
    %bit = arith.remui %i, %c2 : index
    %even = arith.cmpi eq, %bit, %c0 : index
    %b = scf.if %even -> ({TILE}) {{
      %down = xetile.update_tile_offset %a, [5, 0] : {TILE}
      scf.yield %down : {TILE}
    }} else {{
      %right = xetile.update_tile_offset %a, [0, 7] : {TILE}
      scf.yield %right : {TILE}
    }}
    %v = xetile.load_tile %b {{padding = 1.0 : f32}} : {TILE} -> vector<4x8xf32>
    %sum = arith.addf %s, %v : vector<4x8xf32>
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %b, %sum : index, {TILE}, vector<4x8xf32>
  }}
  %w = xetile.load_tile %r#1 : {TILE} -> vector<4x8xf32>
  %all = arith.addf %r#2, %w : vector<4x8xf32>
  %u = xetile.init_tile %y[0, 0] : memref<4x8xf32> -> {TILE}
  xetile.store_tile %all, %u : vector<4x8xf32>, {TILE}
  gpu.return
}} }}"""


@pytest.mark.parametrize("steps", [0, 1, 4, 9])
def test_tiles_through_whiles_and_branches(steps):
    x = np.random.default_rng(3).integers(-9, 9, (32, 32)).astype("f4")
    found = same_meaning(
        WHILE, (1,), [x, np.zeros((4, 8), "f4"), steps], THERE_AND_BACK
    )
    assert found[1].any()
    assert "xetile" not in dialects(to_vector(WHILE))


SCATTERED = "!xetile.tile<2x8xf32, #xetile.tile_attr<scattered = true>>"
GATHER = f"""
gpu.module @m {{ gpu.func @k(%x: memref<20xf32>, %i: memref<2x8xindex>,
                             %k: memref<2x8xi1>, %y: memref<20xf32>)
    kernel attributes {{xetile.level = "subgroup"}} {{
  %c0 = arith.constant 0 : index
  %at = vector.load %i[%c0, %c0] : memref<2x8xindex>, vector<2x8xindex>
  %mask = vector.load %k[%c0, %c0] : memref<2x8xi1>, vector<2x8xi1>
  %one = arith.constant dense<1> : vector<2x8xindex>
  %s = xetile.init_tile %x, %at : memref<20xf32>, vector<2x8xindex> -> {SCATTERED}
  %t = xetile.update_tile_offset %s, %one : {SCATTERED}, vector<2x8xindex>
  %v = xetile.load_gather %t, %mask {{padding = 3.0 : f32}}
      : {SCATTERED}, vector<2x8xi1> -> vector<2x8xf32>
  %u = xetile.init_tile %y, %at : memref<20xf32>, vector<2x8xindex> -> {SCATTERED}
  xetile.store_scatter %v, %mask, %u : vector<2x8xf32>, vector<2x8xi1>, {SCATTERED}
  gpu.return
}} }}"""


@settings(max_examples=20)
@given(seed=st.integers(0, 999))
def test_gathers_and_scatters_outside_of_their_base(seed):
    rng = np.random.default_rng(seed)
    index = rng.permutation(np.arange(-6, 26))[:16].reshape(2, 8)
    mask = rng.random((2, 8)) < 0.7
    x, y = np.arange(20, dtype="f4"), np.full(20, -1, "f4")
    passes = [ConvertXetileToVectorPass()]
    same_meaning(GATHER, (1,), [x, index, mask, y], passes, look=is_text)
    assert "xetile" not in dialects(to_vector(GATHER))


@needs_mlir_opt
@pytest.mark.parametrize("text", [WHILE, GATHER], ids=["while", "gather"])
def test_mlir_opt_takes_control_flow_and_gathers(text):
    accepted(to_vector(text))


FOR_SUBGROUPS = [
    each
    for each in EXAMPLES
    if each.file in ("appendix_1", "gather_and_scatter", "value_operations")
]


@pytest.mark.parametrize("example", FOR_SUBGROUPS, ids=lambda each: each.name)
def test_examples_of_the_documents(example):
    run = example.run()
    truth = run.truth()
    same_meaning(
        example.module(), (1, 1, 1), run.arguments, THERE_AND_BACK, truth=truth
    )


def test_what_stays_is_said():
    text = GEMM.replace("%a[%i, 0]", "%a[-1, 0]").replace("ZERO", "0.0")
    text = text.replace("ACC", "f32").replace("DT", "f16")
    with collect_remarks() as remarks:
        module = to_vector(text)
    assert [each.text for each in remarks] == [
        "stays as it is: it may start before its matrix does"
    ]
    assert [op.name for op in module.walk()].count("xetile.load_tile") == 1
