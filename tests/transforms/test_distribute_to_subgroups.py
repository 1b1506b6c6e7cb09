"""A kernel of subgroups does what that of the workgroup did, whatever the maps.

Modules stand as `propagate-wg-maps` leaves them: every value of rank 2 has a map.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from meaning import fresh, same_meaning
from xdsl.context import Context
from xdsl.dialects.builtin import UnknownLoc

import xetl
from xetl.dialects.parser import parse_module
from xetl.dialects.text import read_module
from xetl.dialects.upstream import gpu, memref
from xetl.dialects.xetile import attribute_of
from xetl.errors import IRError
from xetl.language.distribution import Layout
from xetl.transforms.check_workgroup import shared_bytes
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
    _, found = check(kernel(AB, body), [a, b], native=layout in NATIVE)
    expected = np.pad(a, ((0, 5), (0, 10)), constant_values=3) + 2
    np.testing.assert_array_equal(found, expected)


@layouts
def test_tiles_and_values_are_carried_by_loops(layout):
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      {init("s", "a", type_, at="%row, %zero")}
      {init("d", "b", type_)}
      %start = arith.constant {{map = {m}}} dense<0.0> : {vec()}
      %acc, %moved = scf.for %i = %zero to %two step %one
          iter_args(%x = %start, %t = %s) -> ({vec()}, {type_}) {{
        %v = xetile.load_tile %t : {type_} -> {vec()}
        %y = arith.addf %x, %v {{map = {m}}} : {vec()}
        %u = xetile.update_tile_offset %t, [%zero, 32] : {type_}
        scf.yield %y, %u : {vec()}, {type_}
      }} {{result_maps = [{m}, unit]}}
      %first = arith.cmpi eq, %by, %zero : index
      %w = scf.if %first -> ({vec()}) {{
        %more = xetile.load_tile %moved : {type_} -> {vec()}
        %z = arith.addf %acc, %more {{map = {m}}} : {vec()}
        scf.yield %z : {vec()}
      }} else {{
        scf.yield %acc : {vec()}
      }} {{result_maps = [{m}]}}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a, b = numbers(50, 80), numbers(50, 32)
    _, found = check(kernel(AB, body), [a, b], grid=(1, 2), native=layout in NATIVE)
    expected = a[:, :32] + a[:, 32:64]
    expected[:32, :16] += a[:32, 64:]
    np.testing.assert_array_equal(found, expected)


@layouts
def test_while_loops_carry_in_both_regions(layout):
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %three = arith.constant 3 : index
      %start = xetile.load_tile %s : {type_} -> {vec()}
      %n, %out = scf.while (%i = %zero, %x = %start)
          : (index, {vec()}) -> (index, {vec()}) {{
        %more = arith.cmpi ult, %i, %three : index
        %y = arith.mulf %x, %x {{map = {m}}} : {vec()}
        scf.condition(%more) %i, %y : index, {vec()}
      }} do {{
      ^bb0(%i: index, %y: {vec()}):
        %j = arith.addi %i, %one : index
        scf.yield %j, %y : index, {vec()}
      }} attributes {{result_maps = [unit, {m}], before_maps = [unit, {m}]}}
      xetile.store_tile %out, %d : {vec()}, {type_}"""
    a = np.sign(numbers(40, 40)) * 2
    _, found = check(
        kernel(AB, body), [a, numbers(40, 40, seed=1)], native=layout in NATIVE
    )
    np.testing.assert_array_equal(found, a**16)


@layouts
def test_conversions_move_values(layout):
    body = ""
    for number, other in enumerate(LAYOUTS.values()):
        body += f"""
      %v{number + 1} = xetile.tile_conv_layout %v{number}
          {{map = {named(other)}}} : {vec()}"""
    last = tile([*LAYOUTS.values()][-1])
    text = f"""{HEAD}
      {init("s", "a", tile(layout))}
      {init("d", "b", last)}
      %v0 = xetile.load_tile %s : {tile(layout)} -> {vec()}
      {body}
      xetile.store_tile %v{len(LAYOUTS)}, %d : {vec()}, {last}"""
    a = numbers(40, 50)
    _, found = check(
        kernel(AB, text), [a, numbers(40, 50, seed=1)], native=layout in NATIVE
    )
    np.testing.assert_array_equal(found, a)


