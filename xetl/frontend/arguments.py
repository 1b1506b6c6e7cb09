"""Arguments of a call: binding to parameters, and checks that all operations share.

`read` reads Python values around a kernel; its errors point at the user's line.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from math import prod
from typing import Any, TypeAlias, Unpack, cast

from xetl.errors import CompileError, Parts, TileTypeError, a_kind, did_you_mean
from xetl.frontend import types
from xetl.frontend.context import Context
from xetl.imports import late
from xetl.language.contents import is_opaque
from xetl.language.dtypes import DType, is_foreign
from xetl.language.reads import UnreadableError
from xetl.records import record

_advice_on_parameter = late("xetl.language.other_names", "advice_on_parameter")


@record(frozen=True)
class Arg:
    """A value and its expression (for a default: the call)."""

    value: types.Value
    node: ast.AST


@record(frozen=True)
class Parameter:
    """A parameter of an operation or of a user's function."""

    name: str
    default: types.Value = types.MISSING
    keyword_only: bool = False
    variadic: bool = False


@record()
class Given:
    """The arguments that a call passes."""

    positional: list[Arg]
    keywords: dict[str, Arg]


@record(eq=False)
class Call:
    """A call of an operation, with its arguments bound."""

    ctx: Context
    name: str
    node: ast.AST
    args: dict[str, Arg]
    rest: list[Arg] = field(default_factory=list[Arg])

    def value(self, name: str) -> types.Value:
        """Return the value of a parameter."""
        return self.args[name].value

    def error(
        self, code: str, message: str, at: str | None = None, **parts: Unpack[Parts]
    ) -> CompileError:
        """Return an error that points at argument ``at``, or else at the call."""
        node = self.args[at].node if at else self.node
        return self.ctx.error(code, message, node, **parts)

    def unfit(
        self,
        code: str,
        problem: str,
        name: str,
        help: str | None = None,
        notes: Sequence[str | None] = (),
    ) -> CompileError:
        """Return the error for a wrong argument; its label describes the argument."""
        found = f"is {types.describe(self.value(name))}"
        return self.error(code, problem, name, label=found, notes=notes, help=help)

    def must_be(
        self, code: str, name: str, wanted: str, help: str | None = None
    ) -> CompileError:
        """Return the error for an argument that must be ``wanted``."""
        problem = f"`{name}` of `{self.name}` must be {wanted}"
        return self.unfit(code, problem, name, help)

    def wrong_kind(self, name: str, wanted: str) -> CompileError:
        """Return the error for an argument of a wrong kind, with advice."""
        what = f"`{name}` of `{self.name}`"
        return wrong_kind(self.ctx, what, wanted, self.args[name])

    def vector(self, name: str, *, blocked: bool = False) -> types.Vector:
        """Return a parameter that must be a vector; if ``blocked``, also of rank 4."""
        value = self.value(name)
        if not isinstance(value, types.Vector):
            raise self.wrong_kind(name, "a vector")
        if not blocked:
            refuse_blocked(self.ctx, self.name, self.args[name])
        return value

    def tile(self, name: str, scattered: bool | None = None) -> types.Tile:
        """Return a parameter that must be a tile; ``scattered`` demands its kind."""
        value = self.value(name)
        if not isinstance(value, types.Tile):
            raise self.wrong_kind(name, "a tile")
        if scattered is not None and value.scattered != scattered:
            wanted = "a scatter tile" if scattered else "a plain tile"
            advice = (
                "make it with init_tile(base, indices)"
                if scattered
                else "use load_gather and store_scatter for scatter tiles"
            )
            raise self.must_be("X0306", name, wanted, advice)
        return value

    def dtype(self, name: str) -> DType:
        """Return a parameter that must be a dtype."""
        dtype = dtype_of(self.ctx, self.args[name])
        if dtype is None:
            raise self.must_be("X0301", name, "a dtype", "for example xetile.f32")
        return dtype

    def memory_dtype(self) -> DType:
        """Return the parameter ``dtype``, which must not be tf32."""
        dtype = self.dtype("dtype")
        if dtype.name == "tf32":
            problem = "tf32 is not a dtype of vectors"
            help_ = 'say `precision="tf32"` at tile_mma'
            raise self.error("X0313", problem, "dtype", help=help_)
        return dtype

    def constant(self, name: str, wanted: str) -> types.Value:
        """Return a parameter that must be known at compile time."""
        value = self.value(name)
        if not types.is_constant(value):
            raise self.error(
                "X0203",
                f"`{name}` of `{self.name}` must be {wanted} known when compiling",
                name,
                label=f"is {types.describe(value)}, known at run time only",
                help="pass it to the kernel as `constexpr`",
            )
        return value

    def word(self, name: str, known: Collection[str], noun: str = "") -> str:
        """Return a parameter that must be one of some words; ``noun`` names them."""
        value = self.constant(name, f"a {noun or 'string'}")
        if not isinstance(value, str) or value not in known:
            meant = did_you_mean(value, known) if isinstance(value, str) else None
            kind, are = noun or f"`{name}`", f"{noun}s are" if noun else "it is one of"
            problem = f"{types.describe(value)} is not a {kind} of `{self.name}`"
            help_ = meant or f"{are} {', '.join(map(repr, known))}"
            raise self.error("X0107", problem, name, help=help_)
        return value

    def constant_int(self, name: str) -> int:
        """Return a parameter that must be a compile-time int."""
        value = self.constant(name, "an int")
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.must_be("X0305", name, "an int")
        return value

    def flag(self, name: str) -> bool:
        """Return a parameter that must be a compile-time bool or number, as a bool."""
        value = self.constant(name, "a bool")
        if not types.is_number(value):
            raise self.must_be("X0305", name, "True or False")
        return bool(value)

    def number(self, name: str) -> types.Value:
        """Return a parameter that must be a compile-time number."""
        value = self.constant(name, "a number")
        if not types.is_number(value):
            raise self.wrong_kind(name, "a number")
        return value

    def scalar(self, name: str) -> types.Value:
        """Return a parameter that must be a compile-time or run-time number."""
        if not types.is_scalar(self.value(name)):
            raise self.wrong_kind(name, "a number")
        return self.value(name)

    def int_list(self, name: str) -> list[int]:
        """Return a parameter that must be compile-time ints: one, or several."""
        value = self.constant(name, "ints")
        given = types.items_of(value)
        items = [value] if given is None else given
        for item in items:
            if not isinstance(item, int) or isinstance(item, bool):
                problem = f"`{name}` of `{self.name}` must hold ints"
                label = f"holds {types.describe(item)}"
                raise self.error("X0305", problem, name, label=label)
        return items

    def shape(self, name: str) -> types.Shape:
        """Return a parameter that must be a shape of rank 1 or 2, without zeros."""
        shape = tuple(self.int_list(name))
        folded = prod(shape[:-1]), *shape[-1:]
        if len(shape) not in (1, 2) or any(extent <= 0 for extent in shape):
            raise self.error(
                "X0204",
                f"`{name}` of `{self.name}` must be one or two positive extents",
                name,
                label=f"is {types.show_shape(shape)}",
                help=f"write {types.show_shape(folded)}: leading dimensions are more"
                " rows"
                if min(folded) > 0
                else "give extents of 1 or more",
            )
        return shape

    def axis(self, name: str, rank: int) -> int:
        """Return a parameter that must be a dim of an operand of ``rank``, from 0."""
        return self.checked_axis(name, self.constant_int(name), rank)

    def checked_axis(self, name: str, axis: int, rank: int) -> int:
        """Return ``axis`` counted from the front; refuse one that does not exist."""
        if not -rank <= axis < rank:
            user = self.ctx.frame.operation() or self.name
            operand = f"the operand of `{user}` has rank {rank}"
            problem = f"dimension {axis} does not exist: {operand}"
            help_ = f"dims run from 0 to {rank - 1}, or from {-rank} to -1"
            raise self.error("X0205", problem, name, help=help_)
        return axis % rank


