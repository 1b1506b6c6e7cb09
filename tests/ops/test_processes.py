"""Functions and kernels in other processes: pickled by name, as Dask sends them."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from xetl import ops
from xetl.ops.softmaxes import softmax_rows


@pytest.mark.parametrize("function", [getattr(ops, name) for name in ops.__all__])
def test_functions_are_pickled_by_name(function: object) -> None:
    assert pickle.loads(pickle.dumps(function)) is function


def test_another_process_computes_the_same() -> None:
    x = np.random.default_rng(0).standard_normal((6, 40)).astype(np.float32)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(ops.softmax, [x[:3], x[3:]]))
    assert np.array_equal(np.concatenate(found), ops.softmax(x))
    assert pickle.loads(pickle.dumps(softmax_rows)).fn.__name__ == "softmax_rows"


def test_blocks_of_dask() -> None:
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 40)).astype(np.float32)
    w = rng.standard_normal((40, 24)).astype(np.float32)
    blocks = da.from_array(x, chunks=(16, 40))
    soft = blocks.map_blocks(ops.softmax, dim=-1, dtype=x.dtype)
    weights = da.from_array(w, chunks=(40, 12))
    options = {"concatenate": True, "dtype": x.dtype}
    product = da.blockwise(ops.matmul, "ij", soft, "ik", weights, "kj", **options)
    wanted = ops.softmax(x) @ w
    np.testing.assert_allclose(product.compute(), wanted, rtol=1e-5, atol=1e-6)
