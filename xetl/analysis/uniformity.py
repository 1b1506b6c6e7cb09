"""Divergence: values that differ between the subgroups of a workgroup, and branches.

A value is *uniform* if all subgroups that compute it get the same value. This holds for
values that do not depend on a subgroup id, and for loads from a uniform address.
Control flow *diverges* at a branch whose condition is not uniform, and at a loop whose
trip count is not. All subgroups run ``range(id * 8, id * 8 + 8)`` equally often.
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
    """The values and branches that are not uniform.

    Attributes:
        origins: maps each value that differs to the operation that is the cause.
        partings: maps each divergent branch or loop to the operation that is the cause.
    """

    origins: dict[SSAValue, Operation]
    partings: dict[Operation, Operation]


def find_divergence(module: ModuleOp, sources: Iterable[Operation]) -> Divergence:
    """Propagate the results of ``sources`` through values, control flow and calls."""
    return _Search(module, sources).run()


class _Search:
    def __init__(self, module: ModuleOp, sources: Iterable[Operation]) -> None:
        self._module = module
        self._found = Divergence({}, {})
        self._pending: list[SSAValue] = []
        self._uneven: dict[scf.ForOp, Operation] = {}
        """Loops whose bounds differ; their trip counts are compared later."""
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
        """Mark the values that differ because operand ``index`` of ``op`` differs."""
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
        """Mark loops whose trip counts differ; return whether values are pending."""
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
    """Whether two values are the same value or equal constants."""
    if one is other:
        return True
    first, second = one.owner, other.owner
    return (
        isinstance(first, arith.ConstantOp)
        and isinstance(second, arith.ConstantOp)
        and first.value == second.value
    )