OperationHandler: TypeAlias = Callable[[Call], types.Value]
OPERATIONS: dict[str, OperationHandler] = {}


def builds(*names: str) -> Callable[[OperationHandler], OperationHandler]:
    """Register the handler of one or more operations of the language."""

    def register(handler: OperationHandler) -> OperationHandler:
        for name in names:
            OPERATIONS[name] = handler
        return handler

    return register


def refuse_blocked(ctx: Context, name: str, arg: Arg) -> None:
    """Refuse a blocked vector, which few operations take."""
    if isinstance(arg.value, types.Vector) and len(arg.value.shape) > 2:
        raise ctx.error(
            "X0210",
            f"`{name}` does not take a blocked vector",
            arg.node,
            label=f"is {types.describe(arg.value)}",
            help="unpack it first: xetile.tile_unpack(v)",
        )


_TILE = "make a tile of it: xetile.init_tile(array, offsets, shape)"
_ELEMENTS = (
    "load its elements: `X[i]`, `i` a vector such as xetile.arange(n), or"
    " xetile.load_tile(xetile.init_tile(X, offsets, shape))"
)
_PROPERTIES = "of an array `X is None`, `X.dtype` and `X.ndim` are known when compiling"


def dtype_of(ctx: Context, arg: Arg) -> DType | None:
    """Return the dtype that a class, an object or a name stands for.

    Return None for other values.

    Raises:
        TileTypeError: the language has no such dtype.
    """
    value = arg.value
    if not (isinstance(value, DType | type | str) or is_foreign(value)):
        return None
    try:
        return DType.of(cast("Any", value))
    except TileTypeError as error:
        raise ctx.locate_error(error, arg.node) from None


