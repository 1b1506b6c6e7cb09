"""RFC, appendix 1: five ways to multiply, as tiles and as vectors, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

import xetl
from xetl.dialects.text import read_module
from xetl.dialects.upstream import gpu
from xetl.transforms.choose_inner_blocks import ChooseInnerBlocksPass
from xetl.transforms.convert_vector_to_xetile import ConvertVectorToXetilePass
from xetl.transforms.convert_xetile_to_vector import ConvertXetileToVectorPass
from xetl.transforms.stages import check_stage
from xetl_reference.run import run_module

TEXT = (Path(__file__).parent / "appendix_1.mlir").read_text()
KERNELS = {
    "tiles": False,
    "tiles_in_order": True,
    "tiles_transposed": True,
    "vectors_in_order": True,
    "vectors_transposed": True,
}
"""Each kernel, and whether it takes B as its transpose."""
BF16 = ml_dtypes.bfloat16


def matrices(is_transposed: bool) -> tuple[Any, Any, Any, Any]:
    """A, B as the kernel takes it, C, and what C must be: in f64, rounded once."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, s).astype(BF16) for s in ((128, 96), (96, 128)))
    wanted = (a.astype(np.float64) @ b.astype(np.float64)).astype(BF16)
    stored = np.ascontiguousarray(b.T) if is_transposed else b
    return a, stored, np.zeros((128, 128), BF16), wanted


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("name", KERNELS)
def test_against_numpy(name: str, backend: str) -> None:
    a, b, c, wanted = matrices(KERNELS[name])
    xetl.load_mlir(TEXT)[name][(1, 1, 1), (1, 1, 1)](a, b, c, backend=backend)
    assert np.array_equal(c, wanted)


def after(name: str, *passes: ModulePass) -> ModuleOp:
    """One kernel of the file after some passes."""
    module = read_module(TEXT)
    for function in [o for o in module.walk() if isinstance(o, gpu.FuncOp)]:
        if function.sym_name != StringAttr(name):
            function.detach()
            function.erase()
    for each in passes:
        each.apply(Context(), module)
        module.verify()
    return module


def names(module: ModuleOp) -> set[str]:
    return {op.name for op in module.walk()}


CHAINS = {
    "xetile": [ConvertVectorToXetilePass()],
    "blocked": [ConvertVectorToXetilePass(), ChooseInnerBlocksPass()],
    "vector": [ConvertXetileToVectorPass()],
    "there and back": [ConvertVectorToXetilePass(), ConvertXetileToVectorPass()],
    "back and there": [ConvertXetileToVectorPass(), ConvertVectorToXetilePass()],
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("name", KERNELS)
def test_after_conversion(name: str, chain: str) -> None:
    a, b, c, wanted = matrices(KERNELS[name])
    module = after(name, *CHAINS[chain])
    run_module(module, (1,), [a, b, c], subgroups=(1, 1, 1))
    assert np.array_equal(c, wanted)


@pytest.mark.parametrize("name", KERNELS)
def test_vectors_become_tiles_one_to_one(name: str) -> None:
    found = names(after(name, ConvertVectorToXetilePass()))
    assert {"xetile.init_tile", "xetile.load_tile", "xetile.tile_mma"} <= found
    assert not {each for each in found if each.startswith(("vector.", "memref.sub"))}


@pytest.mark.parametrize("name", KERNELS)
def test_tiles_become_vectors(name: str) -> None:
    found = names(after(name, ConvertXetileToVectorPass()))
    assert {"vector.transfer_read", "vector.transfer_write"} <= found
    assert not {each for each in found if each.startswith("xetile.")}


def test_a_view_by_columns_has_its_order() -> None:
    ours = str(after("vectors_in_order", ConvertVectorToXetilePass()))
    theirs = str(after("tiles_in_order"))
    tile = "!xetile.tile<32x64xbf16, #xetile.tile_attr<order = [0, 1]>>"
    assert ours.count(tile) == theirs.count(tile) == 2


@pytest.mark.parametrize("name", KERNELS)
def test_products_are_blocked_without_packing(name: str) -> None:
    module = after(name, *CHAINS["blocked"])
    check_stage(module, "xetile-blocked")
    assert "xetile.unblocked" not in str(module)
    assert not names(module) & {"xetile.tile_pack", "xetile.tile_unpack"}