@layouts
@pytest.mark.parametrize("element", ["f32", "f16", "i8"])
def test_products(layout, element):
    """Of operands that come as the product wants them, in parts of K, or otherwise."""
    result = {"i8": "i32"}.get(element, element)
    own = [
        Layout(layout.sg_layout, (layout.sg_data[0], 16), order=layout.order),
        Layout(layout.sg_layout, (16, layout.sg_data[1]), order=layout.order),
    ]
    if layout.sg_layout[1] != 1:  # nobody has all of K
        own = [Layout((4, 1), (8, 16)), Layout((1, 4), (64, 8))]
    ta, tb = tile(own[0], "32x64", element), tile(own[1], "64x32", element)
    tc, vc = tile(layout, element=result), vec(element=result)
    va, vb = vec("32x64", element), vec("64x32", element)
    body = f"""{HEAD}
      {init("ta", "a", ta, element, at="%row, %zero")}
      {init("tb", "b", tb, element, at="%zero, %column")}
      {init("tc", "c", tc, result)}
      %x = xetile.load_tile %ta : {ta} -> {va}
      %y = xetile.load_tile %tb : {tb} -> {vb}
      %z = xetile.load_tile %tc : {tc} -> {vc}
      %p = xetile.tile_mma %x, %y, %z {{wg_map_c = {named(layout)}}}
          : {va}, {vb}, {vc} -> {vc}
      xetile.store_tile %p, %tc : {vc}, {tc}"""
    arguments = f"%a: {ragged(element)}, %b: {ragged(element)}, %c: {ragged(result)}"
    types = {"f32": "float32", "f16": "float16", "i8": "int8", "i32": "int32"}
    a = numbers(40, 50, dtype=types[element])
    b = numbers(50, 60, seed=1, dtype=types[element])
    c = numbers(40, 60, seed=2, dtype=types[result])
    *_, found = check(kernel(arguments, body), [a, b, c], native=layout in NATIVE)
    truth = a.astype("float64") @ b.astype("float64") + c
    np.testing.assert_array_equal(found, truth.astype(types[result]))


@layouts
def test_transposes(layout):
    turned = Layout(
        layout.sg_layout[::-1], layout.sg_data[::-1], order=layout.order[::-1]
    )
    for source in (turned, layout, LAYOUTS["rows"]):
        body = f"""{HEAD}
      {init("s", "a", tile(source))}
      {init("d", "b", tile(layout), at="%column, %row")}
      %v = xetile.load_tile %s : {tile(source)} -> {vec()}
      %w = xetile.tile_transpose %v, [1, 0] {{map = {named(layout)}}}
          : {vec()} -> {vec()}
      xetile.store_tile %w, %d : {vec()}, {tile(layout)}"""
        a = numbers(40, 50)
        _, found = check(
            kernel(AB, body), [a, numbers(50, 40, seed=1)], native=layout in NATIVE
        )
        np.testing.assert_array_equal(found, a.T)


def lines(layout: Layout, dims: Sequence[int]) -> Layout:
    """The layout of what is left when ``dims`` are combined."""
    data = [1 if dim in dims else size for dim, size in enumerate(layout.sg_data)]
    return Layout(layout.sg_layout, tuple(data), order=layout.order)


