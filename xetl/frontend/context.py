"""The state of compiling one kernel: where ops go, what names mean, who called whom.

Handlers of syntax and of operations register themselves here, so that statements,
expressions and calls may use each other without importing each other.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from math import prod
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from xetl.dialects.base import is_memref, shape_of
from xetl.dialects.xetile import TileType
from xetl.errors import COMPILE_ERRORS, CallFrame, CompileError, XetlError
from xetl.frontend.source import Frame
from xetl.frontend.types import Scope, Tail, Value
from xetl.language.reads import Reads
from xetl.records import record
from xetl.settings import config

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr


OpT = TypeVar("OpT", bound=Operation)
ErrorT = TypeVar("ErrorT", bound=XetlError)
MAX_INLINING = 64


ExpressionHandler = Callable[["Context", ast.expr], Value]
StatementHandler = Callable[["Context", ast.stmt], None]
BlockHandler = Callable[["Context", Sequence[ast.stmt], Tail | None], None]

EXPRESSIONS: dict[type[ast.expr], ExpressionHandler] = {}
STATEMENTS: dict[type[ast.stmt], StatementHandler] = {}
BLOCKS: list[BlockHandler] = []
"""The one way to run statements one after the other; see ``blocks``."""


_FIRST: dict[type[ast.expr], str] = {
    **{ast.BinOp: "left", ast.UnaryOp: "operand", ast.Compare: "left"},
    **{ast.Attribute: "value", ast.Subscript: "value", ast.Call: "func"},
}
"""By kind of expression the part whose value its handler asks for first."""


@record(frozen=True)
class FirstMap:
    """The first map of a kernel: all others have as many subgroups."""

    subgroups: int
    line: int
    shown: str


@record(eq=False)
class Context:
    """Everything the handlers share."""

    block: Block
    scope: Scope
    frame: Frame
    node: ast.AST
    reads: Reads
    level: str = "workgroup"
    steps: bool = False
    """Whether a debugger may stop at each statement."""
    leaving: set[ast.stmt] = field(default_factory=set["ast.stmt"])
    """Loops that a ``break`` or ``return`` was found to leave."""
    slm_limit: int = 1 << 20
    slm_bytes: int = 0
    """What the SLM arrays made so far take."""
    first_map: FirstMap | None = None
    divided: set[SSAValue] = field(default_factory=set[SSAValue])
    """What ``//`` and ``%`` gave: numbers of their own, not sums of their parts."""
    said: list[str] = field(default_factory=list[str])
    """What ``static_print`` wrote."""
    unrolled: int = 0
    calls: int = 0
    """How many iterations were unrolled and how many calls inlined so far."""
    _ready: tuple[ast.expr, Value] | None = None
    """An expression whose value is known, and which is evaluated next."""
    _locations: dict[tuple[Frame, int, int], LocationAttr] = field(
        default_factory=dict["tuple[Frame, int, int]", "LocationAttr"]
    )

    # Operations ------------------------------------------------------------------

    def add(self, op: OpT) -> OpT:
        """Append ``op`` to the current block, at the current line."""
        op.location = self.location()
        for result in op.results:
            if not is_memref(result.type):
                self.check_elements(_shape(result.type))
        self.block.add_op(op)
        return op

    def check_elements(self, shape: Sequence[int]) -> None:
        """Refuse a tile or vector of too many elements."""
        if prod(shape) <= config.max_tile_elements:
            return
        raise self.error(
            "X0212",
            f"{' x '.join(map(str, shape))} elements are too many for a tile",
            notes=[f"at most {config.max_tile_elements} are allowed"],
            help="loop over smaller tiles, or set XETL_MAX_TILE_ELEMENTS",
        )

    def emit(self, op: Operation) -> SSAValue:
        """Append ``op`` and give its only result."""
        return self.add(op).results[0]

    def location(self) -> LocationAttr:
        """The line being compiled, with the calls it was inlined through."""
        return self._locate(*self.frame.of_user(self.node))

    def _locate(self, frame: Frame, node: ast.AST) -> LocationAttr:
        line, column, _ = frame.span(node)
        key = (frame, line, column)
        known = self._locations.get(key)
        if known is not None:
            return known
        here: LocationAttr = FileLineColLoc(
            StringAttr(frame.source.path), IntAttr(line), IntAttr(column)
        )
        if frame.parent is not None and frame.call is not None:
            here = CallSiteLoc(here, self._locate(frame.parent, frame.call))
        self._locations[key] = here
        return here

    @contextmanager
    def into(self, arguments: Sequence[Attribute] = ()) -> Generator[Block]:
        """Build a new block; the caller puts it into a region."""
        outer = self.block
        self.block = Block(arg_types=arguments)
        try:
            yield self.block
        finally:
            self.block = outer

    @contextmanager
    def appending(self, block: Block) -> Generator[None]:
        """Go on at the end of a block."""
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer

    # Syntax ----------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Value:
        """The value of an expression.

        What is evaluated first in it, and first in that, goes first: a long sum is as
        deep as it has terms.
        """
        if self._ready is not None and self._ready[0] is node:
            value, self._ready = self._ready[1], None
            return value
        first = [node]
        while (name := _FIRST.get(type(first[-1]))) is not None:
            first.append(getattr(first[-1], name))
        while len(first) > 1:
            inner = first.pop()
            self._ready = inner, self._evaluate(inner)
        return self._evaluate(node)

    def _evaluate(self, node: ast.expr) -> Value:
        handler = EXPRESSIONS.get(type(node))
        outer, self.node = self.node, node
        if handler is None:
            raise unsupported(self, node)
        value = handler(self, node)
        self.node = outer
        return value

    def run(self, body: Sequence[ast.stmt], tail: Tail | None = None) -> None:
        """Compile statements up to the first that stops; then reach the ``tail``."""
        BLOCKS[-1](self, body, tail)

    # Errors ----------------------------------------------------------------------

    def error(
        self,
        code: str,
        message: str,
        node: ast.AST | None = None,
        *,
        label: str = "",
        notes: Sequence[str | None] = (),
        help: str | None = None,
    ) -> CompileError:
        """An error at ``node`` (else at the current line), ready to raise."""
        error = COMPILE_ERRORS[code[:3]](
            message,
            code=code,
            label=label,
            notes=[note for note in notes if note],
            help=help,
        )
        return self.locate_error(error, node)

    def locate_error(self, error: ErrorT, node: ast.AST | None = None) -> ErrorT:
        """Give ``error`` the place of ``node``, with the calls that led there."""
        frame, node = self.frame.of_user(node or self.node)
        line, column, length = frame.span(node)
        error.file, error.line, error.column = frame.source.path, line, column
        error.length, error.function = length, frame.function
        error.source_line = frame.source.text(line)
        error.frames = tuple(_callers(frame))
        return error


