"""Emission of prints and failed assertions: records of the log of a launch.

The log is the status words, a kernel's last argument. `xetl.runtime.log` defines its
format, and reads it after the launch. Its first word is 1 when a launch begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.codegen.arith import as_word, widen
from xetl.codegen.emitter import EmitTable, constant
from xetl.codegen.types import F32, I1, I32, I64, Builder, Value, is_narrow_float, ll
from xetl.devices import Device
from xetl.dialects.base import around, element_type, ints_of, operations_in
from xetl.errors import InternalError
from xetl.runtime.log import FAILED, HEADER_WORDS, LOG_WORDS, make_entry
from xetl.transforms.diagnostics import places_of
from xetl_xegpu import simt
from xetl_xegpu.emit.emitter import GLOBAL, KernelEmitter, chosen
from xetl_xegpu.emit.memory import where
from xetl_xegpu.emit.workgroup import allowed, fail, shuffle
from xetl_xegpu.limits import REFUSED, REFUSED_WORDS, UNALIGNED
from xetl_xegpu.lowering.convert_xetile_to_xegpu.fragments import (
    Span,
    grid_of,
    matrix_shape,
)
from xetl_xegpu.simt import SUBGROUP_SIZE
from xetl_xegpu.simt.block_ops import BlockOp
from xetl_xegpu.simt.memory_ops import AccessOp
from xetl_xegpu.simt.program_ops import RecordOp

# The parts of an f32, and the difference of the exponent biases of f64 and f32.
_SIGN, _SIZE = 1 << 31, (1 << 31) - 1
_LEAST_NORMAL, _INFINITE = 1 << 23, 255 << 23
_BIAS = 1023 - 127

_WORD = 8

_MESSAGE = (
    "kernel `{}` sends a block message that no GPU takes ({}): base {{}}, width {{}} "
    "and pitch {{}} bytes, {{}} rows, at column {{}} and row {{}}"
)
_SHARED = (
    "kernel `{}` accesses {} at byte {{}} of its shared memory of {} bytes: it is "
    "outside, or no multiple of the size of the element"
)
_LANES = (
    "kernel `{}` has subgroups of {} lanes, but the driver runs it with subgroups of "
    "{{}} lanes"
)


def log_operations(module: ModuleOp, device: Device) -> list[Operation]:
    """Return all operations that write records; their positions are their numbers.

    Prints and assertions come first, then the operations that an emulated device
    checks.
    """
    found: list[Operation] = [*operations_in(module, RecordOp)]
    if device.emulated:
        found += operations_in(module, simt.FuncOp)
        blocks = operations_in(module, BlockOp)
        found += [each for each in blocks if each.by_lanes is None]
        accesses = operations_in(module, AccessOp)
        found += [each for each in accesses if each.is_local]
    return found


def entry_of(op: Operation) -> dict[str, Any]:
    """Return how to format the records of an operation, as JSON."""
    where = places_of(op.location)
    if not isinstance(op, RecordOp):
        text, count = _refusal(op)
        return make_entry(text, [("i64", None)] * count, error=REFUSED, where=where)
    return make_entry(
        op.template.data,
        [
            (str(element_type(parts[0].type)), shape or None)
            for shape, parts in _fields(op)
        ],
        error=FAILED if isinstance(op, simt.AssertOp) else None,
        unsigned=ints_of(op.unsigned),
        where=where,
    )


def _refusal(op: Operation) -> tuple[str, int]:
    """Return the error text for a refused operation, and how many numbers it has."""
    (kernel,) = around(op, simt.FuncOp)
    name = kernel.sym_name.data.removesuffix(UNALIGNED)
    if isinstance(op, BlockOp):
        return _MESSAGE.format(name, op.shape), 6
    if isinstance(op, AccessOp):
        return _SHARED.format(name, op.element, kernel.slm_bytes.value.data), 1
    return _LANES.format(name, SUBGROUP_SIZE), 1


def room_of(module: ModuleOp) -> int:
    """Return the words of the log: room for one refusal, if nothing else writes."""
    return LOG_WORDS if operations_in(module, RecordOp) else REFUSED_WORDS


def _fields(op: RecordOp) -> Iterator[tuple[tuple[int, ...], list[SSAValue]]]:
    """Yield the shape of each field, and the operands that hold it."""
    operands = list(op.operands[1:] if isinstance(op, simt.AssertOp) else op.operands)
    for shape in op.field_shapes():
        count = len(_fragments(shape))
        if count > len(operands):
            raise InternalError(f"{op.template} has too few values")
        yield shape, operands[:count]
        operands = operands[count:]
    if operands:
        raise InternalError(f"{op.template} has too many values")


def _fragments(shape: tuple[int, ...]) -> list[tuple[Span, int]]:
    """Return the rows and the group of columns of each fragment, one for a number."""
    return grid_of(*matrix_shape(shape)).blocks()


def _record(em: KernelEmitter, op: RecordOp) -> None:
    """Reserve room in the log, and write the record if the log is not full."""
    b = em.builder
    words = HEADER_WORDS + sum(prod(shape) for shape in op.field_shapes())
    log = b.inttoptr(em.status_words(), GLOBAL)
    is_first = b.icmp_signed("==", em.lane(), I32(0))
    take = partial(b.atomic_rmw, "add", log, constant(words), "monotonic")
    start = shuffle(em, chosen(b, is_first, take, constant(0)), I32(0))
    fits = b.icmp_signed("<=", b.add(start, constant(words)), constant(LOG_WORDS))
    with b.if_then(fits):
        record = b.gep(log, [start], source_etype=I64)
        with b.if_then(is_first):
            program = map(em.program, range(3))
            for index, word in enumerate([constant(em.log_ids[op]), *program]):
                b.store(word, _word(em, record, constant(index)), align=_WORD)
        _write_values(em, op, record)


def _word(em: KernelEmitter, record: Value, index: Value) -> Value:
    return em.builder.gep(record, [index], source_etype=I64)


def _write_values(em: KernelEmitter, op: RecordOp, record: Value) -> None:
    at = HEADER_WORDS
    for shape, parts in _fields(op):
        columns = shape[-1] if shape else 1
        for (rows, group), part in zip(_fragments(shape), parts):
            column = group * SUBGROUP_SIZE
            for index in range(rows.count):
                value = em.get(part)
                if isinstance(value.type, ll.VectorType):
                    value = em.builder.extract_element(value, I32(index))
                word = _as_word(em, value, element_type(part.type))
                start = at + (rows.first + index) * columns + column
                _write_row(em, record, start, word, columns - column)
        at += prod(shape)


def _as_word(em: KernelEmitter, value: Value, type_: Attribute) -> Value:
    """Return a number as an i64: the integer, or the bits of the float as f64."""
    if is_narrow_float(type_):
        value = widen(em, value)
    if value.type != F32:
        return as_word(em, value, type_)
    return _bits_of_f64(em.builder, value)


def _bits_of_f64(b: Builder, value: Value) -> Value:
    """Return the bits of an f32 as f64, by integer operations: f64 may be missing."""
    bits = b.bitcast(value, I32)
    size = b.and_(bits, I32(_SIZE))
    is_small = b.icmp_unsigned("<", size, I32(_LEAST_NORMAL))
    # Below the normal numbers, the bits count units of 2**-149: as a float, these are
    # a normal number or 0.
    normal = b.select(is_small, b.bitcast(b.uitofp(size, F32), I32), size)
    shift = b.select(is_small, I64(_BIAS - 149), I64(_BIAS))
    is_endless = b.icmp_unsigned(">=", size, I32(_INFINITE))
    shift = b.select(is_endless, I64(2 * _BIAS), shift)
    wide = b.add(b.shl(b.zext(normal, I64), I64(29)), b.shl(shift, I64(52)))
    wide = b.select(b.icmp_unsigned("==", size, I32(0)), I64(0), wide)
    sign = b.shl(b.zext(b.and_(bits, I32(_SIGN)), I64), I64(32))
    return b.or_(wide, sign)


def _write_row(
    em: KernelEmitter, record: Value, start: int, word: Value, count: int
) -> None:
    """Write a word of each of the first ``count`` lanes, side by side."""
    b, lane = em.builder, em.lane()
    with b.if_then(b.icmp_unsigned("<", lane, I32(min(count, SUBGROUP_SIZE)))):
        index = b.add(b.zext(lane, I64), constant(start))
        b.store(word, _word(em, record, index), align=_WORD)


def _print(em: KernelEmitter, op: simt.PrintOp) -> None:
    with where(em, allowed(em, I1(1))):
        _record(em, op)


def _assert(em: KernelEmitter, op: simt.AssertOp) -> None:
    """Write a record and fail. After a failure other assertions write nothing."""
    b = em.builder
    failed = allowed(em, b.xor(em.get(op.condition), I1(1)))
    with b.if_then(failed):
        _record(em, op)
        fail(em)


TABLE: EmitTable = {simt.PrintOp: _print, simt.AssertOp: _assert}