@layouts
@pytest.mark.parametrize("dims", [[0], [1], [0, 1]])
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_reductions_and_broadcasts(layout, dims, element):
    left = lines(layout, dims)
    shape = "x".join("1" if dim in dims else "32" for dim in (0, 1))
    type_, whole = tile(layout, element=element), vec(element=element)
    some = vec(shape, element)
    body = f"""{HEAD}
      {init("s", "a", type_, element)}
      {init("d", "b", type_, element)}
      %v = xetile.load_tile %s : {type_} -> {whole}
      %r = xetile.tile_reduce <add>, %v {dims} {{map = {named(left)}}}
          : {whole} -> {some}
      %w = xetile.tile_broadcast %r {dims} {{map = {named(layout)}}}
          : {some} -> {whole}
      %m = xetile.tile_reduce <maxsi>, %v {dims} {{map = {named(left)}}}
          : {whole} -> {some}
      %n = xetile.tile_broadcast %m {dims} {{map = {named(layout)}}}
          : {some} -> {whole}
      %z = arith.mulf %w, %n {{map = {named(layout)}}} : {whole}
      xetile.store_tile %z, %d : {whole}, {type_}""".replace("maxsi", "maximumf")
    arguments = f"%a: {ragged(element)}, %b: {ragged(element)}"
    dtype = {"f32": "float32", "f16": "float16"}[element]
    a, b = numbers(32, 40, dtype=dtype), numbers(32, 40, seed=1, dtype=dtype)
    check(kernel(arguments, body), [a, b], grid=(2, 1), native=layout in NATIVE)


@layouts
def test_reductions_do_not_wait_for_a_conversion(layout):
    """Partial results move; the whole value of 4 KiB does not."""
    rows = LAYOUTS["rows"]
    type_, result = tile(layout), tile(line(rows, 0), "32x1")
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", result, at="%row, %zero")}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      %w = xetile.tile_conv_layout %v {{map = {named(rows)}}} : {vec()}
      %r = xetile.tile_reduce <add>, %w [1] {{map = {named(line(rows, 0))}}}
          : {vec()} -> {vec("32x1")}
      xetile.store_tile %r, %d : {vec("32x1")}, {result}"""
    a, text = numbers(32, 32), kernel(AB, body)
    _, found = check(text, [a, numbers(32, 1, seed=1)], grid=(1, 1))
    np.testing.assert_array_equal(found, a.sum(1, keepdims=True))
    operations = distributed(text).walk()
    sizes = [shared_bytes(op) for op in operations if isinstance(op, memref.AllocOp)]
    assert sum(sizes) <= 32 * 4 * 4


@layouts
def test_reductions_of_groups(layout):
    grouped = Layout(
        layout.sg_layout,
        (layout.sg_data[0], max(1, layout.sg_data[1] // 4)),
        order=layout.order,
    )
    type_, small = tile(layout), tile(grouped, "32x8")
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", small, at="%row, %zero")}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      %r = xetile.tile_reduce <add>, %v [1]
          {{map = {named(grouped)}, reduction_size = 4 : i64}}
          : {vec()} -> {vec("32x8")}
      xetile.store_tile %r, %d : {vec("32x8")}, {small}"""
    a = numbers(32, 32)
    _, found = check(
        kernel(AB, body),
        [a, numbers(32, 8, seed=1)],
        grid=(1, 1),
        native=layout in NATIVE,
    )
    np.testing.assert_array_equal(found, a.reshape(32, 8, 4).sum(2))


@layouts
@pytest.mark.parametrize("dim", [0, 1])
def test_scans(layout, dim):
    type_ = tile(layout)
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      %w = xetile.tile_scan <add>, %v [{dim}] {{map = {named(layout)}}}
          : {vec()} -> {vec()}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a = numbers(32, 32)
    _, found = check(
        kernel(AB, body),
        [a, numbers(32, 32, seed=1)],
        grid=(1, 1),
        native=layout in NATIVE,
    )
    np.testing.assert_array_equal(found, a.cumsum(dim))


def line(layout: Layout, dim: int) -> Layout:
    """The layout of one row (dim 1) or one column (dim 0) of a tile."""
    return lines(layout, [1 - dim])


