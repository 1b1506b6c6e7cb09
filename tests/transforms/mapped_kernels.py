"""Kernels as `propagate-wg-maps` leaves them: every value of rank 2 has a map.

Their text, from the layouts of their tiles, and the check that distributing them keeps
what they do.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from meaning import fresh, same_meaning
from xdsl.context import Context

import xetl
from xetl.dialects.text import read_module
from xetl.dialects.xetile import attribute_of
from xetl.language.distribution import Layout
from xetl.transforms.distribute_to_subgroups import DistributeToSubgroupsPass
from xetl.transforms.stages import check_stage

# A tile of 32x32 for four subgroups.
LAYOUTS = {
    "exact": Layout((2, 2), (16, 16)),
    "round robin": Layout((2, 2), (8, 8)),
    "wrapped": Layout((2, 2), (32, 16)),
    "both": Layout((2, 2), (8, 32)),
    "rows": Layout((4, 1), (8, 32)),
    "columns": Layout((1, 4), (32, 4)),
    "everybody": Layout((2, 2), (32, 32)),
    "down first": Layout((2, 2), (16, 16), order=(0, 1)),
    "down first, wrapped": Layout((4, 1), (32, 8), order=(0, 1)),
}
NATIVE = LAYOUTS["both"], LAYOUTS["down first, wrapped"]
"""Enough for the CPU backend: it is the same pass that it gets its kernels from."""
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())


def named(layout: Layout) -> str:
    return str(attribute_of(layout))


def tile(layout: Layout, shape: str = "32x32", element: str = "f32", more: str = ""):
    encoding = f"wg_map = {named(layout)}{more}"
    return f"!xetile.tile<{shape}x{element}, #xetile.tile_attr<{encoding}>>"


def vec(shape: str = "32x32", element: str = "f32") -> str:
    return f"vector<{shape}x{element}>"


def ragged(element: str = "f32") -> str:
    return f"memref<?x?x{element}, strided<[?, 1]>>"


def kernel(arguments: str, body: str) -> str:
    return f"""
    gpu.module @m {{ gpu.func @k({arguments}) kernel
        attributes {{xetile.level = "workgroup"}} {{
      {body}
      gpu.return
    }} }}"""


def init(
    name: str,
    base: str,
    type_: str,
    element: str = "f32",
    at: str = "%row, %column",
) -> str:
    """A tile of an array whose sizes are not known."""
    parts = ", ".join(f"%{name}{each}" for each in ("b", "o", "h", "w", "s", "t"))
    memory = ragged(element)
    return f"""
      {parts} = memref.extract_strided_metadata %{base} : {memory}
          -> memref<{element}>, index, index, index, index, index
      %{name} = xetile.init_tile %{base}[{at}], [%{name}h, %{name}w], [%{name}s, 1]
          : {memory} -> {type_}"""


HEAD = """
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %size = arith.constant 32 : index
      %row = arith.muli %by, %size : index
      %column = arith.muli %bx, %size : index
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %two = arith.constant 2 : index"""
AB = f"%a: {ragged()}, %b: {ragged()}"


def numbers(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    found = np.random.default_rng(seed).integers(-8, 9, shape)
    return found.astype(dtype)


def distributed(text: str):
    module = read_module(text)
    DistributeToSubgroupsPass().apply(Context(), module)
    return module


def check(
    text: str, arrays: Sequence[np.ndarray], grid=(2, 2), native: bool = False
) -> list[np.ndarray]:
    """Both levels do the same; no map and no workgroup is left.

    Native: what is left runs on the CPU, too.
    """

    def look(name: str, module) -> None:
        if name:
            check_stage(module, "xetile-sg")

    passes = [DistributeToSubgroupsPass()]
    found = same_meaning(text, grid, arrays, passes, look=look)
    assert any(np.any(new != old) for new, old in zip(found, arrays, strict=True))
    if native:
        copies = fresh(arrays)
        kernels = xetl.load_mlir(str(distributed(text)))
        kernels["k"][grid, (4,)](*copies, backend="cpu")
        for one, other in zip(copies, found, strict=True):
            np.testing.assert_array_equal(one, other)
    return found


def lines(layout: Layout, dims: Sequence[int]) -> Layout:
    """The layout of what is left when ``dims`` are combined."""
    data = [1 if dim in dims else size for dim, size in enumerate(layout.sg_data)]
    return Layout(layout.sg_layout, tuple(data), order=layout.order)


def line(layout: Layout, dim: int) -> Layout:
    """The layout of one row (dim 1) or one column (dim 0) of a tile."""
    return lines(layout, [1 - dim])
