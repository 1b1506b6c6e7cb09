"""Functions and kernels in other processes: pickled by name, as Dask sends them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from xetl import ops
from xetl.ops.rows.softmaxes import softmax_rows


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


FIRST_CALLS = """
import sys, threading, time
import torch
from xetl import ops

sys.setswitchinterval(1e-5)
x, wrong = torch.randn(9, 17), []

def work(function, wanted, delay):
    time.sleep(delay)  # into the midst of what the first call imports
    try:
        for _ in range(3):
            torch.testing.assert_close(function(x), wanted)
    except BaseException as error:
        wrong.append(error)

pairs = [(ops.relu, x.relu()), (ops.sum, x.sum()), (ops.tanh, x.tanh())] * 40
each = [(*pair, 0.0003 * number) for number, pair in enumerate(pairs)]
threads = [threading.Thread(target=work, args=args) for args in each]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, wrong
"""


@pytest.mark.slow
def test_first_calls_of_several_threads() -> None:
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", FIRST_CALLS], check=True, timeout=200)


LATE_TORCH = """
import numpy as np
from xetl import ops

ops.relu(np.ones((3, 4), np.float32))
import torch

x = torch.randn(3, 4, requires_grad=True)
ops.relu(x).sum().backward()
assert torch.equal(torch.ops.xetl.relu(x), x.relu())
"""


@pytest.mark.slow
def test_torch_that_is_imported_later() -> None:
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", LATE_TORCH], check=True, timeout=200)


WITHOUT_TORCH = """
import sys
import numpy as np
from xetl import ops
from xetl.ops.products.plans import Launch
x = np.ones((4, 4), np.float32)
packed = ops.prepack(x)
for _ in range(3):
    ops.matmul(x, packed)
Launch.run_seen = None  # planning a call again would fail
assert np.array_equal(ops.matmul(x, packed), x @ x)
assert "torch" not in sys.modules
"""

LAZILY = """
import sys
import numpy as np
from xetl import ops
assert ops.softmax(np.zeros((1, 2), np.float32))[0, 0] == 0.5
assert "xetl.ops.convolution.convolutions" not in sys.modules
assert set(ops.__all__) <= set(dir(ops))
names = {}
exec("from xetl.ops import *", names)
assert all(callable(names[name]) for name in ops.__all__)
assert "xetl.ops.convolution.convolutions" in sys.modules
try:
    ops.no_function
except AttributeError as error:
    assert "'xetl.ops' has no attribute 'no_function'" in str(error)
else:
    raise AssertionError
"""

WITH_TORCH = """
import sys
if "before" in sys.argv:
    import torch
from xetl import ops
if "before" not in sys.argv:
    import numpy as np
    ops.relu(np.zeros(3, np.float32))
    import torch
    ops.relu(torch.zeros(3))
assert all(hasattr(torch.ops.xetl, name) for name in ("gelu", "convolution", "rope"))
"""


@pytest.mark.parametrize(
    ("program", "when"), [(LAZILY, ""), (WITH_TORCH, "before"), (WITH_TORCH, "later")]
)
def test_modules_are_loaded_when_a_function_of_theirs_is_asked_for(
    program: str, when: str
) -> None:
    words = [sys.executable, "-c", program, *([when] if when else [])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_native_code_repeats_prepacked_products_without_torch() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_TORCH], check=True, timeout=200)