@layouts
def test_index_ranges_and_masks(layout):
    """`arange` as a row and as a column, bounds, a table of constants."""
    row, column, m = line(layout, 1), line(layout, 0), named(layout)
    table = ", ".join(str(i * i % 7) for i in range(32))
    body = f"""{HEAD}
      {init("d", "b", tile(layout))}
      %n = arith.constant 23 : index
      %bound = arith.subi %n, %row : index
      %step = vector.step : vector<32xindex>
      %wide = arith.index_cast %step : vector<32xindex> to vector<32xi32>
      %across = vector.shape_cast %wide {{map = {named(row)}}}
          : vector<32xi32> to {vec("1x32", "i32")}
      %down = vector.shape_cast %across {{map = {named(column)}}}
          : {vec("1x32", "i32")} to {vec("32x1", "i32")}
      %x = xetile.tile_broadcast %across [0] {{map = {m}}}
          : {vec("1x32", "i32")} -> {vec(element="i32")}
      %y = xetile.tile_broadcast %down [1] {{map = {m}}}
          : {vec("32x1", "i32")} -> {vec(element="i32")}
      %hundred = arith.constant {{map = {m}}} dense<100> : {vec(element="i32")}
      %yy = arith.muli %y, %hundred {{map = {m}}} : {vec(element="i32")}
      %sum = arith.addi %x, %yy {{map = {m}}} : {vec(element="i32")}
      %f = arith.sitofp %sum {{map = {m}}} : {vec(element="i32")} to {vec()}
      %mask = vector.create_mask %bound, %n {{map = {m}}} : {vec(element="i1")}
      %fixed = vector.constant_mask [20, 10] {{map = {m}}} : {vec(element="i1")}
      %squares = arith.constant {{map = {named(row)}}} dense<[[{table}]]>
          : {vec("1x32", "i32")}
      %sf = arith.sitofp %squares {{map = {named(row)}}}
          : {vec("1x32", "i32")} to {vec("1x32")}
      %t = xetile.tile_broadcast %sf [0] {{map = {m}}} : {vec("1x32")} -> {vec()}
      %scale = arith.constant 0.5 : f32
      %half = vector.broadcast %scale {{map = {m}}} : f32 to {vec()}
      %u = arith.select %mask, %f, %t {{map = {m}}} : {vec(element="i1")}, {vec()}
      %v = arith.select %fixed, %half, %u {{map = {m}}} : {vec(element="i1")}, {vec()}
      xetile.store_tile %v, %d : {vec()}, {tile(layout)}"""
    (found,) = check(
        kernel(f"%b: {ragged()}", body),
        [numbers(40, 32)],
        grid=(1, 2),
        native=layout in NATIVE,
    )
    i, j = np.indices((40, 32))
    expected = np.where((i < 23) & (j < 23), j + 100 * (i % 32), j * j % 7)
    expected = np.where((i % 32 < 20) & (j < 10), 0.5, expected)
    np.testing.assert_array_equal(found, expected)


def test_what_can_be_computed_in_place_is_not_exchanged():
    """A column of indices needs nothing from other subgroups."""
    layout = LAYOUTS["exact"]
    row, column = line(layout, 1), line(layout, 0)
    out = tile(column, "32x1", "i32")
    body = f"""{HEAD}
      {init("d", "b", out, "i32", at="%row, %zero")}
      %step = vector.step : vector<32xindex>
      %wide = arith.index_cast %step : vector<32xindex> to vector<32xi32>
      %across = vector.shape_cast %wide {{map = {named(row)}}}
          : vector<32xi32> to {vec("1x32", "i32")}
      %down = vector.shape_cast %across {{map = {named(column)}}}
          : {vec("1x32", "i32")} to {vec("32x1", "i32")}
      xetile.store_tile %down, %d : {vec("32x1", "i32")}, {out}"""
    text = kernel(f"%b: {ragged('i32')}", body)
    check(text, [numbers(40, 1, dtype="int32")], grid=(1, 2))
    names = [op.name for op in distributed(text).walk()]
    assert "gpu.barrier" not in names
    assert "memref.alloc" not in names


