"""expand-scans: expand scans by a function to log2(n) steps through shared memory.

*What*: each ``xetile.tile_associative_scan`` becomes a loop. Its step n combines each
element with the one 2^n places before it, by arrays in shared memory.
*Why*: later passes can distribute the stores, barriers and gathers to subgroups.
*Left alone*: everything else.

before: %r:2 = xetile.tile_associative_scan %v, %w {scan_dim = 0} : ... { combine }
after:  %m = memref.alloc() : memref<8x2xf32, 3 : i64>
        %r:2 = scf.for %n = 0 to 3 iter_args(%a = %v, %b = %w) {
          store_tile %a, ...; gpu.barrier; %before = load_gather ...; gpu.barrier
          arith.select %far_enough, combine(%before, ..., %a, %b), %a ... }

Source: W. D. Hillis, G. L. Steele, Data Parallel Algorithms, CACM 29(12), 1986.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, ModuleOp, VectorType, i1, i8, i32
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects import xetile
from xetl.dialects.base import operations_in, shape_of, vector_type
from xetl.dialects.upstream import arith, scf, vector
from xetl.ir.builder import Builder, Pass, move_to_end
from xetl.transforms.exchange import Exchange, spread


@dataclass(frozen=True)
class ExpandScansPass(Pass):
    """See the module docstring; ``elementwise``: whether to expand all scans."""

    elementwise: bool = True

    def rewrite(self, op: ModuleOp) -> None:
        for each in operations_in(op, xetile.TileAssociativeScanOp):
            if self.elementwise or not each.is_elementwise():
                alone = each.shape[each.dim] == 1
                found = each.sources if alone else _expanded(each)
                Rewriter.replace_op(each, [], list(found))


def _expanded(op: xetile.TileAssociativeScanOp) -> Sequence[SSAValue]:
    """Insert the loop before ``op``; return its results."""
    build, shape, dim = Builder.before(op), op.shape, op.dim
    kinds = [vector_type(each).element_type for each in op.sources]
    memories = [Exchange(op, i8 if kind == i1 else kind, shape) for kind in kinds]
    numbers, other = memories[0].line(dim), memories[0].line(1 - dim)
    line = VectorType(i32, shape_of(numbers.type))
    numbers = build.insert(arith.IndexCastOp(numbers, line))

    loop = build.for_loop(0, (shape[dim] - 1).bit_length(), 1, op.sources)
    step, *after = loop.body.block.args
    body = Builder.at_end(loop.body.block, build.location)
    distance = body.pure(arith.ShliOp, 1, step)
    narrow = body.insert(arith.IndexCastOp(distance, i32))
    far = body.insert(vector.BroadcastOp(narrow, line))
    place = body.insert(arith.SubiOp(numbers, far))
    place = body.insert(arith.MaxsiOp(place, body.constant(0, line)))
    along = VectorType(IndexType(), shape_of(line))
    place = body.insert(arith.IndexCastOp(place, along))
    places = (other, place) if dim else (place, other)
    before = [_moved(body, *each, places) for each in zip(memories, after)]

    block = op.combine.block
    for argument, value in zip(block.args, [*before, *after]):
        argument.replace_all_uses_with(value)
    move_to_end(list(block.ops)[:-1], loop.body.block)
    is_behind = body.insert(arith.CmpiOp("sge", numbers, far))
    chosen = spread(body, is_behind, shape)
    pairs = zip(op.combined, after)
    body.add(scf.YieldOp(*(body.insert(arith.SelectOp(chosen, *p)) for p in pairs)))
    return loop.results


def _moved(
    build: Builder, memory: Exchange, value: SSAValue, places: tuple[SSAValue, SSAValue]
) -> SSAValue:
    """Return the elements at ``places``. Masks are stored as bytes."""
    type_ = value.type
    if vector_type(value).element_type == i1:
        value = build.insert(arith.ExtuiOp(value, VectorType(i8, memory.shape)))
    memory.store(build, value)
    found = memory.gather(build, places)
    return found if found.type == type_ else build.insert(arith.TrunciOp(found, type_))
