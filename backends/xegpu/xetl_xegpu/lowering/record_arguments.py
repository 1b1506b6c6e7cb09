"""record-arguments: record what launches need of the arguments, from their types.

*What*: the module gets two attributes. ``xegpu.stored`` lists the arrays that are
written. ``xegpu.arguments`` says what a kernel gets for each argument: a number; or for
an array its address and the sizes and strides (by dimension) that its type leaves open.
For an array it also has the dimensions of the rows and columns of the matrices that
block messages would move, -1 for none.
If a static stride makes rows that no message can move, the pass makes the stride
dynamic, so that a launch may pass a copy (`launch/staging`). All uses of the array must
take the stride from its type.
*Why*: later stages pass only numbers, and lose which number belongs to which argument.
*Left alone*: everything else.

`kernel_ranges` reads them later: ranges of integers in a kernel at stage ``lanes``.

Before: ``gpu.func @k(%a: memref<?x8xf32, strided<[?, 1]>>, %n: i64) kernel``
After:  the same, in a module with ``xegpu.stored = array<i64>`` and
        ``xegpu.arguments = [["array", [0], [0], [0, 1]], ["i64", [], [], []]]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.analysis.memory import stored_arguments
from xetl.analysis.ranges import Range, Ranges
from xetl.dialects import xetile
from xetl.dialects.base import dense_i64, ints_of, is_memref, operations_in
from xetl.dialects.memref_layout import has_static_layout, memory_space_of, strides_of
from xetl.dialects.upstream import gpu, memref
from xetl.dialects.upstream.elementwise import bit_width
from xetl.ir.builder import Pass
from xetl_xegpu import simt
from xetl_xegpu.limits import LEAST_WIDTH, LIMIT, MOST_PROGRAMS, PITCH_STEP

STORED = "xegpu.stored"
"""Indices of the arrays that are written."""
ARGUMENTS = "xegpu.arguments"
BLOCK_ARGUMENTS = "xegpu.block_arguments"
SLICED_ARGUMENTS = "xegpu.sliced_arguments"
"""Those of the block arguments of which matrices begin at any row."""
FOLDED = "xegpu.folded"
"""Set if messages move the block arguments, of one dimension, as rows of 64 bytes."""
ANY_BASE = "xegpu.any_base"
"""Pairs: an argument whose matrices may begin at any multiple, and that multiple."""

Described = tuple[str, list[int], list[int], list[int]]
"""Kind of an argument; the dimensions whose size a kernel gets; the dimensions whose
stride it gets; the dimensions of rows and columns."""


class RecordArgumentsPass(Pass):
    def rewrite(self, op: builtin.ModuleOp) -> None:
        for kernel in operations_in(op, gpu.FuncOp):
            _open_strides(kernel)
            types = kernel.function_type.inputs.data
            op.attributes[STORED] = dense_i64(stored_arguments(kernel))
            op.attributes[ARGUMENTS] = builtin.ArrayAttr(map(_described, types))
            return


def _open_strides(kernel: gpu.FuncOp) -> None:
    """Make strides dynamic in array types whose rows no message can move."""
    block = kernel.body.block
    for given in block.args:
        uses = [use.operation for use in given.uses]
        old = given.type
        if not (is_memref(old) and _has_odd_rows(old) and all(map(_asks_type, uses))):
            continue
        is_open = [stride != 1 for stride in strides_of(old) or []]
        steps = [None if each else 1 for each in is_open]
        shape, layout = old.get_shape(), builtin.StridedLayoutAttr(steps)
        new = builtin.MemRefType(old.element_type, shape, layout, old.memory_space)
        array = Rewriter.replace_value_with_new_type(given, new)
        metadata = memref.ExtractStridedMetadataOp(array)
        metadata.location = kernel.location
        Rewriter.insert_op(metadata, InsertPoint.at_start(block))
        found = [n if each else 1 for each, n in zip(is_open, metadata.strides)]
        for op in cast("list[xetile.InitTileOp]", uses):
            where = array, op.mixed_offsets
            tile = xetile.InitTileOp(*where, op.result.type, shape, found)
            tile.attributes.update(op.attributes)
            tile.location = op.location
            Rewriter.replace_op(op, tile)
    types = [each.type for each in block.args]
    kernel.properties["function_type"] = builtin.FunctionType.from_lists(types, [])


def _asks_type(op: Operation) -> bool:
    """Whether an operation takes the strides of its array from the array's type."""
    if not isinstance(op, xetile.InitTileOp) or op.indices is not None:
        return False
    return not op.mixed_strides


