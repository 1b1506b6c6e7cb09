"""Which values differ between the subgroups of a workgroup, and where they part.

A value is *uniform* when all subgroups that compute it get the same: what starts from
no id of a subgroup is, also what is loaded from an address that is.  Subgroups *part*
at a branch whose condition differs, and at a loop that they run unequally often; a
loop over a part of its own, ``range(id * 8, id * 8 + 8)``, all run equally often.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable

from xetl.analysis.affine import varying_terms
from xetl.analysis.control_flow import targets, yielded
from xetl.dialects.upstream import arith, func, scf
from xetl.records import record


@record()
class Divergence:
    """What differs between subgroups.

    Attributes:
        origins: values that differ, each with the operation that made it so.
        partings: branches and loops that subgroups take differently, likewise.
    """

    origins: dict[SSAValue, Operation]
    partings: dict[Operation, Operation]


def find_divergence(module: ModuleOp, sources: Iterable[Operation]) -> Divergence:
    """Follow what ``sources`` give through values, branches, loops and calls."""
    return _Search(module, sources).run()


class _Search:
    def __init__(self, module: ModuleOp, sources: Iterable[Operation]) -> None:
        self._module = module
        self._found = Divergence({}, {})
        self._pending: list[SSAValue] = []
        self._uneven: dict[scf.ForOp, Operation] = {}
        """Loops with bounds that differ; how often they run is counted later."""
        self._calls: dict[str, list[func.CallOp]] | None = None
        for op in sources:
            self._mark(op.results, op)

    def run(self) -> Divergence:
        while self._pending or self._count_loops():
            value = self._pending.pop()
            origin = self._found.origins[value]
            for use in list(value.uses):
                self._follow(use.operation, use.index, origin)
        return self._found

    def _mark(self, values: Iterable[SSAValue], origin: Operation) -> None:
        for value in values:
            if value not in self._found.origins:
                self._found.origins[value] = origin
                self._pending.append(value)

    def _follow(self, op: Operation, index: int, origin: Operation) -> None:
        """Mark what differs because operand ``index`` of ``op`` does."""
        match op:
            case scf.IfOp():
                self._part(op, origin)
            case scf.ForOp() if index < 3:
                self._bound(op, index, origin)
            case scf.ParallelOp():
                self._part(op, origin)
                self._mark(op.body.block.args, origin)
            case scf.ConditionOp() if index == 0:
                loop = op.parent_op()
                assert loop is not None
                self._part(loop, origin)
            case scf.ForOp() | scf.WhileOp():
                self._mark(targets(op, index), origin)
            case scf.YieldOp() | scf.ConditionOp() | scf.ReduceOp():
                self._mark(targets(op, index), origin)
            case func.CallOp():
                self._call(op, index, origin)
            case func.ReturnOp():
                self._return(op, index, origin)
            case _:
                self._mark(op.results, origin)

    def _bound(self, loop: scf.ForOp, index: int, origin: Operation) -> None:
        if index != 1:
            self._mark((loop.body.block.args[0],), origin)
        if index == 2:
            self._part(loop, origin)
        self._uneven.setdefault(loop, origin)

    def _part(self, op: Operation, origin: Operation) -> None:
        if op in self._found.partings:
            return
        self._found.partings[op] = origin
        results = list(op.results)
        if isinstance(op, scf.IfOp) and results:
            ends = [yielded(region.block) for region in op.regions]
            results = [r for r, a, b in zip(results, *ends) if not _equal(a, b)]
        self._mark(results, origin)

    def _count_loops(self) -> bool:
        """Part at loops that are run unequally often; whether there is more to do."""
        for loop, origin in self._uneven.items():
            if loop not in self._found.partings and not self._is_even(loop):
                self._part(loop, origin)
        return bool(self._pending)

    def _is_even(self, loop: scf.ForOp) -> bool:
        bounds = (loop.lower_bound, loop.upper_bound)
        first, last = (varying_terms(b, self._found.origins) for b in bounds)
        return first == last

    def _call(self, op: func.CallOp, index: int, origin: Operation) -> None:
        callee = SymbolTable.lookup_symbol(op, op.callee)
        if isinstance(callee, func.FuncOp) and callee.body.blocks:
            self._mark((callee.body.block.args[index],), origin)
        else:
            self._mark(op.results, origin)

    def _return(self, op: func.ReturnOp, index: int, origin: Operation) -> None:
        function = op.parent_op()
        assert isinstance(function, func.FuncOp)
        if self._calls is None:
            self._calls = {}
            for call in self._module.walk():
                if isinstance(call, func.CallOp):
                    name = call.callee.root_reference.data
                    self._calls.setdefault(name, []).append(call)
        for call in self._calls.get(function.sym_name.data, ()):
            self._mark((call.results[index],), origin)


def _equal(one: SSAValue, other: SSAValue) -> bool:
    """Whether two values are plainly the same."""
    if one is other:
        return True
    first, second = one.owner, other.owner
    return (
        isinstance(first, arith.ConstantOp)
        and isinstance(second, arith.ConstantOp)
        and first.value == second.value
    )
