"""How errors are drawn, and what they carry."""

import pickle
import subprocess
import sys
import traceback

import pytest

from xetl import xetile
from xetl.errors import (
    CallFrame,
    LaunchError,
    MissingKernelError,
    TileShapeError,
    XetlError,
    did_you_mean,
)

MMA = TileShapeError(
    "`tile_mma` cannot multiply (32, 64) by (32, 128)",
    code="X0201",
    file="gemm.py",
    line=14,
    column=52,
    length=19,
    function="gemm",
    source_line="        acc = xetile.tile_mma(xetile.load_tile(a), "
    "xetile.load_tile(b), acc)",
    label="bf16 (32, 128), but the left tile has 64 columns",
    notes=["`b` was made at line 9 by init_tile(B, [0, n], (32, 128))"],
    help="K of a (64) and of b (32) must agree",
)

DRAWN = """\
error[X0201]: `tile_mma` cannot multiply (32, 64) by (32, 128)
 --> gemm.py:14:52 in gemm
   |
14 |         acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
   |                                                    ^^^^^^^^^^^^^^^^^^^ bf16 \
(32, 128), but the left tile has 64 columns
   = note: `b` was made at line 9 by init_tile(B, [0, n], (32, 128))
   = help: K of a (64) and of b (32) must agree"""


def test_the_form_of_the_language_page():
    assert str(MMA) == DRAWN


def test_callers_follow():
    error = XetlError(
        "wrong",
        code="X0000",
        file="a.py",
        line=7,
        column=3,
        source_line="  x\n",
        function="helper",
        frames=[CallFrame("a.py", 120, 1, 4, "kernel", "call()")],
    )
    assert str(error).splitlines() == [
        "error[X0000]: wrong",
        "  --> a.py:7:3 in helper",
        "    |",
        "  7 |   x",
        "    |   ^",
        "  --> a.py:120:1 in kernel",
        "    |",
        "120 | call()",
        "    | ^^^^ called here",
    ]


def test_without_a_place():
    error = LaunchError("no grid", help="say kernel[grid]")
    assert str(error) == "error[X0800]: no grid\n   = help: say kernel[grid]"


def test_errors_can_be_pickled():
    again = pickle.loads(pickle.dumps(MMA))
    assert str(again) == DRAWN


def test_missing_kernel_is_a_key_error():
    with pytest.raises(KeyError):
        raise MissingKernelError("no kernel `x`")
    assert str(MissingKernelError("no kernel `x`")).startswith("error[X0800]")


def test_suggestions():
    assert did_you_mean("lod_tile", ["load_tile", "store"]) == (
        "did you mean `load_tile`?"
    )
    assert did_you_mean("qqq", ["load_tile"]) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: xetile.load_tile(None),
        lambda: xetile.function(lambda v: v)(3),
        lambda: xetile.exp(1.0),
    ],
)
def test_operations_are_refused_on_the_host(call):
    with pytest.raises(LaunchError, match="was called on the host") as caught:
        call()
    assert caught.value.code == "X0801"
    assert caught.value.file == __file__
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.filename == __file__


def test_import_is_light():
    program = (
        "import sys; import xetl; from xetl import xetile; xetile.load_tile;"
        "heavy = {'xdsl', 'llvmlite', 'numba', 'torch'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
