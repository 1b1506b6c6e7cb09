"""RFC, appendix 1: the listings in `vector`, as vectors and as tiles, against NumPy."""

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
from tests.run_module import run_module
from xetl.dialects.text import read_module
from xetl.dialects.upstream import gpu
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.choose_inner_blocks import ChooseInnerBlocksPass
from xetl.transforms.legalize_vectors import LegalizeVectorsPass
from xetl.transforms.stages import check_stage

TEXT = (Path(__file__).parent / "appendix_1.mlir").read_text()
KERNELS = ("vectors_in_order", "vectors_transposed")
BF16 = ml_dtypes.bfloat16


def matrices() -> tuple[Any, Any, Any, Any]:
    """A, B as its transpose, C, and what C must be: in f64, rounded once."""
    rng = np.random.default_rng(1)
    a, bt = (rng.integers(-4, 5, (128, 96)).astype(BF16) for _ in range(2))
    wanted = (a.astype(np.float64) @ bt.astype(np.float64).T).astype(BF16)
    return a, bt, np.zeros((128, 128), BF16), wanted


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("name", KERNELS)
def test_against_numpy(name: str, backend: str) -> None:
    a, b, c, wanted = matrices()
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


TO_TILES = [LegalizeVectorsPass(), CanonicalizePass()]
CHAINS = {
    "xetile": TO_TILES,
    "blocked": [*TO_TILES, ChooseInnerBlocksPass()],
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("name", KERNELS)
def test_after_conversion(name: str, chain: str) -> None:
    a, b, c, wanted = matrices()
    module = after(name, *CHAINS[chain])
    run_module(module, (1,), [a, b, c], subgroups=(1, 1, 1))
    assert np.array_equal(c, wanted)


@pytest.mark.parametrize("name", KERNELS)
def test_vectors_become_tiles_one_to_one(name: str) -> None:
    found = names(after(name, *TO_TILES))
    assert {"xetile.init_tile", "xetile.load_tile", "xetile.tile_mma"} <= found
    assert not {each for each in found if each.startswith(("vector.", "memref.sub"))}


@pytest.mark.parametrize("name", KERNELS)
def test_products_are_blocked_without_packing(name: str) -> None:
    module = after(name, *CHAINS["blocked"])
    check_stage(module, "xetile-blocked")
    assert "xetile.unblocked" not in str(module)
    assert not names(module) & {"xetile.tile_pack", "xetile.tile_unpack"}
