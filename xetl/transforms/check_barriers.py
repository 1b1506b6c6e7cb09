"""Check that every barrier is reached by all subgroups of a workgroup or by none.

*What*: refuses a ``gpu.barrier`` in a divergent branch or loop.
*Why*: subgroups that reach it would wait forever, or meet at different barriers. The
pass runs after CSE, because then more values are known to be uniform.
*Left alone*: everything; the module is not changed. Named barriers are meant for some
of the subgroups and are not checked.

Source: docs/xetile.md, section 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from xetl.dialects.base import around, ints_of, operations_in
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUPS, WORKGROUP
from xetl.dialects.upstream import func, gpu, memref, scf
from xetl.dialects.xetile import AtomicRmwTileOp
from xetl.dialects.xetile.used_maps import used_maps
from xetl.errors import ControlFlowError, XetlError
from xetl.imports import late
from xetl.ir.builder import Pass
from xetl.transforms.check_workgroup import functions_of, shared_bytes
from xetl.transforms.diagnostics import DiagnosticEmitter, DiagnosticKind

if TYPE_CHECKING:
    from xetl.analysis.uniformity import Divergence

_find_divergence = late("xetl.analysis.uniformity", "find_divergence")

_FORKS = (scf.IfOp, scf.ForOp, scf.WhileOp, scf.ParallelOp)
_IDS = (gpu.ThreadIdOp, gpu.GlobalIdOp, gpu.SubgroupIdOp, gpu.LaneIdOp)


class CheckBarriersPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        """Check a module.

        Raises:
            ControlFlowError: a kernel from Python breaks the rule.
            IRError: one from a text does.
        """
        for kernel in operations_in(op, gpu.FuncOp):
            inside = [o for f in functions_of(op, kernel) for o in f.walk()]
            found = _barriers(inside)
            barriers = [each for each in found if any(around(each, *_FORKS))]
            if barriers and _subgroups(kernel) != 1:
                divergence = _find_divergence(op, _sources(inside, kernel))
                for barrier in barriers:
                    for fork in around(barrier, *_FORKS):
                        if fork in divergence.partings:
                            report = DiagnosticEmitter(kernel)
                            raise _divergent(barrier, fork, divergence, report)


def _subgroups(kernel: gpu.FuncOp) -> int | None:
    """Return the number of subgroups in a workgroup; None if it is unknown."""
    counts = ints_of(kernel.attributes.get(SUBGROUPS))
    maps = [map_.sg_layout for map_ in used_maps(kernel)]
    return prod(counts or maps[0]) if counts or maps else None


def _divergent(
    barrier: Operation, fork: Operation, found: Divergence, report: DiagnosticEmitter
) -> XetlError:
    return report.error(
        DiagnosticKind(ControlFlowError, "X0612", "X0707"),
        barrier,
        "not all subgroups of a workgroup reach this barrier",
        label="the others would be waited for forever",
        notes=[
            f"subgroups part at {report.place(fork)}, which depends on"
            f" {report.place(found.partings[fork])}"
        ],
        help="move the barrier to where all subgroups come by, equally often",
    )


def _barriers(ops: list[Operation]) -> Iterator[Operation]:
    """Yield barriers, and calls of functions that contain one."""
    waiting: set[str] = set()
    calls: list[func.CallOp] = []
    for op in ops:
        if isinstance(op, func.CallOp):
            calls.append(op)
        if isinstance(op, gpu.BarrierOp):
            yield op
            waiting |= _function_of(op)
    while calls:
        known = [op for op in calls if op.callee.root_reference.data in waiting]
        if not known:
            return
        yield from known
        calls = [op for op in calls if op not in known]
        for op in known:
            waiting |= _function_of(op)


def _function_of(op: Operation) -> set[str]:
    """Return the name of the `func.func` around an operation, if there is one."""
    return {each.sym_name.data for each in around(op, func.FuncOp)}


def _sources(ops: list[Operation], kernel: gpu.FuncOp) -> Iterator[Operation]:
    """Yield the operations whose results differ between subgroups."""
    level = kernel.attributes.get(LEVEL)
    counts = ints_of(kernel.attributes.get(SUBGROUPS))
    for op in ops:
        if isinstance(op, gpu.ThreadIdOp) and len(counts) == 3:
            # Along an axis with one subgroup, all ids are 0.
            if counts[op.axis] > 1:
                yield op
        elif isinstance(op, _IDS):
            yield op
        elif isinstance(op, AtomicRmwTileOp | memref.AtomicRmwOp):
            # A kernel at workgroup level does it once; each subgroup does otherwise.
            if level != StringAttr(WORKGROUP):
                yield op
        elif isinstance(op, memref.AllocaOp) and shared_bytes(op) == 0:
            yield op
