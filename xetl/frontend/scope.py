"""Names: what they are bound to, where they were bound, and where they come from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from xdsl.ir import SSAValue

from xetl.errors import CompileError
from xetl.language.reads import Reads
from xetl.records import record

MISSING = object()


@record(eq=False)
class Binding:
    """A value (see `types`) and the syntax that bound it (None for parameters)."""

    value: Any
    node: ast.AST | None = None
    used: bool = False
    """Whether anything read the name since it was bound."""


@record(frozen=True)
class Unset:
    """A name that holds no usable value here.

    ``why`` is the note that says so; ``error`` is what using the name raises, if the
    blame lies elsewhere.
    """

    why: str
    error: CompileError | None = None


CONTINUED, BROKEN, RETURNED = 1, 2, 3
"""Why a path does not run on; 0 is a path that does."""


@record(frozen=True, eq=False)
class Exit:
    """Which of the codes above a path may have; ``ssa`` (an index) if not known."""

    codes: frozenset[int]
    ssa: SSAValue | None = None

    @property
    def known(self) -> int | None:
        """The code, if there is only one."""
        return next(iter(self.codes)) if len(self.codes) == 1 else None

    @property
    def may_run(self) -> bool:
        """Whether what follows may still run."""
        return 0 in self.codes

    @staticmethod
    def of(code: int) -> Exit:
        """The exit of a path whose code is known."""
        return Exit(frozenset((code,)))


RUNNING = Exit.of(0)


@record(frozen=True)
class Tail:
    """The end of a function or of a loop's body, for blocks that reach it."""

    function: ast.AST | None = None
    """None: the end of a body, where ``continue`` is what falling through is."""


@record(frozen=True)
class State:
    """What a path through a function has done so far.

    ``exit`` says whether it still runs, ``returned`` what it gave back if not.
    """

    bindings: dict[str, Binding]
    exit: Exit = RUNNING
    returned: Binding | None = None


class Scope:
    """The local names of a function; ``outer`` finds all others.

    Bindings are replaced, never changed, so that a branch can be undone by putting
    the old state back.
    """

    def __init__(self, outer: Scope | Mapping[str, Any]) -> None:
        self.outer = outer
        self.bindings: dict[str, Binding] = {}
        self.exit = RUNNING
        self.returned: Binding | None = None

    @property
    def state(self) -> State:
        """A snapshot; setting it goes back to it."""
        return State(dict(self.bindings), self.exit, self.returned)

    @state.setter
    def state(self, state: State) -> None:
        self.bindings = dict(state.bindings)
        self.exit, self.returned = state.exit, state.returned

    def bind(self, name: str, value: Any, node: ast.AST | None = None) -> None:
        """Bind ``name``."""
        self.bindings[name] = Binding(value, node)

    def find(self, name: str) -> Binding | None:
        """The binding of ``name`` here or further out; None if there is none."""
        found = self.bindings.get(name)
        if found is not None:
            return found
        if isinstance(self.outer, Scope):
            return self.outer.find(name)
        value = self.outer.get(name, MISSING)
        return None if value is MISSING else Binding(value)

    def names(self) -> Iterable[str]:
        """Every name that can be seen."""
        yield from self.bindings
        if isinstance(self.outer, Scope):
            yield from self.outer.names()
        else:
            yield from self.outer


class Environment(Mapping[str, Any]):
    """What a Python function sees outside of itself: closure, globals, builtins."""

    def __init__(self, function: Callable[..., Any], reads: Reads) -> None:
        self._function = function
        self._reads = reads

    def __getitem__(self, name: str) -> Any:
        return self._reads.name(self._function, name)

    def __iter__(self) -> Any:
        yield from self._function.__code__.co_freevars
        yield from self._function.__globals__

    def __len__(self) -> int:
        return len(list(iter(self)))
