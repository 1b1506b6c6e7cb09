"""A kernel for each product that the table of builtins can name."""

from __future__ import annotations

from itertools import product

from tests.backends.xegpu.emit.on_opencl import kernel

PRODUCTS = [
    ("f16", "f16", "f32"),
    ("f16", "f16", "f16"),
    ("bf16", "bf16", "f32"),
    ("bf16", "bf16", "bf16"),
    ("tf32", "tf32", "f32"),
    *((a, b, "i32") for a, b in product(("i8", "u8"), repeat=2)),
]
ROWS = (1, 2, 4, 8)


def vector(count: int, element: str) -> str:
    return element if count == 1 else f"vector<{count}x{element}>"


def operand(name: str, count: int, element: str) -> str:
    """Load items 16 i + l of an array, and put them together."""
    size = {"i16": 2, "f16": 2, "bf16": 2, "f64": 8}.get(element, 4)
    zero = "0.0" if "f" in element else "0"
    lines = [f"%{name}z = arith.constant {zero} : {element}"]
    for n in range(count):
        lines += [
            f"%{name}o{n} = arith.constant {16 * n * size} : i64",
            f"%{name}s{n} = arith.constant {size} : i64",
            f"%{name}m{n} = arith.muli %wide, %{name}s{n} : i64",
            f"%{name}t{n} = arith.addi %{name}o{n}, %{name}m{n} : i64",
            f"%{name}p{n} = arith.addi %{name}, %{name}t{n} : i64",
            f"%{name}e{n} = simt.load %{name}p{n}, %on, %{name}z : {element}",
        ]
    if count > 1:
        parts = ", ".join(f"%{name}e{n}" for n in range(count))
        lines.append(
            f"%{name}v = vector.from_elements {parts} : {vector(count, element)}"
        )
    return "\n      ".join(lines)


def product_kernel(a: str, b: str, acc: str, rows: int) -> str:
    is_tf32 = a == "tf32"
    item, count = ("f32", max(1, rows // 2)) if is_tf32 else ("i16", rows)
    right = "f32" if is_tf32 else "i32"
    left = "%ae0" if count == 1 else "%av"
    start = "%ce0" if rows == 1 else "%cv"
    types = f"{vector(count, item)}, vector<8x{right}>, {vector(rows, acc)}"
    lines = [
        operand("a", count, item),
        operand("b", 8, right),
        operand("c", rows, acc),
        f'%d = simt.dpas {left}, %bv, {start} {{a_type = "{a}", b_type = "{b}"}}'
        f" : {types} -> {vector(rows, acc)}",
    ]
    lines += stored(rows, acc)
    name = f"k_{a}_{b}_{acc}_{rows}"
    return kernel(name, "%a: i64, %b: i64, %c: i64", "\n      ".join(lines))


def lane_product_kernel(element: str, rows: int) -> str:
    """The two halves of B are arguments of their own."""
    sums = vector(rows, element)
    left, start = ("%ae0", "%ce0") if rows == 1 else ("%av", "%cv")
    half = vector(8, element)
    lines = [
        operand("a", rows, element),
        operand("b", 8, element),
        operand("l", 8, element),
        operand("c", rows, element),
        f"%d = simt.lane_product {left}, %bv, %lv, {start}"
        f" : {sums}, {half}, {half}, {sums} -> {sums}",
        *stored(rows, element),
    ]
    arguments = "%a: i64, %b: i64, %l: i64, %c: i64"
    return kernel(f"k_{element}_{rows}", arguments, "\n      ".join(lines))


def stored(rows: int, acc: str) -> list[str]:
    """Put the result where C was."""
    lines: list[str] = []
    for row in range(rows):
        value = "%d"
        if rows > 1:
            value = f"%d{row}"
            lines.append(
                f"{value} = vector.extract %d[{row}] : {acc} from {vector(rows, acc)}"
            )
        lines.append(f"simt.store {value}, %cp{row}, %on : {acc}")
    return lines
