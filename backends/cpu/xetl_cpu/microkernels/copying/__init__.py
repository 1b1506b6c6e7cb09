"""The function behind both packers: copy a strided 2-D block and convert it.

The block is ``major x minor`` elements.  ``group`` majors lie together in the result:

    dst[major / group][minor][group]        rows of groups ``ldd * group`` apart

and what is outside ``valid_major x valid_minor`` becomes zero.  Three roads:

* ``rows.py``      the minor stride is 1: vectors are copied (those of a group: woven);
* ``columns.py``   the major stride is 1: squares of 32-bit elements or groups are
                   transposed in registers;
* ``elements.py``  any strides: element by element.

Edges are masked on AVX-512; elsewhere they take the element road.
"""

from xetl_cpu.llvm import I64, Builder, Function, Module, Value, const
from xetl_cpu.microkernels.copying.block import Block, CopyKind, define_copy
from xetl_cpu.microkernels.copying.columns import emit_copy_columns, transposes
from xetl_cpu.microkernels.copying.elements import emit_copy_elements
from xetl_cpu.microkernels.copying.rows import emit_copy_rows
from xetl_cpu.targets import Target

__all__ = ["CopyKind", "emit_block_copy"]


def emit_block_copy(module: Module, target: Target, kind: CopyKind) -> Function:
    """Get or create the copy; its arguments are ``block.PARAMS``.

    Strides are in source elements and may be 0 or negative; ``ldd`` in groups.  Where
    ``kind.unit`` says which stride is 1, it is not looked at.
    """
    if kind.unit == "minor":
        return emit_copy_rows(module, target, kind)
    if kind.unit == "major" and transposes(target, kind):
        return emit_copy_columns(module, target, kind)
    function, builder = define_copy(module, target, kind, "any")
    if builder is not None:
        _choose(builder, Block(builder, target, kind, *function.args))
    return function


def _choose(builder: Builder, block: Block) -> None:
    """Take the fastest road the strides allow."""
    module, target, kind = builder.module, block.target, block.kind
    arguments = list(builder.function.args)
    is_rows = builder.icmp_signed("==", block.stride_minor, const(I64, 1))
    with builder.if_then(is_rows):
        builder.call(emit_copy_rows(module, target, kind), arguments)
        builder.ret_void()
    if transposes(target, kind):
        _try_columns(block, arguments)
    zero = const(I64, 0)
    block.copy_elements(emit_copy_elements, zero, block.groups, zero, block.minor)
    builder.ret_void()


def _try_columns(block: Block, arguments: list[Value]) -> None:
    builder = block.builder
    is_columns = builder.icmp_signed("==", block.stride_major, const(I64, 1))
    with builder.if_then(is_columns):
        columns = emit_copy_columns(builder.module, block.target, block.kind)
        builder.call(columns, arguments)
        builder.ret_void()
