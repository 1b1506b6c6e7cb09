"""Loops without a fixed number of iterations: ``scf.while``.

These are ``while`` loops, and ``for`` loops that contain ``break`` or ``return``. If a
loop may be left, the exit code is loop-carried, and the test runs only while it is 0.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence, Set

from xdsl.ir import Region, SSAValue

from xetl.dialects.upstream import arith, scf
from xetl.errors import CompileError
from xetl.frontend import arithmetic, exits
from xetl.frontend.arguments import Arg
from xetl.frontend.assignment import assign, assigned_names
from xetl.frontend.branches import begin_path, is_cheap, join
from xetl.frontend.carrying import Carried, can_cross, from_ssa, to_ssa
from xetl.frontend.casts import runtime
from xetl.frontend.context import Context
from xetl.frontend.statements import Counter
from xetl.frontend.types import (
    BROKEN,
    CONTINUED,
    RETURNED,
    RUNNING,
    Binding,
    Exit,
    Scalar,
    Tail,
    is_constant,
)
from xetl.ir.builder import move_to_end

_TEST = "<test>"
Values = Sequence[SSAValue]


class _WhileLoop(ABC):
    """The builder of an ``scf.while``; subclasses add the test and the counter.

    It carries, in this order: the loop's own values, the names, the exit code if the
    body may leave the loop, the names that only the test sets, and returned values.
    """

    def __init__(
        self,
        ctx: Context,
        node: ast.For | ast.While,
        changing: set[str],
        targets: Set[str] = frozenset(),
        own_starts: Values = (),
    ) -> None:
        """Take the loop, the names it changes, and starts of the loop's own values."""
        self.ctx, self.node, self.targets = ctx, node, targets
        self.leaves = exits.may_leave(node.body)
        self.carried = Carried(ctx, node, changing)
        self.starts = [*own_starts, *self.carried.starts(ctx)]
        self.own = len(own_starts)
        self.names = len(self.starts)
        if self.leaves:
            self.starts.append(exits.code_of(ctx, RUNNING))
        self.passed: list[SSAValue] = []
        self.yielded: list[SSAValue] = []
        self.fresh: dict[str, Binding] = {}
        self.exit = RUNNING
        self.returned: Binding | None = None
        self.returned_at: int | None = None

    @abstractmethod
    def test(self, own: Values) -> Scalar | bool:
        """Compute whether another iteration begins."""

    @abstractmethod
    def enter(self, own: Values) -> None:
        """Begin an iteration."""

    def advance(self, own: Values) -> list[SSAValue]:
        """Return the loop's own values for the next iteration."""
        return []

    def run(self) -> None:
        """Compile the loop."""
        self.build_test()
        self.build_body()
        self.carry_returned()
        self.finish()

    def build_test(self) -> None:
        """Build the first region: it tests whether to go on, and passes values on."""
        ctx = self.ctx
        with ctx.into([value.type for value in self.starts]) as self.before:
            own = self.before.args[: self.own]
            self.carried.enter(ctx, self.before.args[self.own : self.names])
            code = self.before.args[self.names :]
            if self.leaves:
                ctx.scope.exit = Exit(frozenset((0, BROKEN, RETURNED)), code[0])
            self.going, self.endless = self._go_on(own)
            ctx.scope.exit = RUNNING
            self.passed = [*own, *self.carried.pass_on(ctx), *code]
            for name in sorted(_set_by_test(self.node)):
                binding = ctx.scope.bindings.get(name)
                if name in self.carried.first or binding is None:
                    continue
                if can_cross(binding.value):
                    self.fresh[name] = binding
                    self.passed += to_ssa(ctx, binding.value)

    def _go_on(self, own: Values) -> tuple[Scalar, bool]:
        """Return the condition, and whether only the body can end the loop."""
        ctx = self.ctx
        if not self.leaves:
            condition = self.test(own)
            if condition is True:
                raise self._never_ends()
            return runtime(ctx, condition), False
        tests: list[Scalar | bool] = []
        exit_ = ctx.scope.exit
        running = exits.has_code(ctx, exit_, 0)

        def test() -> None:
            ctx.scope.exit = RUNNING
            tests.append(self.test(own))
            ctx.scope.bind(_TEST, tests[0])

        def leave() -> None:
            ctx.scope.exit = exits.stopped(exit_)
            ctx.scope.bind(_TEST, False)

        then, otherwise = begin_path(ctx, test), begin_path(ctx, leave)
        condition = tests[0]
        if condition is True:
            return running, True
        if is_cheap(then.block) and not _set_by_test(self.node):
            move_to_end(then.block.ops, ctx.block)
            both = arithmetic.select(ctx, True, running, running, condition)
            return both, False
        join(ctx, running, then, otherwise, self.node, keep_exit=True)
        return runtime(ctx, ctx.scope.bindings.pop(_TEST).value), False

    def _never_ends(self) -> CompileError:
        node = self.node
        return self.ctx.error(
            "X0610",
            "this loop never ends",
            node.test if isinstance(node, ast.While) else node.iter,
            help="leave it with `break` or `return`, or give it a condition",
        )

    def build_body(self) -> None:
        """Build the second region: one iteration."""
        ctx = self.ctx
        with ctx.into([value.type for value in self.passed]) as self.after:
            own = self.after.args[: self.own]
            self.carried.enter_body(ctx, self.after.args[self.own :])
            self._bind_fresh(self.after.args[len(self.starts) :])
            self.enter(own)
            ctx.run(self.node.body, Tail())
            ctx.node = self.node
            self.exit = exits.remap(ctx, ctx.scope.exit, {CONTINUED: 0})
            self.returned = ctx.scope.returned
            ctx.scope.exit, ctx.scope.returned = RUNNING, None
            self.yielded = self.advance(own) if self.exit.may_run else list(own)
            self.yielded += self.carried.ends(ctx, self.targets)
            if self.leaves:
                self.yielded.append(exits.code_of(ctx, self.exit))
        if self.endless and not self.exit.codes & {BROKEN, RETURNED}:
            raise self._never_ends()

    def _bind_fresh(self, values: Values) -> None:
        rest = iter(values)
        for name, binding in self.fresh.items():
            self.ctx.scope.bind(name, from_ssa(binding.value, rest), binding.node)

    def carry_returned(self) -> None:
        """Make the value of a ``return`` in the body a result of the loop.

        Its kind is known only after the body, so arguments are added to both regions.
        """
        if self.returned is None or is_constant(self.returned.value):
            return
        ctx, value = self.ctx, self.returned.value
        nothing = exits.any_value(ctx, value)
        self.returned_at = len(self.passed)
        # The names that the test sets are passed on, but not carried.
        for start in to_ssa(ctx, nothing):
            argument = self.before.insert_arg(start.type, len(self.before.args))
            self.after.insert_arg(start.type, len(self.after.args))
            self.starts.append(start)
            self.passed.append(argument)
        with ctx.appending(self.after):
            self.yielded += to_ssa(ctx, value)

    def finish(self) -> None:
        """End both regions, add the op and bind its results."""
        ctx = self.ctx
        with ctx.appending(self.before):
            ctx.add(scf.ConditionOp(self.going.ssa, *self.passed))
        with ctx.appending(self.after):
            ctx.add(scf.YieldOp(*self.yielded))
        types = [value.type for value in self.passed]
        regions = Region(self.before), Region(self.after)
        results = ctx.add(scf.WhileOp(self.starts, types, *regions)).results
        self.carried.leave(ctx, results[self.own :], self.targets)
        if self.fresh and not self.leaves:
            self._bind_fresh(results[self.names :])
        if self.leaves:
            self._set_exit(Scalar(results[self.names], "int"))
        if self.returned is not None:
            value = self.returned.value
            if self.returned_at is not None:
                value = from_ssa(value, iter(results[self.returned_at :]))
            ctx.scope.returned = Binding(value, self.returned.node)

    def _set_exit(self, code: Scalar) -> None:
        """Set the exit after the loop: `break` ends there, `return` remains."""
        codes = self.exit.codes - {0}
        if not self.endless:
            codes |= {0}
        known = Exit(codes, code.ssa if len(codes) > 1 else None)
        self.ctx.scope.exit = exits.remap(self.ctx, known, {BROKEN: 0})