def wrong_kind(ctx: Context, what: str, wanted: str, arg: Arg) -> CompileError:
    """Return the error for an argument of a wrong kind, such as a tile for a vector."""
    advice = None
    if isinstance(arg.value, types.Tile):
        advice = "load it first: xetile.load_tile(...)"
    elif isinstance(arg.value, types.Array):
        advice = _PROPERTIES if "constant" in wanted else _TILE
        advice = _ELEMENTS if "vector" in wanted else advice
    elif types.items_of(arg.value) is not None and wanted == "a vector":
        advice = "pass vectors one by one; xetile.arange makes a vector of numbers"
    elif isinstance(arg.value, types.Vector) and "tile" in wanted:
        advice = "it was loaded already: pass the tile made by xetile.init_tile"
    elif types.is_scalar(arg.value) and ("vector" in wanted or "array" in wanted):
        advice = "xetile.full(shape, value, dtype) makes a vector of a number"
    elif isinstance(arg.value, str):
        advice = "texts are f-strings: f'{n:d}'"
    elif arg.value is None:
        advice = "test `is None` first: what is constant is decided when compiling"
    elif type(arg.value).__name__ in ("ndarray", "Tensor"):
        advice = "pass it to the kernel as an argument, and load a tile of it"
    origin = getattr(arg.value, "origin", None)
    return ctx.error(
        "X0303",
        f"{what} must be {wanted}, not {types.describe(arg.value)}",
        arg.node,
        label=f"is {types.describe(arg.value)}",
        notes=[origin.note() if origin else None],
        help=advice,
    )


def bind_arguments(
    ctx: Context,
    name: str,
    parameters: Sequence[Parameter],
    given: Given,
    node: ast.AST,
) -> tuple[dict[str, Arg], list[Arg]]:
    """Match arguments to parameters as Python does.

    Returns:
        The arguments by name, and those that a variadic parameter takes.

    Raises:
        NameLookupError: unknown or doubled keyword, too many or missing arguments.
    """
    places = [p for p in parameters if not p.keyword_only and not p.variadic]
    variadic = any(p.variadic for p in parameters)
    bound = {p.name: arg for p, arg in zip(places, given.positional, strict=False)}
    rest = given.positional[len(places) :]
    if rest and not variadic:
        plural = "" if len(places) == 1 else "s"
        raise ctx.error(
            "X0105",
            f"`{name}` takes {len(places)} positional argument{plural}, but"
            f" {len(given.positional)} are given",
            rest[0].node,
            label="one too many",
            help=f"its parameters are {_listed(parameters)}"
            if parameters
            else f"write `{name}()`",
        )
    known = [p.name for p in parameters if not p.variadic]
    for keyword, arg in given.keywords.items():
        _check_keyword(ctx, name, keyword, arg, known, bound)
        bound[keyword] = arg
    for parameter in parameters:
        if parameter.variadic or parameter.name in bound:
            continue
        if parameter.default is types.MISSING:
            problem = f"`{name}` misses its argument `{parameter.name}`"
            help_ = f"its parameters are {_listed(parameters)}"
            raise ctx.error("X0105", problem, node, help=help_)
        bound[parameter.name] = Arg(parameter.default, node)
    return bound, rest


def _check_keyword(
    ctx: Context,
    name: str,
    keyword: str,
    arg: Arg,
    known: list[str],
    bound: dict[str, Arg],
) -> None:
    listed = ", ".join(known)
    if keyword not in known:
        problem = f"`{name}` has no parameter `{keyword}`"
        help_ = (
            _advice_on_parameter(keyword, known)
            or did_you_mean(keyword, known)
            or f"its parameters are {listed}"
        )
        raise ctx.error("X0104", problem, arg.node, help=help_)
    if keyword in bound:
        problem = f"`{name}` is given `{keyword}` twice"
        label, help_ = "already given by position", f"its parameters are {listed}"
        raise ctx.error("X0105", problem, arg.node, label=label, help=help_)


def _listed(parameters: Sequence[Parameter]) -> str:
    return ", ".join(p.name for p in parameters)


def read(
    ctx: Context,
    node: ast.AST,
    look: Callable[[], types.Value],
    *missing: type[Exception],
) -> types.Value:
    """Call ``look``, which reads a Python value through ``ctx.reads``.

    The errors ``missing``, which mean that there is no such value, pass through.

    Raises:
        NameLookupError: later changes of the value could not be detected.
        TileTypeError: the code of the user's object failed.
    """
    try:
        return look()
    except missing:
        raise
    except UnreadableError as reason:
        raise _unreadable(ctx, node, str(reason)) from None
    except Exception as problem:
        text = f"reading `{ctx.frame.text(node)}` failed: {problem}"
        raise ctx.error("X0307", text, node) from None


def check_readable(ctx: Context, *args: Arg) -> None:
    """Refuse objects whose own code would run here: its result may change unnoticed."""
    for arg in args:
        if is_opaque(arg.value):
            kind = a_kind(arg.value)
            reason = f"what {kind} means here is known to its own code alone"
            raise _unreadable(ctx, arg.node, reason)


def _unreadable(ctx: Context, node: ast.AST, reason: str) -> CompileError:
    return ctx.error(
        "X0108",
        f"`{ctx.frame.text(node)}` cannot be read in a kernel",
        node,
        notes=[f"{reason}: a change would not be noticed"],
        help="use its attributes or elements, or compute the value before the launch",
    )
