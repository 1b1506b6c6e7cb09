"""The element road: any strides, one element after the other."""

from dataclasses import replace

from xetl_cpu.llvm import (
    I64,
    PTR,
    Function,
    Module,
    Value,
    const,
    counted_loop,
    offset,
)
from xetl_cpu.microkernels.copying.block import PARAMS, Block, CopyKind, define_copy
from xetl_cpu.targets import Target

__all__ = ["emit_copy_elements"]

_BOUNDS = ("group", "group_stop", "minor", "minor_stop")


def emit_copy_elements(module: Module, target: Target, kind: CopyKind) -> Function:
    """Get or create the copy of the part from (group, minor) up to the stops."""
    kind = replace(kind, minor=0, unit=None)
    params = (*PARAMS[:5], ("dst", PTR), ("ldd", I64), *((x, I64) for x in _BOUNDS))
    function, builder = define_copy(module, target, kind, "elements", params)
    if builder is None:
        return function
    none = const(I64, 0)
    values: list[Value] = list(function.args)
    given = [*values[:5], none, none, *values[5:7]]
    group0, group_stop, minor0, minor_stop = values[7:]
    block = Block(builder, target, kind, *given)
    with (
        counted_loop(builder, group_stop, start=group0) as group,
        counted_loop(builder, minor_stop, start=minor0) as minor,
    ):
        for part in range(kind.group):
            _copy_element(block, group.index, minor.index, part)
    builder.ret_void()
    return function


def _copy_element(block: Block, group: Value, minor: Value, part: int) -> None:
    """Copy the element, or put a zero where it is not valid."""
    builder = block.builder
    major = builder.add(block.first_major(group), const(I64, part))
    is_valid = builder.and_(
        builder.icmp_signed("<", major, block.valid_major),
        builder.icmp_signed("<", minor, block.valid_minor),
    )
    before = builder.block
    with builder.if_then(is_valid):
        value = block.load(block.source_at(major, minor), 1, None)
        inside = builder.block
    phi = builder.phi(value.type)
    phi.add_incoming(const(value.type, 0), before)
    phi.add_incoming(value, inside)
    block.store(phi, offset(builder, block.result_at(group, minor), value.type, part))
