"""A kernel of subgroups does what that of the workgroup did, whatever the maps.

Modules stand as `propagate-wg-maps` leaves them: every value of rank 2 has a map.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from meaning import same_meaning

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


def check(text: str, arrays: Sequence[np.ndarray], grid=(2, 2)) -> list[np.ndarray]:
    """Both levels do the same; no map and no workgroup is left."""

    def look(name: str, module) -> None:
        if name:
            check_stage(module, "xetile-sg")

    passes = [DistributeToSubgroupsPass()]
    found = same_meaning(text, grid, arrays, passes, look=look)
    assert any(np.any(new != old) for new, old in zip(found, arrays, strict=True))
    return found


@layouts
def test_ragged_tiles_are_padded_and_cut_as_before(layout):
    type_ = tile(layout)
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      xetile.prefetch_tile %s : {type_}
      %v = xetile.load_tile %s {{padding = 3.0 : f32}} : {type_} -> {vec()}
      %c = arith.constant {{map = {named(layout)}}} dense<2.0> : {vec()}
      %w = arith.addf %v, %c {{map = {named(layout)}}} : {vec()}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a, b = numbers(45, 50), numbers(50, 60)
    _, found = check(kernel(AB, body), [a, b])
    expected = np.pad(a, ((0, 5), (0, 10)), constant_values=3) + 2
    np.testing.assert_array_equal(found, expected)