class _While(_WhileLoop):
    """A ``while`` statement."""

    def test(self, own: Values) -> Scalar | bool:
        """Compute the user's condition."""
        assert isinstance(self.node, ast.While)
        condition = self.node.test
        return arithmetic.truth(self.ctx, Arg(self.ctx.evaluate(condition), condition))

    def enter(self, own: Values) -> None:
        """Do nothing."""


def run_while(ctx: Context, node: ast.While) -> None:
    """Compile a ``while`` statement."""
    _While(ctx, node, assigned_names([*node.body, node.test])).run()


class _LeftRange(_WhileLoop):
    """A ``for`` that may be left: it carries its counter, and tests the bound."""

    counter: Counter
    target: ast.expr

    def test(self, own: Values) -> Scalar:
        """Compute whether the counter is below its bound."""
        more = arith.CmpiOp("slt", own[0], self.counter.bounds[1])
        return Scalar(self.ctx.emit(more), "bool")

    def enter(self, own: Values) -> None:
        """Set the user's counter."""
        assign(self.ctx, self.target, self.counter.value(self.ctx, own[0]), self.node)

    def advance(self, own: Values) -> list[SSAValue]:
        """Return the next value of the counter."""
        return [self.ctx.emit(arith.AddiOp(own[0], self.counter.bounds[2]))]


def run_left_range(ctx: Context, node: ast.For, counter: Counter) -> None:
    """Compile a ``for`` statement that may be left."""
    targets = assigned_names([node.target])
    changing = assigned_names(node.body) | targets
    loop = _LeftRange(ctx, node, changing, targets, [counter.bounds[0]])
    loop.counter, loop.target = counter, node.target
    loop.run()


def _set_by_test(node: ast.For | ast.While) -> set[str]:
    return assigned_names([node.test]) if isinstance(node, ast.While) else set()
