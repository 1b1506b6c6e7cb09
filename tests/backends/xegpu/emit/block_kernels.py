"""A kernel for each block that the table of builtins can name."""

from __future__ import annotations

from tests.backends.xegpu.emit.on_opencl import kernel, store_items
from xetl.devices import Access, find_device
from xetl.errors import InternalError
from xetl_xegpu.emit import builtins
from xetl_xegpu.simt import BlockShape

DEVICE = find_device("pvc")
SURFACE = "%base: i64, %w: i64, %h: i64, %p: i64, %x: i64, %y: i64"
PLACE = "%base, %w, %h, %p, %x, %y"


def shapes(access: Access, mode: str = "plain") -> list[BlockShape]:
    """All shapes that a message moves so."""
    found: list[BlockShape] = []
    for bits in (8, 16, 32, 64):
        for rows in (1, 2, 4, 8, 16, 32):
            for columns in (4, 8, 16, 32, 64):
                for count in (1, 2, 4):
                    shape = BlockShape(bits, rows, columns, count, mode)
                    try:
                        builtins.block_message(DEVICE, access, shape)
                    except InternalError:
                        continue
                    found.append(shape)
    return found


LOADS = {mode: shapes("load", mode) for mode in ("plain", "transform", "transpose")}
STORES = shapes("store")
PREFETCHES = shapes("prefetch")


STEP = " step %step"
"""Of a block whose columns are apart; the kernel's first argument is how far."""


def text_of(shape: BlockShape, *, by_lanes: bool = False) -> str:
    count = f", count = {shape.count}" if shape.count > 1 else ""
    mode = f', mode = "{shape.mode}"' if shape.mode != "plain" else ""
    sizes = f"bits = {shape.bits}, rows = {shape.rows}, columns = {shape.columns}"
    lanes = ", by_lanes" if by_lanes else ""
    return f"{{{sizes}{count}{mode}{lanes}}}"


def name_of(shape: BlockShape) -> str:
    sizes = (shape.bits, shape.rows, shape.columns, shape.count)
    return "_".join(map(str, ("k", *sizes)))


def load_kernel(
    shape: BlockShape, *, by_lanes: bool = False, has_step: bool = False
) -> str:
    types = [str(piece) for piece in shape.pieces()]
    values = [f"%v{n}" for n in range(len(types))]
    place = PLACE + STEP * has_step
    block = text_of(shape, by_lanes=by_lanes)
    load = f"simt.block_load {place} {block} : {', '.join(types)}"
    store = store_items(values, types, shape.item_bits // 8)
    body = f"{', '.join(values)} = {load}\n      {store}"
    first = "%step: i64, " * has_step
    return kernel(name_of(shape), f"{first}{SURFACE}, %out: i64", body)


def store_kernel(
    shape: BlockShape, *, by_lanes: bool = False, has_step: bool = False
) -> str:
    """Item i of lane l is element 16 i + l of ``%in``."""
    item, count = f"i{shape.item_bits}", shape.items
    size = shape.item_bits // 8
    lines = [f"%zero = arith.constant 0 : {item}"]
    for n in range(count):
        lines += [
            f"%o{n} = arith.constant {16 * n * size} : i64",
            f"%s{n} = arith.constant {size} : i64",
            f"%l{n} = arith.muli %wide, %s{n} : i64",
            f"%m{n} = arith.addi %o{n}, %l{n} : i64",
            f"%a{n} = arith.addi %in, %m{n} : i64",
            f"%e{n} = simt.load %a{n}, %on, %zero : {item}",
        ]
    value, type_ = "%e0", item
    if count > 1:
        value, type_ = "%v", f"vector<{count}x{item}>"
        parts = ", ".join(f"%e{n}" for n in range(count))
        lines.append(f"%v = vector.from_elements {parts} : {type_}")
    block = text_of(shape, by_lanes=by_lanes)
    place = PLACE + STEP * has_step
    lines.append(f"simt.block_store {value}, {place} {block} : {type_}")
    first = "%step: i64, " * has_step
    arguments = f"{first}{SURFACE}, %in: i64"
    return kernel(name_of(shape), arguments, "\n      ".join(lines))


def prefetch_kernel(found: list[BlockShape]) -> str:
    """All prefetches, one behind the other."""
    lines = [f"simt.block_prefetch {PLACE} {text_of(shape)}" for shape in found]
    return kernel("prefetches", SURFACE, "\n      ".join(lines))
