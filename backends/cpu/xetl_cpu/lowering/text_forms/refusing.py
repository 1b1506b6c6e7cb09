"""What this backend cannot run, found before anything is lowered."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from xetl.codegen.types import byte_width
from xetl.dialects.base import memref_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import memref, vector
from xetl.dialects.xetile import TileReduceOp
from xetl.errors import IRError

_SHARED_LIMIT = 1 << 20
_KNOWN = {
    "gpu": "block_id grid_dim thread_id block_dim subgroup_id num_subgroups barrier "
    "return",
    "scf": "for if while yield condition",
    "memref": "alloc alloca load store dim cast reinterpret_cast subview view "
    "transpose extract_strided_metadata extract_aligned_pointer_as_index",
    "vector": "broadcast shape_cast step extract fma extract_strided_slice",
    "xetile": "init_tile load_tile store_tile prefetch_tile update_tile_offset "
    "tile_mma tile_transpose tile_reduce tile_broadcast tile_conv_layout tile_pack "
    "tile_unpack tile_scan atomic_rmw_tile load_gather store_scatter print assert",
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


def _reason(op: Operation) -> str | None:
    """Why an operation cannot be run, if it cannot."""
    dialect, _, name = op.name.partition(".")
    known = dialect in ("arith", "math") or name in _KNOWN.get(dialect, "").split()
    if not known:
        return "the operation is not known"
    for value in (*op.operands, *op.results):
        problem = _rank_problem(op, value.type)
        if problem is not None:
            return problem
    return _special(op)


def _rank_problem(op: Operation, type_: object) -> str | None:
    if not is_vector(type_):
        return None
    rank = type_.get_num_dims()
    if rank in (1, 2) or (rank == 4 and not op.name.startswith("vector.")):
        return None
    return f"it works on {type_}; vectors must have rank 1 or 2"


def _special(op: Operation) -> str | None:
    if isinstance(op, vector.BroadcastOp) and is_vector(op.operands[0].type):
        return "this form of a broadcast is not known"
    if isinstance(op, vector.ExtractOp):
        if is_vector(op.results[0].type):
            return "only single elements can be extracted"
        if not all(isinstance(each, int) for each in op.position):
            return "the position must be constant"
    if isinstance(op, TileReduceOp) and op.reduction_size is not None:
        return "`reduction_size` is not known"
    if isinstance(op, memref.ReinterpretCastOp) and isinstance(op.source.owner, _VIEWS):
        return "the source is a view itself"
    if isinstance(op, memref.AllocOp | memref.AllocaOp) and (
        any(extent < 0 for extent in _shape(op))
    ):
        return "the memory must have a static shape"
    return None


def _shape(op: Operation) -> tuple[int, ...]:
    return memref_type(op.results[0]).get_shape()


def _error(op: Operation, reason: str) -> IRError:
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
        help="backend `reference` runs every operation",
    )
