"""Emission of ``cpu.log``: prints and failed assertions go to a log in memory.

The log is at the start of the workspace. `xetl.runtime.log` defines its format and
reads it after the launch, so kernels call no function.
"""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from xetl.codegen.arith import as_word
from xetl.codegen.emitter import constant
from xetl.codegen.types import I64, Value, append_blocks, memory_type
from xetl.dialects.base import element_type, ints_of, is_vector
from xetl.runtime.log import FAILED, HEADER_WORDS, LOG_WORDS, make_entry
from xetl.transforms.diagnostics import places_of
from xetl_cpu.dialect import LogOp
from xetl_cpu.emit.emitter import KernelEmitter


def entry_of(op: LogOp) -> dict[str, Any]:
    """Return the facts, as JSON, that are needed to format a record."""
    return make_entry(
        op.template.data,
        [(str(element_type(type_)), _shape(type_)) for type_ in op.types.data],
        error=None if op.condition is None else FAILED,
        unsigned=ints_of(op.unsigned),
        where=places_of(op.location),
    )


def _shape(type_: Attribute) -> list[int] | None:
    return list(type_.get_shape()) if is_vector(type_) else None


def emit_log(em: KernelEmitter, op: LogOp) -> None:
    """Write a record; after a failed assertion, end the program."""
    b = em.builder
    after = None
    if op.condition is not None:
        failed, after = append_blocks(b, "check", "no", "yes")
        b.cbranch(em.get(op.condition), after, failed)
        b.position_at_end(failed)
    words = HEADER_WORDS + sum(prod(_shape(type_) or [1]) for type_ in op.types.data)
    first = b.atomic_rmw("add", em.log, constant(words), "monotonic")
    write, done = append_blocks(b, "log", "write", "end")
    fits = b.icmp_signed("<=", b.add(first, words), LOG_WORDS)
    b.cbranch(fits, write, done)
    b.position_at_end(write)
    record = b.gep(em.log, [first], source_etype=I64)
    for index, word in enumerate([constant(em.log_ids[op]), *em.program]):
        b.store(word, b.word_at(record, index), align=8)
    _write_values(em, op, record)
    b.branch(done)
    b.position_at_end(done)
    if after is not None:
        b.branch(em.next_trip)
        b.position_at_end(after)


def _write_values(em: KernelEmitter, op: LogOp, record: Value) -> None:
    at = HEADER_WORDS
    for value, type_ in zip(op.values, op.types.data):
        if not is_vector(type_):
            word = as_word(em, em.get(value), type_)
            em.builder.store(word, em.builder.word_at(record, at), align=8)
        else:
            _write_vector(em, value, type_, record, at)
        at += prod(_shape(type_) or [1])


def _write_vector(
    em: KernelEmitter, value: SSAValue, type_: VectorType, record: Value, at: int
) -> None:
    """Write a vector row by row, from its buffer."""
    b, base = em.builder, em.strided(value)
    rows, cols = [1, *type_.get_shape()][-2:]
    element = type_.element_type
    stored = memory_type(element)
    with (
        b.counted_loop(rows, name="rows") as row,
        b.counted_loop(cols, name="cols") as col,
    ):
        # A single column has a buffer of rank 1.
        indices = [row.index, col.index] if len(base.strides) > 1 else [row.index]
        address = em.element_address(base, indices)
        loaded = b.load(address, typ=stored)
        place = b.add(b.mul(row.index, cols), col.index)
        word = as_word(em, loaded, element)
        b.store(word, b.word_at(record, b.add(at, place)), align=8)