def _has_odd_rows(type_: builtin.MemRefType[Attribute]) -> bool:
    """Whether a type has static strides that block messages cannot take as pitch."""
    if not has_static_layout(type_) or memory_space_of(type_):
        return False
    strides, size = strides_of(type_) or [], -(-bit_width(type_.element_type) // 8)
    return 1 in strides and any(
        step not in (None, 1) and step * size % PITCH_STEP for step in strides
    )


_Table = builtin.ArrayAttr[builtin.ArrayAttr[Attribute]]


def recorded_arguments(module: builtin.ModuleOp) -> list[Described]:
    """Return what the pass recorded, as values that JSON can hold."""
    found = cast("_Table", module.attributes[ARGUMENTS])
    return [_read(*each.data) for each in found]


def passed_arguments(
    module: builtin.ModuleOp, given: Sequence[SSAValue]
) -> Iterator[tuple[str, SSAValue, dict[int, SSAValue], list[int]]]:
    """Yield what a kernel gets for each argument, from the arguments of its lanes.

    Yields:
        The kind; the number, or the address of an array; the sizes that the kernel gets
        by dimension; the dimensions of rows and columns.
    """
    left = iter(given)
    for kind, sizes, strides, matrix in recorded_arguments(module):
        value, extents = next(left), {dim: next(left) for dim in sizes}
        for _ in strides:
            next(left)
        yield kind, value, extents, matrix


def moved_arguments(kernel: Operation) -> tuple[int, ...]:
    """Return the indices of the arrays that block messages of a kernel move."""
    return ints_of(kernel.attributes.get(BLOCK_ARGUMENTS))


def _described(type_: Attribute) -> Attribute:
    if is_memref(type_):
        strides, gap = strides_of(type_) or [], builtin.DYNAMIC_INDEX
        open_sizes = [dim for dim, n in enumerate(type_.get_shape()) if n == gap]
        open_strides: list[int] = []
        if isinstance(type_.layout, builtin.StridedLayoutAttr):
            open_strides = [dim for dim, step in enumerate(strides) if step is None]
        return _entry("array", open_sizes, open_strides, _matrix(strides))
    is_integer = isinstance(type_, builtin.IntegerType | builtin.IndexType)
    return _entry("i64" if is_integer else str(type_))


def _matrix(strides: Sequence[int | None]) -> list[int]:
    """Return the dimensions of rows and columns; that of columns has stride 1."""
    last = len(strides) - 1
    if last < 1:
        return [-1, last]
    return [last - 1, last] if strides[last] == 1 else [last, last - 1]


def _entry(
    kind: str,
    sizes: Sequence[int] = (),
    strides: Sequence[int] = (),
    matrix: Sequence[int] = (),
) -> Attribute:
    dimensions = map(dense_i64, (sizes, strides, matrix))
    return builtin.ArrayAttr([builtin.StringAttr(kind), *dimensions])


def _read(kind: Attribute, *rest: Attribute) -> Described:
    assert isinstance(kind, builtin.StringAttr)
    sizes, strides, matrix = (list(ints_of(each)) for each in rest)
    return kind.data, sizes, strides, matrix


_EXTENT = Range(1, LIMIT - 1)
"""The rows or columns of a matrix that block messages move."""
_FOLDED_EXTENT = Range(1, LIMIT * LEAST_WIDTH - 1)
"""The elements of an array that they move as rows of 64 bytes."""


def kernel_ranges(module: ModuleOp, kernel: simt.FuncOp) -> Ranges:
    """Return ranges in ``kernel``. Launches check the matrices of block messages."""
    subgroups = prod(kernel.lanes) // simt.SUBGROUP_SIZE
    ranges = Ranges(subgroups)
    moved = moved_arguments(kernel)
    for op in kernel.walk():
        if isinstance(op, simt.SubgroupIdOp):
            ranges.say(op.result, Range(0, subgroups - 1))
        elif moved and isinstance(op, simt.GroupIdOp):
            ranges.say(op.result, Range(0, MOST_PROGRAMS - 1))
    extent = _FOLDED_EXTENT if FOLDED in kernel.attributes else _EXTENT
    # A text that begins at this stage has no recorded arguments.
    if moved and ARGUMENTS in module.attributes:
        passed = passed_arguments(module, kernel.body.block.args)
        for number, (*_, extents, matrix) in enumerate(passed):
            for dim in extents.keys() & matrix if number in moved else ():
                ranges.say(extents[dim], extent)
    return ranges