def _shape(type_: Attribute) -> Sequence[int]:
    return type_.shape if isinstance(type_, TileType) else shape_of(type_)


def _callers(frame: Frame) -> Iterator[CallFrame]:
    while frame.parent is not None and frame.call is not None:
        caller = frame.parent
        line, column, length = caller.span(frame.call)
        text = caller.source.text(line)
        path = caller.source.path
        yield CallFrame(path, line, column, length, caller.function, text)
        frame = caller


_STATIC_LOOP = "write a `for` loop over xetile.static_range: `items = [*items, one]`"
_UNSUPPORTED: dict[str, tuple[str, str | None]] = {
    "With": ("`with` statements", "write the statements without `with`"),
    "AsyncWith": ("`with` statements", "write the statements without `with`"),
    "Try": ("`try` statements", "nothing in a kernel raises: check before, with `if`"),
    "TryStar": (
        "`try` statements",
        "nothing in a kernel raises: check before, with `if`",
    ),
    "Raise": (
        "`raise` statements",
        "use xetile.static_assert, or xetile.device_assert at run time",
    ),
    "Match": ("`match` statements", "write `if`/`elif`/`else`"),
    "Delete": (
        "`del` statements",
        "leave it out: registers are freed when a value is last used",
    ),
    "Global": ("`global` statements", "store results with xetile.store_tile"),
    "Nonlocal": ("`nonlocal` statements", "return the value from the inner function"),
    "Import": ("`import` statements", "import at the top of the file"),
    "ImportFrom": ("`import` statements", "import at the top of the file"),
    "ClassDef": ("`class` statements", "define the class outside of the kernel"),
    "AsyncFor": ("`async` loops", None),
    "AsyncFunctionDef": ("`async` functions", None),
    "ListComp": ("list comprehensions", _STATIC_LOOP),
    "SetComp": ("set comprehensions", _STATIC_LOOP),
    "DictComp": ("dict comprehensions", _STATIC_LOOP),
    "GeneratorExp": ("generator expressions", _STATIC_LOOP),
    "Await": ("`await`", None),
    "Yield": ("`yield`", None),
    "YieldFrom": ("`yield from`", None),
    "Starred": ("`*` of what is no tuple", "`*` takes a tuple known when compiling"),
    "Dict": ("dicts", "use separate variables or a tuple"),
    "Set": ("sets", "use separate variables or a tuple"),
}
"""By kind of syntax: what it is, and what to write instead."""


def unsupported(ctx: Context, node: ast.AST) -> CompileError:
    """The error for syntax that kernels cannot have."""
    name = type(node).__name__
    what, advice = _UNSUPPORTED.get(name, (f"`{name}` syntax", None))
    verb = "is" if what.startswith("`") and what.endswith("`") else "are"
    problem = f"{what} {verb} not part of the kernel language"
    return ctx.error("X0402", problem, node, help=advice)
