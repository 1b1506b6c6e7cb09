"""The state of compiling one kernel: current block, scope of names, inlined calls.

Handlers of syntax register themselves here, so that statements, expressions and calls
can use each other without importing each other.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from math import prod
from typing import TypeVar, Unpack

from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.dialects.base import is_memref, shape_of
from xetl.dialects.xetile import TileType
from xetl.errors import COMPILE_ERRORS, CallFrame, CompileError, Parts, XetlError
from xetl.frontend.source import Frame
from xetl.frontend.types import Scope, Tail, Value
from xetl.imports import late
from xetl.ir.builder import Builder
from xetl.language.reads import Reads
from xetl.records import record
from xetl.settings import config

OpT = TypeVar("OpT", bound=Operation)
ErrorT = TypeVar("ErrorT", bound=XetlError)
MAX_INLINING = 64


class Again(Exception):  # noqa: N818 - no error: it ends with a loop that compiles
    """A loop must be compiled again, since it turned out to be of another kind.

    If ``name`` is given, that name of a number begins as wide as ``value`` is.
    """

    def __init__(self, name: str | None = None, value: Value = None) -> None:
        super().__init__(name)
        self.name, self.value = name, value


ExpressionHandler = Callable[["Context", ast.expr], Value]
StatementHandler = Callable[["Context", ast.stmt], None]

EXPRESSIONS: dict[type[ast.expr], ExpressionHandler] = {}
STATEMENTS: dict[type[ast.stmt], StatementHandler] = {}
_run_block = late("xetl.frontend.statements", "run_block")


_FIRST: dict[type[ast.expr], str] = {
    **{ast.BinOp: "left", ast.UnaryOp: "operand", ast.Compare: "left"},
    **{ast.Attribute: "value", ast.Subscript: "value", ast.Call: "func"},
}
"""For a kind of expression: the part that its handler evaluates first."""


@record(frozen=True)
class FirstMap:
    """The first map of a kernel: all others must have as many subgroups."""

    subgroups: int
    line: int
    shown: str


@record(eq=False)
class Context:
    """The state that all handlers share."""

    block: Block
    scope: Scope
    frame: Frame
    node: ast.AST
    reads: Reads
    level: str = "workgroup"
    steps: bool = False
    """Whether a debugger may stop at each statement."""
    leaving: set[ast.stmt] = field(default_factory=set["ast.stmt"])
    """Loops that are known to be left by a ``break`` or ``return``."""
    slm_limit: int = 1 << 20
    slm_bytes: int = 0
    """Bytes of all SLM arrays so far."""
    first_map: FirstMap | None = None
    divided: set[SSAValue] = field(default_factory=set[SSAValue])
    """Results of ``//`` and ``%``: they must not be split into their operands."""
    said: list[str] = field(default_factory=list[str])
    """Lines of ``static_print``."""
    unrolled: int = 0
    calls: int = 0
    """The number of iterations unrolled, and of calls inlined, so far."""
    _ready: tuple[ast.expr, Value] | None = None
    """An expression that is evaluated already, and its value."""
    _locations: dict[tuple[Frame, int, int], LocationAttr] = field(
        default_factory=dict["tuple[Frame, int, int]", "LocationAttr"]
    )

    # Operations ------------------------------------------------------------------

    def add(self, op: OpT) -> OpT:
        """Append ``op`` to the current block, at the current line."""
        op.location = self.location()
        for type_ in op.result_types:
            if not is_memref(type_):
                is_tile = isinstance(type_, TileType)
                self.check_elements(type_.shape if is_tile else shape_of(type_))
        self.block.add_op(op)
        return op

    def check_elements(self, shape: Sequence[int]) -> None:
        """Refuse a tile or vector with too many elements."""
        if prod(shape) <= config.max_tile_elements:
            return
        raise self.error(
            "X0212",
            f"{' x '.join(map(str, shape))} elements are too many for a tile",
            notes=[f"at most {config.max_tile_elements} are allowed"],
            help="loop over smaller tiles, or set XETL_MAX_TILE_ELEMENTS",
        )

    def emit(self, op: Operation) -> SSAValue:
        """Append ``op`` and return its only result."""
        return self.add(op).results[0]

    def location(self) -> LocationAttr:
        """Return the location being compiled, with the calls it is inlined through."""
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

    def builder(self) -> Builder:
        """Return a builder that appends to the current block, at the current line."""
        return Builder(InsertPoint.at_end(self.block), self.location())

    @contextmanager
    def into(self, arguments: Sequence[Attribute] = ()) -> Generator[Block]:
        """Append to a new block inside of ``with``; the caller puts it in a region."""
        block = Block(arg_types=arguments)
        try:
            with self.appending(block):
                yield block
        except Again:
            # What is dropped must not count among the users of values around it.
            block.erase(safe_erase=False)
            raise

    @contextmanager
    def appending(self, block: Block) -> Generator[None]:
        """Append to the end of a block inside of ``with``."""
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer

    # Syntax ----------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Value:
        """Evaluate an expression.

        The chain of first operands is evaluated in a loop, from the innermost on: a sum
        of many terms is nested deeply, and recursion would overflow the stack.
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
        """Compile statements up to one that ends the path; then reach the ``tail``."""
        _run_block(self, body, tail)

    # Errors ----------------------------------------------------------------------

    def error(
        self,
        code: str,
        message: str,
        node: ast.AST | None = None,
        **parts: Unpack[Parts],
    ) -> CompileError:
        """Return an error at ``node``, or at the current line, to be raised."""
        return self.locate_error(COMPILE_ERRORS[code[:3]](message, code, **parts), node)

    def locate_error(self, error: ErrorT, node: ast.AST | None = None) -> ErrorT:
        """Set the place of ``error`` to ``node``, with the calls that lead there."""
        frame, node = self.frame.of_user(node or self.node)
        line, column, length = frame.span(node)
        error.file, error.line, error.column = frame.source.path, line, column
        error.length, error.function = length, frame.function
        error.source_line = frame.source.text(line)
        error.frames = tuple(_callers(frame))
        return error


def _callers(frame: Frame) -> Iterator[CallFrame]:
    while frame.parent is not None and frame.call is not None:
        caller = frame.parent
        line, column, length = caller.span(frame.call)
        text = caller.source.text(line)
        yield CallFrame(caller.source.path, line, column, length, caller.function, text)
        frame = caller


_STATIC_LOOP = "write a `for` loop over xetile.static_range: `items = [*items, one]`"
_RETURN = "return all values as a tuple, or store them"
_UNSUPPORTED: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(
        ("With", "AsyncWith"),
        ("`with` statements", "write the statements without `with`"),
    ),
    **dict.fromkeys(
        ("Try", "TryStar"),
        ("`try` statements", "nothing in a kernel raises: check before, with `if`"),
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
    "AsyncFor": ("`async` loops", "write `for`: programs run side by side already"),
    "AsyncFunctionDef": ("`async` functions", "write `def`"),
    "ListComp": ("list comprehensions", _STATIC_LOOP),
    "SetComp": ("set comprehensions", _STATIC_LOOP),
    "DictComp": ("dict comprehensions", _STATIC_LOOP),
    "GeneratorExp": ("generator expressions", _STATIC_LOOP),
    "Await": ("`await`", "wait on the host: launches with `wait=False` give an event"),
    "Yield": ("`yield`", _RETURN),
    "YieldFrom": ("`yield from`", _RETURN),
    "Starred": ("`*` of what is no tuple", "`*` takes a tuple known when compiling"),
    "Dict": ("dicts", "use separate variables or a tuple"),
    "Set": ("sets", "use separate variables or a tuple"),
}
"""For a kind of syntax: what it is, and what to write instead."""


def unsupported(ctx: Context, node: ast.AST) -> CompileError:
    """Return the error for syntax that kernels cannot have."""
    name = type(node).__name__
    what, advice = _UNSUPPORTED.get(name, (f"`{name}` syntax", None))
    verb = "is" if what.startswith("`") and what.endswith("`") else "are"
    problem = f"{what} {verb} not part of the kernel language"
    return ctx.error("X0402", problem, node, help=advice)
