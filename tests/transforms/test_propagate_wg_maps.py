"""Every vector gets a legal map, the meaning stays, and the user is told."""

import warnings

import pytest
from hypothesis import given, settings
from meaning import same_meaning
from workgroup_kernels import WorkgroupKernel, kernel_of, kernels
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xetl.dialects.parser import parse_module
from xetl.errors import TileMapWarning
from xetl.transforms.diagnostics import Remark, collect_remarks
from xetl.transforms.normalize_tiles import NormalizeTilesPass
from xetl.transforms.propagate_wg_maps import PropagateWgMapsPass
from xetl.transforms.stages import StageError, check_stage

MAPPED = "xetile-mapped"
PASSES = (NormalizeTilesPass(), PropagateWgMapsPass())


def propagate(text: str) -> tuple[ModuleOp, list[Remark]]:
    module = parse_module(text, "kernel.mlir")
    with collect_remarks() as remarks:
        PropagateWgMapsPass().apply(Context(), module)
    check_stage(module, MAPPED)
    return module, remarks


def check_mapped(name: str, module: ModuleOp) -> None:
    if name == PropagateWgMapsPass.name:
        check_stage(module, MAPPED)


def keeps_its_meaning(kernel: WorkgroupKernel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TileMapWarning)
        same_meaning(kernel.text, kernel.grid, kernel.arrays, PASSES, look=check_mapped)


@pytest.mark.parametrize("seed", range(60))
def test_a_kernel_of_a_seed_is_mapped_and_means_the_same(seed: int) -> None:
    keeps_its_meaning(kernel_of(seed))


@settings(max_examples=25)
@given(kernels())
def test_any_kernel_is_mapped_and_means_the_same(kernel: WorkgroupKernel) -> None:
    keeps_its_meaning(kernel)


ATOMIC = """
#one = #xetile.wg_map<sg_layout = [1, 1], sg_data = [1, 1]>
func.func @kernel(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %m: memref<8x8xf16>) {
  %t = xetile.init_tile %m[0, 0] : memref<8x8xf16> -> !xetile.tile<8x8xf16>
  %v = xetile.load_tile %t : !xetile.tile<8x8xf16> -> vector<8x8xf16>
  %zero = arith.constant dense<0.0> : vector<8x8xf32>
  %c = xetile.tile_mma %v, %v, %zero
    : vector<8x8xf16>, vector<8x8xf16>, vector<8x8xf32> -> vector<8x8xf32>
  %ta = xetile.init_tile %a[0, 0] : memref<8x8xf32> -> !xetile.tile<8x8xf32>
  %old = xetile.atomic_rmw_tile <add> %zero, %ta
    : vector<8x8xf32>, !xetile.tile<8x8xf32> -> vector<8x8xf32>
  %tb = xetile.init_tile %b[0, 0] : memref<8x8xf32> -> !xetile.tile<8x8xf32, #one>
  xetile.store_tile %old, %tb : vector<8x8xf32>, !xetile.tile<8x8xf32, #one>
  func.return
}
"""


def test_old_values_of_an_atomic_have_the_map_of_the_tile() -> None:
    """Not that of the value, which others read as well."""
    propagate(ATOMIC)


# What the user is told ----------------------------------------------------------------

TWO_MAPS = """
#square = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 32]>
#rows = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>
func.func @kernel(%a: memref<64x64xf32>, %b: memref<64x64xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #square>
  %v = xetile.load_tile %t : !xetile.tile<64x64xf32, #square> -> vector<64x64xf32>
  %e = math.exp %v : vector<64x64xf32>
  CONVERSION
  %u = xetile.init_tile %b[0, 0] : memref<64x64xf32> -> !xetile.tile<64x64xf32, #rows>
  xetile.store_tile %x, %u : vector<64x64xf32>, !xetile.tile<64x64xf32, #rows>
  func.return
}
"""


def test_two_maps_of_the_user_that_differ_are_a_warning_with_both_lines() -> None:
    text = TWO_MAPS.replace("  CONVERSION\n", "\n").replace("%x", "%e")
    _, remarks = propagate(text)
    assert [(each.line, each.topic) for each in remarks] == [(7, "maps"), (7, "maps")]
    assert [each.is_warning for each in remarks] == [False, True]
    assert "line 5 and line 9 do not fit" in remarks[1].text
    assert remarks[1].file == "kernel.mlir"
    assert "64x64 f32 changes from wg_map([2, 2], [32, 32])" in remarks[0].text
    assert "16384 bytes" in remarks[0].text


def test_a_conversion_that_the_user_wrote_is_no_warning() -> None:
    conversion = "%x = xetile.tile_conv_layout %e {map = #rows} : vector<64x64xf32>"
    _, remarks = propagate(TWO_MAPS.replace("CONVERSION", conversion))
    assert not remarks


X_PLUS_TURNED = """
#rows = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>
func.func @kernel(%a: memref<64x64xf32>) {
  %t = xetile.init_tile %a[0, 0]
    : memref<64x64xf32> -> !xetile.tile<64x64xf32, #rows>
  %x = xetile.load_tile %t : !xetile.tile<64x64xf32, #rows> -> vector<64x64xf32>
  %y = xetile.tile_transpose %x, [1, 0] : vector<64x64xf32> -> vector<64x64xf32>
  %z = arith.addf %x, %y : vector<64x64xf32>
  %s = math.exp %z : vector<64x64xf32>
  xetile.store_tile %s, %t : vector<64x64xf32>, !xetile.tile<64x64xf32, #rows>
  func.return
}
"""


def test_maps_that_differ_in_their_order_alone_are_shown_with_it() -> None:
    """A transpose turns the order of the ids: the lists of both maps are equal."""
    text = X_PLUS_TURNED.replace(
        "[4, 1], sg_data = [16, 64]", "[2, 2], sg_data = [32, 32]"
    )
    _, remarks = propagate(text)
    assert len(remarks) == 1
    row_major, turned = (
        "wg_map([2, 2], [32, 32])",
        "wg_map([2, 2], [32, 32], order=[0, 1])",
    )
    found = {f"from {row_major} to {turned}", f"from {turned} to {row_major}"}
    assert any(each in remarks[0].text for each in found)


def test_a_map_and_what_follows_from_it_elsewhere_is_a_remark_only() -> None:
    """x + x.T of one value with a map: there is nothing the user could give."""
    text = X_PLUS_TURNED
    _, remarks = propagate(text)
    assert len(remarks) == 1


# The check of the stage ---------------------------------------------------------------

ONE_LOAD = """
#rows = #xetile.wg_map<sg_layout = [4, 1], sg_data = [16, 64]>
func.func @kernel(%a: memref<64x64xf32>) {
  %t = xetile.init_tile %a[0, 0] : memref<64x64xf32> -> TILE
  %x = xetile.load_tile %t : TILE -> vector<64x64xf32>
  %y = math.exp %x {map = #rows} : vector<64x64xf32>
  func.return
}
"""


@pytest.mark.parametrize(
    ("tile", "problem"),
    [
        ("!xetile.tile<64x64xf32>", "has no map"),
        (
            "!xetile.tile<64x64xf32, #xetile.wg_map<sg_layout = [2, 2], "
            "sg_data = [32, 32]>>",
            "operand 0 of `math.exp` has",
        ),
    ],
)
def test_the_stage_finds_a_value_without_a_map_or_with_another(
    tile: str, problem: str
) -> None:
    module = parse_module(ONE_LOAD.replace("TILE", tile), "kernel.mlir")
    with pytest.raises(StageError, match=problem):
        check_stage(module, MAPPED)