@layouts
def test_gathers_and_scatters(layout):
    m, scattered = named(layout), ", scattered = true"
    type_ = tile(layout, more=scattered)
    index, mask = vec(element="index"), vec(element="i1")
    table = line(layout, 1)
    body = f"""
      %step = vector.step : vector<32xindex>
      %across = vector.shape_cast %step {{map = {named(table)}}}
          : vector<32xindex> to {vec("1x32", "index")}
      %x = xetile.tile_broadcast %across [0] {{map = {m}}}
          : {vec("1x32", "index")} -> {index}
      %down = xetile.tile_transpose %x, [1, 0] {{map = {m}}} : {index} -> {index}
      %c32 = arith.constant {{map = {m}}} dense<32> : {index}
      %flat = arith.muli %down, %c32 {{map = {m}}} : {index}
      %at = arith.addi %flat, %x {{map = {m}}} : {index}
      %last = arith.constant {{map = {m}}} dense<1023> : {index}
      %back = arith.subi %last, %at {{map = {m}}} : {index}
      %some = arith.cmpi ult, %at, %c900 {{map = {m}}} : {index}
      %s = xetile.init_tile %a, %at : memref<2048xf32>, {index} -> {type_}
      %d = xetile.init_tile %b, %back : memref<2048xf32>, {index} -> {type_}
      %thousand = arith.constant {{map = {m}}} dense<1024> : {index}
      %moved = xetile.update_tile_offset %s, %thousand : {type_}, {index}
      %v = xetile.load_gather %s, %some {{padding = 5.0 : f32}}
          : {type_}, {mask} -> {vec()}
      %w = xetile.load_gather %moved, %some : {type_}, {mask} -> {vec()}
      %z = arith.addf %v, %w {{map = {m}}} : {vec()}
      xetile.store_scatter %z, %some, %d : {vec()}, {mask}, {type_}"""
    body = f"%c900 = arith.constant {{map = {m}}} dense<900> : {index}{body}"
    a, b = numbers(2048), numbers(2048, seed=1)
    text = kernel("%a: memref<2048xf32>, %b: memref<2048xf32>", body)
    _, found = check(text, [a, b], grid=(1,), native=layout in NATIVE)
    expected = b.copy()
    expected[124:1024] = (a[:900] + a[1024:1924])[::-1]
    np.testing.assert_array_equal(found, expected)


@layouts
def test_atomics_happen_once_and_tell_the_old_value(layout):
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %v = arith.constant {{map = {m}}} dense<2.0> : {vec()}
      %old = xetile.atomic_rmw_tile <add> %v, %s : {vec()}, {type_} -> {vec()}
      %unused = xetile.atomic_rmw_tile <add> %v, %s : {vec()}, {type_} -> {vec()}
      %double = arith.addf %old, %old {{map = {m}}} : {vec()}
      %o = xetile.tile_conv_layout %double {{map = {named(LAYOUTS["rows"])}}} : {vec()}
      %w = xetile.tile_conv_layout %o {{map = {m}}} : {vec()}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a, b = numbers(40, 50), numbers(40, 50, seed=1)
    summed, found = check(kernel(AB, body), [a, b], native=layout in NATIVE)
    np.testing.assert_array_equal(summed, a + 4)
    np.testing.assert_array_equal(found, a * 2)


def test_scattered_tiles_of_rank_1_are_one_subgroups_work():
    type_ = "!xetile.tile<32xf32, #xetile.tile_attr<scattered = true>>"
    kept = tile(LAYOUTS["exact"])
    body = f"""
      %at = vector.step : vector<32xindex>
      %mask = arith.constant dense<true> : vector<32xi1>
      %s = xetile.init_tile %a, %at : memref<1024xf32>, vector<32xindex> -> {type_}
      %d = xetile.init_tile %b, %at : memref<1024xf32>, vector<32xindex> -> {type_}
      %v = arith.constant dense<2.0> : vector<32xf32>
      %old = xetile.atomic_rmw_tile <add> %v, %s
          : vector<32xf32>, {type_} -> vector<32xf32>
      xetile.store_scatter %old, %mask, %d : vector<32xf32>, vector<32xi1>, {type_}
      %m = memref.reinterpret_cast %a to offset: [0], sizes: [32, 32], strides: [32, 1]
          : memref<1024xf32> to memref<32x32xf32, strided<[32, 1]>>
      %t = xetile.init_tile %m[0, 0] : memref<32x32xf32, strided<[32, 1]>> -> {kept}
      xetile.prefetch_tile %t : {kept}"""
    a, b = numbers(1024), numbers(1024, seed=1)
    text = kernel("%a: memref<1024xf32>, %b: memref<1024xf32>", body)
    summed, found = check(text, [a, b], grid=(1,))
    np.testing.assert_array_equal(summed[:32], a[:32] + 2)
    np.testing.assert_array_equal(found[:32], a[:32])


