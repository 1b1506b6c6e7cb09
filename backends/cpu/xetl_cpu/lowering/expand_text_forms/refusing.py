"""What this backend cannot run, found before anything is lowered."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    FileLineColLoc,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatTF32Type,
)
from xdsl.ir import Operation

from xetl.codegen.types import byte_width
from xetl.dialects.base import memref_type
from xetl.dialects.kinds_of_types import integer_width
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import memref, xegpu
from xetl.errors import IRError

_SHARED_LIMIT = 1 << 20
_ADVICE = "backend `reference` runs every operation"
_WIDTHS = (1, 8, 16, 32, 64)
_FLOATS = (Float16Type, BFloat16Type, Float32Type, Float64Type, FloatTF32Type)
_KNOWN = {
    "gpu": "block_id grid_dim thread_id block_dim subgroup_id num_subgroups barrier "
    "return",
    "scf": "for if while yield condition",
    "memref": "alloc alloca load store dim cast reinterpret_cast subview view "
    "transpose extract_strided_metadata extract_aligned_pointer_as_index atomic_rmw",
    "vector": "broadcast shape_cast step extract fma extract_strided_slice",
    "cpu": "view_address constant_memory",
    "xegpu": "init_nbarrier nbarrier_arrive nbarrier_wait fence",
}
_VIEWS = (memref.SubviewOp, memref.ViewOp, memref.TransposeOp, memref.ReinterpretCastOp)


def refuse(kernel: Operation) -> None:
    """Look at every operation of a kernel.

    Raises:
        IRError: one of them cannot be run.
    """
    shared = 0
    for op in kernel.walk():
        if op is kernel:
            continue
        reason = _reason(op)
        if reason is not None:
            raise _error(op, reason)
        if isinstance(op, memref.AllocOp | memref.AllocaOp):
            type_ = memref_type(op.results[0])
            if memory_space_of(type_) == 3:
                shared += byte_width(type_.element_type) * prod(type_.get_shape())
            if shared > _SHARED_LIMIT:
                raise _error(
                    op,
                    f"{shared} bytes of shared memory were asked for, "
                    f"{_SHARED_LIMIT} are allowed",
                )


def check_types(kernel: Operation) -> None:
    """Look at the elements of every value of a kernel, before anything is rewritten.

    Raises:
        IRError: there is no code for some.
    """
    for op in kernel.walk():
        arguments = [a for region in op.regions for b in region.blocks for a in b.args]
        for value in (*op.results, *arguments):
            element = getattr(value.type, "element_type", value.type)
            if isinstance(element, AnyFloat) and not isinstance(element, _FLOATS):
                floats = "floats are f16, bf16, f32, f64 or tf32"
                raise _error(op, f"it works on {element}; {floats}", "")
            width = integer_width(element)
            if width is not None and width not in _WIDTHS:
                widths = "integers have 1, 8, 16, 32 or 64 bits"
                raise _error(op, f"it works on {element}; {widths}", "")


def _reason(op: Operation) -> str | None:
    """Why an operation cannot be run, if it cannot."""
    dialect, _, name = op.name.partition(".")
    known = (
        dialect in ("arith", "math", "xetile")
        or name in _KNOWN.get(dialect, "").split()
    )
    if not known:
        return "the operation is not known"
    return _special(op)


def _special(op: Operation) -> str | None:
    if isinstance(op, xegpu.NbarrierArriveOp | xegpu.NbarrierWaitOp):
        made = isinstance(op.nbarrier.owner, xegpu.InitNbarrierOp)
        return None if made else "the barrier must be made outside loops and branches"
    if isinstance(op, memref.AllocOp | memref.AllocaOp) and (
        any(extent < 0 for extent in _shape(op))
    ):
        return "the memory must have a static shape"
    return None


def _shape(op: Operation) -> tuple[int, ...]:
    return memref_type(op.results[0]).get_shape()


def _error(op: Operation, reason: str, advice: str = _ADVICE) -> IRError:
    place = op
    while not isinstance(place.location, FileLineColLoc) and place.parent_op():
        above = place.parent_op()
        assert above is not None
        place = above
    where = place.location
    line = column = None
    if isinstance(where, FileLineColLoc):
        line, column = where.line.data, where.column.data
    return IRError(
        f"backend `cpu` cannot run `{op.name}` here: {reason}",
        code="X0705",
        file="<text>",
        line=line,
        column=column,
        length=len(op.name),
        help=advice or None,
    )
