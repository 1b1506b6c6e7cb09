"""Run-time branches: ``scf.if``, and the values of names after its two paths."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import field, replace

from xdsl.ir import Block, Region, SSAValue

from xetl.dialects.upstream import scf
from xetl.frontend import carrying, exits
from xetl.frontend.casts import to_float
from xetl.frontend.context import Context
from xetl.frontend.types import (
    RETURNED,
    RUNNING,
    Array,
    Binding,
    Exit,
    Scalar,
    State,
    Tail,
    Unset,
    Value,
    is_constant,
    is_scalar,
    scalar_kind,
)
from xetl.records import record

Work = Callable[[], None]


@record(eq=False)
class Path:
    """One of two paths: its block, and the state at its end."""

    block: Block
    state: State

    @property
    def may_run(self) -> bool:
        """Whether the statements that follow may still run."""
        return self.state.exit.may_run


def begin_path(ctx: Context, work: Work) -> Path:
    """Do ``work`` in a new block, then restore the scope."""
    before = ctx.scope.state
    with ctx.into() as block:
        work()
        path = Path(block, ctx.scope.state)
    ctx.scope.state = before
    return path


def go_on(ctx: Context, path: Path, work: Work) -> None:
    """Do more ``work`` at the end of a path."""
    before = ctx.scope.state
    with ctx.appending(path.block):
        ctx.scope.state = path.state
        work()
        path.state = ctx.scope.state
    ctx.scope.state = before


def is_cheap(block: Block) -> bool:
    """Whether a block computes a number from numbers in a few steps."""
    ops = list(block.ops)
    return len(ops) <= CHEAP and all(op.name.startswith("arith.") for op in ops)


CHEAP = 8


def fork(
    ctx: Context, condition: Scalar, then: Work, otherwise: Work, node: ast.stmt
) -> None:
    """Compile an ``scf.if`` with two bodies; names of equal kinds become results."""
    join(ctx, condition, begin_path(ctx, then), begin_path(ctx, otherwise), node)


def guard(ctx: Context, work: Work, node: ast.stmt) -> None:
    """Do ``work`` under the condition that the path, of unknown exit, still runs."""
    exit_ = ctx.scope.exit

    def run() -> None:
        ctx.scope.exit = RUNNING
        work()

    def leave() -> None:
        ctx.scope.exit = exits.stopped(exit_)

    fork(ctx, exits.has_code(ctx, exit_, 0), run, leave, node)


def resume(
    ctx: Context, rest: Sequence[ast.stmt], tail: Tail | None, node: ast.stmt
) -> None:
    """Compile the statements after ``node``, on a path that may still run."""
    if ctx.scope.exit.known == 0:
        ctx.run(rest, tail)
    elif rest:
        guard(ctx, lambda: ctx.run(rest, tail), node)
    elif tail is not None:
        exits.reach(ctx, tail)


def branch(
    ctx: Context,
    condition: Scalar,
    node: ast.If,
    rest: Sequence[ast.stmt],
    tail: Tail | None,
) -> bool:
    """Compile an ``if``; return whether ``rest``, the statements after it, is included.

    If one path always ends, ``rest`` is compiled as a part of the other one. Then no
    exit code is needed, and names that only the other path sets remain usable.
    """
    then = begin_path(ctx, lambda: ctx.run(node.body))
    otherwise = begin_path(ctx, lambda: ctx.run(node.orelse))
    taken = not (then.may_run and otherwise.may_run)
    for path in (then, otherwise):
        if taken and path.may_run:
            go_on(ctx, path, lambda: resume(ctx, rest, tail, node))
        elif tail is not None and (taken or not rest):
            go_on(ctx, path, lambda: exits.reach(ctx, tail))
    ctx.node = node
    join(ctx, condition, then, otherwise, node)
    return taken


# The join of two paths --------------------------------------------------------------


@record(eq=False)
class _Join:
    """The join of two paths: the values that each yields, and the use of results."""

    ctx: Context
    one: Path
    other: Path
    node: ast.stmt
    from_one: list[SSAValue] = field(default_factory=list[SSAValue])
    from_other: list[SSAValue] = field(default_factory=list[SSAValue])
    results: list[Callable[[Sequence[SSAValue]], None]] = field(
        default_factory=list["Callable[[Sequence[SSAValue]], None]"]
    )

    def cross(self, one: Value, other: Value, use: Callable[[Value], None]) -> None:
        """Make a result of two values of one kind; ``_DEAD`` stands for any value."""
        like, also = (other, one) if one is _DEAD else (one, other)
        start = len(self.from_one)
        for path, value, found in (
            (self.one, one, self.from_one),
            (self.other, other, self.from_other),
        ):
            with self.ctx.appending(path.block):
                if value is _DEAD:
                    value = exits.any_value(self.ctx, like)
                found += carrying.to_ssa(self.ctx, value)
        self.results.append(
            lambda ssa: use(carrying.from_ssa(like, iter(ssa[start:]), also))
        )

    def finish(self, condition: Scalar) -> None:
        """Add the ``scf.if``, and pass its results to their users."""
        for path, values in (self.one, self.from_one), (self.other, self.from_other):
            with self.ctx.appending(path.block):
                self.ctx.add(scf.YieldOp(*values))
        types = [value.type for value in self.from_one]
        regions = Region(self.one.block), Region(self.other.block)
        op = self.ctx.add(scf.IfOp(condition.ssa, types, *regions))
        for use in self.results:
            use(op.results)


_DEAD = object()


def join(
    ctx: Context,
    condition: Scalar,
    one: Path,
    other: Path,
    node: ast.stmt,
    *,
    keep_exit: bool = False,
) -> None:
    """End both paths; a name becomes a result if its two values have the same kind.

    A name that only one path sets is usable if the other path has ended. With
    ``keep_exit`` the exit stays as it was before both paths.
    """
    before, scope = ctx.scope.bindings, ctx.scope
    meeting = _Join(ctx, one, other, node)
    merged = dict(before)
    names = {**one.state.bindings, **other.state.bindings}
    if one.state.exit.known == other.state.exit.known == RETURNED:
        names = {}  # no statement follows that could read a name
    for name in names:
        _join_name(meeting, name, before.get(name), merged)
    _join_returned(meeting)
    exit_ = scope.exit if keep_exit else _join_exit(meeting)
    meeting.finish(condition)
    scope.bindings = merged
    if exit_ is not None:
        scope.exit = exit_


def _join_name(
    meeting: _Join, name: str, before: Binding | None, merged: dict[str, Binding]
) -> None:
    one = meeting.one.state.bindings.get(name)
    other = meeting.other.state.bindings.get(name)
    if one is not None and other is not None and _agree(one, other):
        merged[name] = one
        return
    alive = _only_alive(meeting, one, other)
    if alive is not None and is_constant(alive.value):
        merged[name] = alive
        return
    why = None if alive is not None else _why_unset(name, one, other, meeting.node)
    if why is not None:
        merged[name] = Binding(Unset(why), meeting.node)
        return
    where = alive or (one if one is not before else other)
    assert where is not None

    def use(value: Value) -> None:
        merged[name] = Binding(value, where.node)

    if alive is None:
        assert one is not None
        assert other is not None
        meeting.cross(one.value, other.value, use)
    elif alive is one:
        meeting.cross(alive.value, _DEAD, use)
    else:
        meeting.cross(_DEAD, alive.value, use)


def _agree(one: Binding, other: Binding) -> bool:
    return one is other or carrying.same(one.value, other.value)


def _only_alive(
    meeting: _Join, one: Binding | None, other: Binding | None
) -> Binding | None:
    """Return the binding to use if the other path has ended without a similar one."""
    for mine, path, theirs in ((one, meeting.other, other), (other, meeting.one, one)):
        if mine is None or path.may_run or isinstance(mine.value, Unset):
            continue
        # After `return` no name is read; after `break` the other binding may be.
        useless = theirs is None or path.state.exit.known == RETURNED
        alike = theirs is not None and carrying.same_kind(mine.value, theirs.value)
        if useless and (
            is_constant(mine.value) or (carrying.can_cross(mine.value) and not alike)
        ):
            return mine
    return None


def _why_unset(
    name: str, one: Binding | None, other: Binding | None, node: ast.stmt
) -> str | None:
    """Return why ``name`` has no value after the branches; None if it has one."""
    for binding in (one, other):
        if binding is not None and isinstance(binding.value, Unset):
            return binding.value.why
    where = f"`{_KEYWORDS.get(type(node), 'if')}` at line {node.lineno}"
    if one is None or other is None:
        return f"the {where} sets `{name}` on one path only"
    if carrying.same_kind(one.value, other.value) and carrying.can_cross(one.value):
        return None
    return (
        f"after the {where} it is {carrying.describe_kind(one.value)}"
        f" (set{carrying.line_of(one.node)}) or {carrying.describe_kind(other.value)}"
        f" (set{carrying.line_of(other.node)})"
    )


_KEYWORDS: dict[type[ast.stmt], str] = {ast.For: "for", ast.While: "while"}


def _join_exit(meeting: _Join) -> Exit | None:
    one, other = meeting.one.state.exit, meeting.other.state.exit
    codes = one.codes | other.codes
    if len(codes) == 1:
        return one
    if one.ssa is not None and other.ssa is not None and one.ssa is other.ssa:
        return Exit(codes, one.ssa)
    ctx = meeting.ctx
    ends: list[Scalar] = []
    for path, exit_ in ((meeting.one, one), (meeting.other, other)):
        with ctx.appending(path.block):
            ends.append(Scalar(exits.code_of(ctx, exit_), "int"))

    def use(value: Value) -> None:
        ctx.scope.exit = Exit(codes, value.ssa)

    meeting.cross(ends[0], ends[1], use)
    return None


def _join_returned(meeting: _Join) -> None:
    scope = meeting.ctx.scope
    one, other = meeting.one.state.returned, meeting.other.state.returned
    if one is None or other is None or _agree(one, other):
        found = one or other
        if found is None or is_constant(found.value) or (one and other):
            scope.returned = found
            return
        mine = found.value
    else:
        ctx, first, second = meeting.ctx, one.value, other.value
        first = _as_float(ctx, meeting.one.block, first, second)
        second = _as_float(ctx, meeting.other.block, second, first)
        one, other = Binding(first, one.node), Binding(second, other.node)
        found, mine = other, other.value
        _check_returned(meeting.ctx, one, other)

    def use(value: Value) -> None:
        scope.returned = Binding(value, found.node)

    if not carrying.can_cross(mine):
        what = carrying.describe_kind(found.value)
        problem = f"`return` of {what} inside a branch or loop of the run"
        help_ = "return numbers, vectors or tiles there"
        raise meeting.ctx.error("X0609", problem, found.node, help=help_)
    left = _DEAD if one is None else one.value
    meeting.cross(left, _DEAD if other is None else other.value, use)


def _check_returned(ctx: Context, one: Binding, other: Binding) -> None:
    """Refuse paths that return different kinds, or a value on one path only."""
    nothing = one.value is None or other.value is None
    if nothing or (
        carrying.can_cross(other.value)
        and not carrying.same_kind(one.value, other.value)
    ):
        raise exits.disagreement(ctx, other, one, ctx.frame.function)


# Ternaries --------------------------------------------------------------------------


def choose(ctx: Context, condition: Scalar, node: ast.IfExp) -> Value:
    """Compile ``a if condition else b``; an int and a float become floats.

    Raises:
        ControlFlowError: the two values have different kinds.
    """
    values: list[Value] = []
    one = begin_path(ctx, lambda: values.append(ctx.evaluate(node.body)))
    other = begin_path(ctx, lambda: values.append(ctx.evaluate(node.orelse)))
    return join_values(ctx, condition, (one, other), values, node)


def join_values(
    ctx: Context,
    condition: Scalar,
    paths: tuple[Path, Path],
    values: list[Value],
    node: ast.expr,
) -> Value:
    """Return the value of an expression with two paths; names are joined as usual."""
    (one, other), (first, second) = paths, values
    if not (carrying.same(first, second) and not isinstance(first, Scalar)):
        first = _as_float(ctx, one.block, first, second)
        second = _as_float(ctx, other.block, second, first)
        if isinstance(first, Array) and isinstance(second, Array):
            raise ctx.error(
                "X0602",
                f"the run cannot choose between the arrays `{first.name}` and"
                f" `{second.name}`",
                help="choose the tiles, or what is loaded from them",
            )
        if not carrying.same_kind(first, second) or not carrying.can_cross(first):
            help_ = "make both of one kind, shape and dtype"
            if not (carrying.can_cross(first) or carrying.can_cross(second)):
                help_ = "the run chooses numbers, vectors and tiles: use each in a"
                help_ += " branch of an `if`"
            raise ctx.error(
                "X0602",
                f"this is {carrying.describe_kind(first)} or"
                f" {carrying.describe_kind(second)}, as the run decides",
                help=help_,
            )
    one.state = _with_value(one.state, first)
    other.state = _with_value(other.state, second)
    statement = ast.copy_location(ast.If(node, [], []), node)
    join(ctx, condition, one, other, statement)
    return ctx.scope.bindings.pop(_VALUE).value


_VALUE = "<value>"


def _with_value(state: State, value: Value) -> State:
    return replace(state, bindings=state.bindings | {_VALUE: Binding(value)})


def _as_float(ctx: Context, block: Block, value: Value, other: Value) -> Value:
    """Convert ``value`` to a float if it is an int and ``other`` is a float."""
    if not (is_scalar(value) and is_scalar(other)):
        return value
    if scalar_kind(value) == "int" and scalar_kind(other) == "float":
        with ctx.appending(block):
            return Scalar(to_float(ctx, value), "float")
    return value