def test_scalars_are_written_once_and_known_to_all(capsys):
    layout = LAYOUTS["exact"]
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      %r = xetile.tile_reduce <add>, %v [0, 1] {{map = {named(lines(layout, [0, 1]))}}}
          : {vec()} -> {vec("1x1")}
      %sum = vector.extract %r[0, 0] : f32 from {vec("1x1")}
      %some = vector.extract %v[3, 30] : f32 from {vec()}
      xetile.print "sum {{}} some {{}}"(%sum, %some) : f32, f32
      %positive = arith.cmpi ult, %zero, %one : index
      xetile.assert %positive, "never {{}}"(%v) : {vec()}
      memref.store %sum, %c[%zero] : memref<4xf32>
      %old = memref.atomic_rmw addf %sum, %c[%one] : (f32, memref<4xf32>) -> f32
      %all = arith.addf %old, %sum : f32
      %w = vector.broadcast %all {{map = {m}}} : f32 to {vec()}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a, b = numbers(32, 32), numbers(32, 32, seed=1)
    c = numbers(4, seed=2)
    text = kernel(f"{AB}, %c: memref<4xf32>", body)
    _, found, kept = check(text, [a, b, c], grid=(1,))
    total = a.sum()
    np.testing.assert_array_equal(kept, [total, c[1] + total, c[2], c[3]])
    assert np.all(found == c[1] + total)
    line = f"sum {total} some {a[3, 30]}\n"
    assert capsys.readouterr().out == line * 2  # once at either level


@layouts
def test_what_has_no_distributed_form_is_computed_by_all(layout):
    type_, m = tile(layout), named(layout)
    packed = "vector<4x2x8x16xf32>"
    square = ", ".join(
        "[" + ", ".join(f"{(i * j) % 5}.0" for j in range(32)) + "]" for i in range(32)
    )
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      %c = arith.constant {{map = {m}}} dense<[{square}]> : {vec()}
      %x = arith.addf %v, %c {{map = {m}}} : {vec()}
      %flat = vector.shape_cast %x : {vec()} to vector<1024xf32>
      %twice = arith.addf %flat, %flat : vector<1024xf32>
      %y = vector.shape_cast %twice {{map = {m}}} : vector<1024xf32> to {vec()}
      %start = arith.constant dense<0.0> : vector<32xf32>
      %sums = vector.multi_reduction <add>, %y, %start [0] : {vec()} to vector<32xf32>
      %line = vector.shape_cast %sums {{map = {named(line(layout, 1))}}}
          : vector<32xf32> to {vec("1x32")}
      %rows = xetile.tile_broadcast %line [0] {{map = {m}}} : {vec("1x32")} -> {vec()}
      %p = xetile.tile_pack %rows {{inner_blocks = array<i64: 8, 16>}}
          : {vec()} -> {packed}
      %q = arith.addf %p, %p : {packed}
      %u = xetile.tile_unpack %q {{inner_blocks = array<i64: 8, 16>, map = {m}}}
          : {packed} -> {vec()}
      %z = arith.subf %u, %y {{map = {m}}} : {vec()}
      xetile.store_tile %z, %d : {vec()}, {type_}"""
    a = numbers(32, 32)
    _, found = check(
        kernel(AB, body),
        [a, numbers(32, 32, seed=1)],
        grid=(1,),
        native=layout in NATIVE,
    )
    y = 2 * (a + np.multiply.outer(range(32), range(32)) % 5)
    np.testing.assert_array_equal(found, 2 * y.sum(0) - y)


@layouts
def test_several_vectors_of_one_tile(layout):
    pair = tile(layout, more=", array_length = 2 : i64")
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      {init("s", "a", pair)}
      {init("d", "b", type_)}
      %v:2 = xetile.load_tile %s : {pair} -> {vec()}, {vec()}
      %w = arith.subf %v#0, %v#1 {{map = {m}}} : {vec()}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a, b = numbers(32, 64), numbers(32, 32, seed=1)
    _, found = check(kernel(AB, body), [a, b], grid=(1,), native=layout in NATIVE)
    np.testing.assert_array_equal(found, a[:, :32] - a[:, 32:])


def test_blocked_tiles_are_everybodys():
    layout = LAYOUTS["exact"]
    type_ = tile(layout, more=", inner_blocks = [8, 16]")
    blocked = "vector<4x2x8x16xf32>"
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %v = xetile.load_tile %s : {type_} -> {blocked}
      %w = arith.addf %v, %v : {blocked}
      xetile.store_tile %w, %d : {blocked}, {type_}"""
    a = numbers(40, 40)
    _, found = check(kernel(AB, body), [a, numbers(40, 40, seed=1)])
    np.testing.assert_array_equal(found, a * 2)


