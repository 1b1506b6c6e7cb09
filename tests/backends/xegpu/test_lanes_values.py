"""What lanes compute of fragments, by the interpreter of lanes, is what NumPy says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lane_interpreter import launch

from xetl.errors import XetlError

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES = {
    **{"f32": np.float32, "f16": np.float16, "f64": np.float64},
    **{"bf16": ml_dtypes.bfloat16, "i8": np.int8, "i16": np.int16},
    **{"i32": np.int32, "i64": np.int64, "i1": np.bool_},
}
HEIGHTS = (1, 2, 4, 8)


def kernel(body: str, *shapes: str, subgroups: int = 1) -> str:
    """A kernel whose arguments are static arrays `%a0`, `%a1`, ..."""
    arguments = ", ".join(f"%a{i}: memref<{s}>" for i, s in enumerate(shapes))
    return f"""
    gpu.module @m {{ gpu.func @k({arguments}) kernel
        attributes {{known_block_size = array<i32: {16 * subgroups}, 1, 1>}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %on = arith.constant dense<true> : vector<16xi1>
      %step = vector.step : vector<16xindex>
      {body}
      gpu.return
    }} }}"""


def row_loads(name: str, argument: int, rows: int, e: str) -> str:
    """A fragment, row by row, of an array of one dimension: works for all types."""
    type_ = f"vector<{rows}x16x{e}>"
    zero = "0.0" if e[0] in "fb" else "0" if e != "i1" else "false"
    lines = [f"%{name}_0 = arith.constant dense<{zero}> : {type_}"]
    for row in range(rows):
        at = f"%{name}_at{row}"
        lines.append(f"""
        %{name}_c{row} = arith.constant dense<{row * 16}> : vector<16xindex>
        {at} = arith.addi %step, %{name}_c{row} : vector<16xindex>
        %{name}_v{row} = xegpu.load %a{argument}[{at}], %on
            : memref<{rows * 16}x{e}>, vector<16xindex>, vector<16xi1>
            -> vector<16x{e}>
        %{name}_{row + 1} = vector.insert %{name}_v{row}, %{name}_{row} [{row}]
            : vector<16x{e}> into {type_}""")
    whole = f"arith.select %{name}_t, %{name}_{rows}, %{name}_{rows} : {type_}"
    lines.append(f"%{name}_t = arith.constant true\n%{name} = {whole}")
    return "\n".join(lines)


def row_stores(name: str, argument: int, rows: int, e: str) -> str:
    lines: list[str] = []
    for row in range(rows):
        lines.append(f"""
        %{name}_sc{row} = arith.constant dense<{row * 16}> : vector<16xindex>
        %{name}_sa{row} = arith.addi %step, %{name}_sc{row} : vector<16xindex>
        %{name}_sv{row} = vector.extract %{name}[{row}]
            : vector<16x{e}> from vector<{rows}x16x{e}>
        xegpu.store %{name}_sv{row}, %a{argument}[%{name}_sa{row}], %on
            : vector<16x{e}>, memref<{rows * 16}x{e}>,
              vector<16xindex>, vector<16xi1>""")
    return "\n".join(lines)


def computed(
    body: str,
    inputs: dict[str, tuple[Array, str]],
    result: tuple[int, str],
) -> Array:
    """`%r` of ``body``, whose inputs are fragments by name; (rows, 16)."""
    rows, e = result
    shapes: list[str] = []
    lines: list[str] = []
    arrays: list[Array] = []
    for number, (name, (array, kind)) in enumerate(inputs.items()):
        lines.append(row_loads(name, number, array.shape[0], kind))
        shapes.append(f"{array.size}x{kind}")
        arrays.append(array.reshape(-1).copy())
    lines += [body, row_stores("r", len(arrays), rows, e)]
    arrays.append(np.zeros(rows * 16, DTYPES[e]))
    shapes.append(f"{rows * 16}x{e}")
    launch(kernel("\n".join(lines), *shapes), *arrays)
    return arrays[-1].reshape(rows, 16)


def numbers(rows: int, e: str, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if e == "i1":
        return rng.integers(0, 2, (rows, 16)).astype(bool)
    if e[0] == "i":
        return rng.integers(-100, 100, (rows, 16)).astype(DTYPES[e])
    return rng.integers(-8, 8, (rows, 16)).astype(DTYPES[e])


@pytest.mark.parametrize("e", DTYPES)
@pytest.mark.parametrize("rows", HEIGHTS)
def test_rows_come_and_go(rows: int, e: str):
    x = numbers(rows, e)
    type_ = f"vector<{rows}x16x{e}>"
    body = f"%t = arith.constant true\n%r = arith.select %t, %x, %x : {type_}"
    assert np.array_equal(computed(body, {"x": (x, e)}, (rows, e)), x)


# Reductions and what undoes them ----------------------------------------------------

FLOAT_KINDS: dict[str, Callable[..., Any]] = {
    **{"add": np.add.reduce, "mul": np.multiply.reduce},
    **{"minimumf": np.minimum.reduce, "maximumf": np.maximum.reduce},
    **{"minnumf": np.fmin.reduce, "maxnumf": np.fmax.reduce},
}
INTEGER_KINDS: dict[str, Callable[..., Any]] = {
    **{"add": np.add.reduce, "mul": np.multiply.reduce, "and": np.bitwise_and.reduce},
    **{"or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce},
    **{"minsi": np.minimum.reduce, "maxsi": np.maximum.reduce},
}


def column_sums(kind: str, rows: int, e: str, start: str) -> str:
    return f"""
    %start = arith.constant dense<{start}> : vector<16x{e}>
    %sum = vector.multi_reduction <{kind}>, %x, %start [0]
        : vector<{rows}x16x{e}> to vector<16x{e}>
    %r = vector.shape_cast %sum : vector<16x{e}> to vector<1x16x{e}>
    """


def row_sums(kind: str, rows: int, e: str, start: str) -> str:
    return f"""
    %start = arith.constant dense<{start}> : vector<{rows}x{e}>
    %sum = vector.multi_reduction <{kind}>, %x, %start [1]
        : vector<{rows}x16x{e}> to vector<{rows}x{e}>
    %one = vector.shape_cast %sum : vector<{rows}x{e}> to vector<{rows}x1x{e}>
    %r = vector.broadcast %one : vector<{rows}x1x{e}> to vector<{rows}x16x{e}>
    """


@pytest.mark.parametrize("rows", HEIGHTS)
@pytest.mark.parametrize("kind", FLOAT_KINDS)
def test_float_reductions_keep_nan_as_their_kind_says(kind: str, rows: int):
    x = np.random.default_rng(1).integers(1, 3, (rows, 16)).astype(np.float32)
    x[0, 3] = x[-1, 11] = np.nan
    start = "1.0" if kind == "mul" else "0.0"
    first = 1.0 if kind == "mul" else 0.0
    combine = FLOAT_KINDS[kind]
    with_start = np.concatenate([x, np.full((1, 16), first, np.float32)])
    found = computed(
        column_sums(kind, rows, "f32", start), {"x": (x, "f32")}, (1, "f32")
    )
    assert np.array_equal(found[0], combine(with_start, axis=0), equal_nan=True)
    with_start = np.concatenate([x, np.full((rows, 1), first, np.float32)], axis=1)
    found = computed(
        row_sums(kind, rows, "f32", start), {"x": (x, "f32")}, (rows, "f32")
    )
    wanted = combine(with_start, axis=1)[:, None]
    assert np.array_equal(found, np.broadcast_to(wanted, found.shape), equal_nan=True)


@pytest.mark.parametrize("e", ["i8", "i32", "i64"])
@pytest.mark.parametrize("kind", INTEGER_KINDS)
def test_integer_reductions_wrap(kind: str, e: str):
    x = numbers(8, e, 2)
    combine = INTEGER_KINDS[kind]
    start = np.full((1, 16), 3, x.dtype)
    found = computed(column_sums(kind, 8, e, "3"), {"x": (x, e)}, (1, e))
    wanted = combine(np.concatenate([x, start]), axis=0, dtype=x.dtype)
    assert np.array_equal(found[0], wanted)
    found = computed(row_sums(kind, 8, e, "3"), {"x": (x, e)}, (8, e))
    wanted = combine(np.concatenate([x, start[:, :8].T], axis=1), axis=1, dtype=x.dtype)
    assert np.array_equal(found, np.repeat(wanted[:, None], 16, axis=1))


@pytest.mark.parametrize("e", ["f16", "bf16"])
def test_narrow_sums_run_in_f32_and_round_once(e: str):
    # 16 times a little more than 256: in bf16 each step would be rounded away.
    x = np.full((8, 16), 1.0, DTYPES[e])
    x[:, 0] = 256.0
    wanted = np.full((8, 16), 256.0 + 15.0).astype(DTYPES[e])
    body = row_sums("add", 8, e, "0.0")
    assert np.array_equal(computed(body, {"x": (x, e)}, (8, e)), wanted)


# What looks across lanes ------------------------------------------------------------


def put_in(rows: int, count: int, e: str, names: list[str]) -> str:
    """Fragments of ``rows`` rows under each other: %w, (rows * count, 16)."""
    whole = f"vector<{rows * count}x16x{e}>"
    zero = "0.0" if e[0] in "fb" else "0"
    lines = [f"%w0 = arith.constant dense<{zero}> : {whole}"]
    for number, name in enumerate(names):
        lines.append(f"""
        %w{number + 1} = vector.insert_strided_slice %{name}, %w{number}
            {{offsets = [{rows * number}, 0], strides = [1, 1]}}
            : vector<{rows}x16x{e}> into {whole}""")
    return "\n".join(lines).replace(f"%w{count} ", "%w ")


@pytest.mark.parametrize("e", ["f32", "bf16", "f16", "i8", "i32", "i64", "f64"])
def test_transposes(e: str):
    upper, lower = numbers(8, e, 3), numbers(8, e, 4)
    body = (
        put_in(8, 2, e, ["x", "y"])
        + f"""
    %t = vector.transpose %w, [1, 0]
        : vector<16x16x{e}> to vector<16x16x{e}>
    %r = vector.extract_strided_slice %t {{offsets = [8, 0], sizes = [8, 16],
        strides = [1, 1]}} : vector<16x16x{e}> to vector<8x16x{e}>
    """
    )
    inputs = {"x": (upper, e), "y": (lower, e)}
    found = computed(body, inputs, (8, e))
    assert np.array_equal(found, np.concatenate([upper, lower]).T[8:])


@pytest.mark.parametrize("e", ["f32", "bf16", "i8", "i64"])
@pytest.mark.parametrize("column", [0, 5, 15])
def test_one_column_for_all(column: int, e: str):
    x = numbers(8, e, 5)
    body = f"""
    %c = vector.extract_strided_slice %x {{offsets = [0, {column}], sizes = [8, 1],
        strides = [1, 1]}} : vector<8x16x{e}> to vector<8x1x{e}>
    %r = vector.broadcast %c : vector<8x1x{e}> to vector<8x16x{e}>
    """
    found = computed(body, {"x": (x, e)}, (8, e))
    assert np.array_equal(found, np.repeat(x[:, column : column + 1], 16, axis=1))


def test_a_row_becomes_a_column_and_back():
    x = numbers(1, "f32", 6)
    body = """
    %c = vector.shape_cast %x : vector<1x16xf32> to vector<16x1xf32>
    %u = vector.extract_strided_slice %c {offsets = [8, 0], sizes = [8, 1],
        strides = [1, 1]} : vector<16x1xf32> to vector<8x1xf32>
    %b = vector.broadcast %u : vector<8x1xf32> to vector<8x16xf32>
    %back = vector.shape_cast %c : vector<16x1xf32> to vector<1x16xf32>
    %d = vector.broadcast %back : vector<1x16xf32> to vector<8x16xf32>
    %r = arith.subf %b, %d : vector<8x16xf32>
    """
    found = computed(body, {"x": (x, "f32")}, (8, "f32"))
    assert np.array_equal(found, x[0, 8:, None] - x)


@pytest.mark.parametrize("e", ["f32", "i8", "i64", "i1"])
def test_elements_are_told_to_all_lanes(e: str):
    x = numbers(2, e, 7)
    order = [3, 14, 0, 7, 9, 9, 1, 2, 15, 4, 5, 6, 8, 10, 11, 12]
    names = ", ".join(f"%e{i}" for i in range(16))
    lines = [f"%row = vector.extract %x[1] : vector<16x{e}> from vector<2x16x{e}>"]
    for i, lane in enumerate(order):
        if i % 2:
            lines.append(
                f"%e{i} = vector.extract %row[{lane}] : {e} from vector<16x{e}>"
            )
        else:
            lines.append(f"%i{i} = arith.constant {lane} : index")
            lines.append(
                f"%e{i} = vector.extract %row[%i{i}] : {e} from vector<16x{e}>"
            )
    body = (
        "\n".join(lines)
        + f"""
    %all = vector.from_elements {names} : vector<16x{e}>
    %r = vector.shape_cast %all : vector<16x{e}> to vector<1x16x{e}>
    """
    )
    found = computed(body, {"x": (x, e)}, (1, e))
    assert np.array_equal(found[0], x[1, order])


@pytest.mark.parametrize(
    "order",
    [
        [(i + 5) for i in range(16)],
        [15 - i for i in range(16)],
        [31, *range(15)],
        [16 + i for i in range(16)],
        [0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10, 27, 12, 29, 14, 31],
    ],
)
def test_shuffles_of_two(order: list[int]):
    x, y = numbers(1, "i32", 8), numbers(1, "i32", 9)
    body = f"""
    %a = vector.shape_cast %x : vector<1x16xi32> to vector<16xi32>
    %b = vector.shape_cast %y : vector<1x16xi32> to vector<16xi32>
    %s = vector.shuffle %a, %b {order} : vector<16xi32>, vector<16xi32>
    %r = vector.shape_cast %s : vector<16xi32> to vector<1x16xi32>
    """
    found = computed(body, {"x": (x, "i32"), "y": (y, "i32")}, (1, "i32"))
    assert np.array_equal(found[0], np.concatenate([x[0], y[0]])[order])


def test_constants_of_many_numbers():
    values = np.arange(32).reshape(2, 16) * 3 % 7
    column = [5, 6, 7, 8]
    body = f"""
    %k = arith.constant dense<{values.tolist()}> : vector<2x16xi32>
    %r = arith.addi %k, %x : vector<2x16xi32>
    """
    x = numbers(2, "i32", 10)
    assert np.array_equal(computed(body, {"x": (x, "i32")}, (2, "i32")), values + x)
    body = f"""
    %k = arith.constant dense<{[[c] for c in column]}> : vector<4x1xi32>
    %r = vector.broadcast %k : vector<4x1xi32> to vector<4x16xi32>
    """
    found = computed(body, {"x": (x, "i32")}, (4, "i32"))
    assert np.array_equal(found, np.repeat(np.array(column)[:, None], 16, axis=1))


# Casts ------------------------------------------------------------------------------


def test_tf32_is_rounded_to_nearest_even_and_keeps_nan():
    x = np.random.default_rng(11).standard_normal((8, 16)).astype(np.float32)
    x[0, :4] = [np.nan, np.inf, -np.inf, 0.0]
    body = """
    %t = arith.truncf %x : vector<8x16xf32> to vector<8x16xtf32>
    %r = arith.extf %t : vector<8x16xtf32> to vector<8x16xf32>
    """
    found = computed(body, {"x": (x, "f32")}, (8, "f32"))
    kept = np.isfinite(x)
    assert np.array_equal(found[~kept], x[~kept], equal_nan=True)
    # 10 bits of fraction: off by at most half of the last of them.
    error = np.abs(found[kept] - x[kept])
    assert np.all(error <= np.abs(x[kept]) * 2.0**-11)
    assert not np.any(found[kept].view(np.int32) & 0x1FFF)


def test_bits_of_bf16_are_free():
    x = numbers(8, "bf16", 12)
    body = """
    %i = arith.bitcast %x : vector<8x16xbf16> to vector<8x16xi16>
    %one = arith.constant dense<1> : vector<8x16xi16>
    %r = arith.xori %i, %one : vector<8x16xi16>
    """
    found = computed(body, {"x": (x, "bf16")}, (8, "i16"))
    assert np.array_equal(found, x.view(np.int16) ^ 1)


def test_one_condition_chooses_a_fragment():
    x = numbers(8, "f32", 13)
    body = """
    %no = arith.constant false
    %z = arith.constant dense<7.0> : vector<8x16xf32>
    %r = arith.select %no, %x, %z : vector<8x16xf32>
    """
    assert np.all(computed(body, {"x": (x, "f32")}, (8, "f32")) == 7.0)


# What nobody can hold ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%v = arith.constant dense<0> : vector<3x5xi32>", "no lane can hold its part"),
        (
            "%v = arith.constant dense<0> : vector<8x16xi32>\n"
            "%w = vector.shape_cast %v : vector<8x16xi32> to vector<16x8xi32>",
            "no lane can hold its part",
        ),
        ("%v = gpu.thread_id x", "`gpu.thread_id` has no form for lanes"),
    ],
)
def test_what_no_lane_can_hold_is_refused_with_its_line(body: str, message: str):
    with pytest.raises(XetlError, match=message) as error:
        launch(kernel(body))
    assert error.value.line == 8 + body.count("\n")
    assert error.value.code == "X0705"