@layouts
def test_column_major_tiles_and_higher_ranks(layout):
    type_ = tile(layout, more=", order = [0, 1]")
    plain = tile(layout)
    memory = "memref<3x40x50xf32>"
    body = f"""{HEAD}
      %s = xetile.init_tile %a[%two, %row, %column] : {memory} -> {plain}
      %d = xetile.init_tile %b[%row, %column]
          : memref<40x50xf32, strided<[1, 40]>> -> {type_}
      %v = xetile.load_tile %s : {plain} -> {vec()}
      xetile.store_tile %v, %d : {vec()}, {type_}"""
    a, b = numbers(3, 40, 50), np.asfortranarray(numbers(40, 50, seed=1))
    arguments = f"%a: {memory}, %b: memref<40x50xf32, strided<[1, 40]>>"
    _, found = check(kernel(arguments, body), [a, b], native=layout in NATIVE)
    np.testing.assert_array_equal(found, a[2])


def test_shared_memory_stays_once():
    layout = LAYOUTS["round robin"]
    shared = tile(layout, more=", memory_space = 3")
    type_ = tile(layout)
    turned = tile(LAYOUTS["rows"], more=", memory_space = 3")
    out = tile(LAYOUTS["rows"])
    body = f"""{HEAD}
      %slm = memref.alloc() : memref<32x32xf32, 3>
      {init("s", "a", type_)}
      {init("d", "b", out)}
      %x = xetile.init_tile %slm[0, 0] : memref<32x32xf32, 3> -> {shared}
      %y = xetile.init_tile %slm[0, 0] : memref<32x32xf32, 3> -> {turned}
      %v = xetile.load_tile %s : {type_} -> {vec()}
      xetile.store_tile %v, %x : {vec()}, {shared}
      gpu.barrier
      %w = xetile.load_tile %y : {turned} -> {vec()}
      xetile.store_tile %w, %d : {vec()}, {out}
      memref.dealloc %slm : memref<32x32xf32, 3>"""
    a = numbers(40, 40)
    _, found = check(kernel(AB, body), [a, numbers(40, 40, seed=1)])
    np.testing.assert_array_equal(found, a)


def test_private_memory():
    """Scalars of it are each subgroup's own; tiles of it are refused, with a line."""
    layout = LAYOUTS["exact"]
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      %own = memref.alloca() : memref<32x32xf32>
      {init("s", "a", type_)}
      %x = arith.constant 7.0 : f32
      memref.store %x, %own[%one, %one] : memref<32x32xf32>
      %y = memref.load %own[%one, %one] : memref<32x32xf32>
      %v = vector.broadcast %y {{map = {m}}} : f32 to {vec()}
      xetile.store_tile %v, %s : {vec()}, {type_}"""
    (found,) = check(kernel(f"%a: {ragged()}", body), [numbers(32, 32)], grid=(1,))
    assert np.all(found == 7)
    body += f"""
      %t = xetile.init_tile %own[0, 0] : memref<32x32xf32> -> {type_}"""
    with pytest.raises(IRError, match="memory that all its subgroups see") as caught:
        distributed(kernel(f"%a: {ragged()}", body))
    assert caught.value.line
    assert caught.value.code == "X0705"


REFUSED = {
    "a call": """
      %r = func.call @k(%v) : ({vec}) -> {vec}""",
    "a parallel loop that carries": """
      %r = scf.parallel (%i) = (%zero) to (%two) step (%one) init (%v) -> {vec} {{
        scf.reduce(%v : {vec}) {{
        ^bb0(%x: {vec}, %y: {vec}):
          %z = arith.addf %x, %y {{map = {m}}} : {vec}
          scf.reduce.return %z : {vec}
        }}
      }}""",
}


@pytest.mark.parametrize("what", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_distributed_is_an_error_with_its_line(what):
    layout = LAYOUTS["exact"]
    text = kernel(
        f"%a: {ragged()}",
        f"""{HEAD}
      {init("s", "a", tile(layout))}
      %v = xetile.load_tile %s : {tile(layout)} -> {vec()}
      {what.format(vec=vec(), m=named(layout))}
      xetile.store_tile %r, %s : {vec()}, {tile(layout)}""",
    )
    with pytest.raises(IRError, match="X0705") as caught:
        DistributeToSubgroupsPass().apply(Context(), parse_module(text, "k.mlir"))
    assert caught.value.line


def test_a_kernel_takes_arrays_and_scalars():
    layout = LAYOUTS["exact"]
    body = f"""
      %w = arith.addf %v, %v {{map = {named(layout)}}} : {vec()}"""
    text = kernel(f"%v: {vec()}", body)
    with pytest.raises(IRError, match="takes arrays and scalars") as caught:
        DistributeToSubgroupsPass().apply(Context(), parse_module(text, "k.mlir"))
    assert caught.value.line == 2


@layouts
def test_vectors_go_to_plain_memory_once(layout):
    m = named(layout)
    body = f"""{HEAD}
      %v = vector.load %a[%row, %column] {{map = {m}}} : memref<64x64xf32>, {vec()}
      %w = arith.addf %v, %v {{map = {m}}} : {vec()}
      gpu.barrier
      vector.store %w, %a[%row, %column] : memref<64x64xf32>, {vec()}"""
    a = numbers(64, 64)
    (found,) = check(kernel("%a: memref<64x64xf32>", body), [a])
    np.testing.assert_array_equal(found, 2 * a)


def test_a_workgroup_asks_who_runs_it():
    type_ = tile(LAYOUTS["exact"])
    body = f"""{HEAD}
      {init("s", "a", type_)}
      xetile.prefetch_tile %s : {type_}
      %x = gpu.thread_id x
      %s0 = gpu.subgroup_id : index
      %y = gpu.block_dim y
      %n = gpu.num_subgroups : index
      %g = gpu.global_id x
      %sum0 = arith.addi %x, %s0 : index
      %sum1 = arith.addi %sum0, %y : index
      %sum2 = arith.addi %sum1, %n : index
      memref.store %sum2, %b[%g] : memref<4xindex>"""
    arguments = f"%a: {ragged()}, %b: memref<4xindex>"
    b = numbers(4, dtype="int64")
    _, found = check(kernel(arguments, body), [numbers(32, 32), b], grid=(2,))
    np.testing.assert_array_equal(found, [2, 2, b[2], b[3]])


def test_locations_stay():
    layout = LAYOUTS["both"]
    body = f"""{HEAD}
      {init("s", "a", tile(layout))}
      %v = xetile.load_tile %s : {tile(layout)} -> {vec()}
      xetile.store_tile %v, %s : {vec()}, {tile(layout)}"""
    module = distributed(kernel(f"%a: {ragged()}", body))
    functions = [op for op in module.walk() if isinstance(op, gpu.FuncOp)]
    for op in functions[0].walk():
        assert not isinstance(op.location, UnknownLoc), op


def test_kernels_of_subgroups_are_left_alone():
    text = kernel(AB, "").replace('"workgroup"', '"subgroup"')
    assert str(distributed(text)) == str(read_module(text))
