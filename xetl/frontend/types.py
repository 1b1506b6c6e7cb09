"""The values that names of a kernel can have while it is compiled, and their scopes.

A value that is known at compile time is a plain Python object. A value that is known
only at run time is an object of a class in this file; it wraps SSA values. Scopes, with
the bindings of names, are at the end of the file.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias, cast

from xdsl.dialects import builtin
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.xetile import TileType
from xetl.errors import CompileError
from xetl.frontend.source import Frame
from xetl.language.dtypes import DType
from xetl.language.operation import Function, operation_name
from xetl.language.reads import Reads
from xetl.language.signature import Record
from xetl.records import record

Value: TypeAlias = Any
"""A compile-time Python object, or one of the classes of this file."""

Shape: TypeAlias = tuple[int, ...]
ScalarKind = Literal["int", "float", "bool"]
KINDS = {"int": "an int", "float": "a float", "bool": "a condition"}
Extent: TypeAlias = int | SSAValue

INDEX = builtin.IndexType()
F64 = builtin.Float64Type()
I1 = builtin.IntegerType(1)
I64 = builtin.IntegerType(64)

_FLOATS = {
    "f8e4m3": builtin.Float8E4M3FNType(),
    "f8e5m2": builtin.Float8E5M2Type(),
    "f16": builtin.Float16Type(),
    "bf16": builtin.BFloat16Type(),
    "f32": builtin.Float32Type(),
    "tf32": builtin.Float32Type(),
    "f64": F64,
}


@record(eq=False)
class Origin:
    """The origin of a tile, for notes: "`b` was made at line 9 by init_tile(...)"."""

    line: int
    text: str
    name: str | None = None

    def note(self) -> str:
        """Return the line of a note."""
        subject = f"`{self.name}`" if self.name else "it"
        return f"{subject} was made at line {self.line} by {self.text}"


@record(frozen=True, eq=False)
class Scalar:
    """A run-time number: ``index``, f64 or i1.

    ``wide`` is the dtype of 64 bits of an array that it is an element of, or was
    computed from.
    """

    ssa: SSAValue
    kind: ScalarKind
    wide: DType | None = None


@record(frozen=True, eq=False)
class Vector:
    """Values in registers. ``shape`` is the user's; in the IR, rank 1 becomes 1xN.

    Only results of tile_pack and of some operations on them have rank 4.
    """

    ssa: SSAValue
    shape: Shape
    dtype: DType
    origin: Origin | None = None


@record(frozen=True, eq=False)
class Tile:
    """A window onto an array; ``shape`` is the user's."""

    ssa: SSAValue
    shape: Shape
    dtype: DType
    scattered: bool = False
    origin: Origin | None = None
    blocks: Shape | None = None
    """Rows and columns of ``inner_blocks``: a load returns a blocked vector."""

    @property
    def value_shape(self) -> Shape:
        """The shape of vectors that are loaded from the tile and stored to it."""
        return self.shape if self.blocks is None else packed(self.shape, self.blocks)


@record(frozen=True, eq=False)
class Array:
    """An array argument, an SLM array, or a view of either.

    ``root`` is the memref that it lies in, ``offset`` its start there, in elements.
    ``plain`` means that the view is ``root`` itself. ``unit_dim`` is the dim whose
    stride is known to be 1.
    """

    name: str
    root: SSAValue
    dtype: DType
    offset: Extent
    sizes: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    unit_dim: int | None
    plain: bool = True

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.sizes)


@record(frozen=True, eq=False)
class LocalFunction:
    """A function or lambda written inside a kernel; sees the names around it."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope
    frame: Frame
    defaults: dict[str, Value] = field(default_factory=dict[str, Value])

    @property
    def name(self) -> str:
        """The name that the user calls it by."""
        return "lambda" if isinstance(self.node, ast.Lambda) else self.node.name


@record(frozen=True)
class BoundMethod:
    """``v.sum`` before it is called."""

    owner: Value
    owner_node: ast.expr
    name: str


@record(frozen=True)
class Range:
    """The result of ``range(...)``; bounds are compile-time or run-time ints."""

    start: Value
    stop: Value
    step: Value


@record(frozen=True)
class Text:
    """An f-string with run-time values: ``template`` has fields ``{}`` for them.

    ``shown`` is the text with descriptions in place of the values.
    """

    template: str
    values: tuple[Value, ...]
    shown: str


RUNTIME = (Scalar, Vector, Tile, Array)
FRONTEND_ONLY = (*RUNTIME, LocalFunction, BoundMethod, Range, Text)


def items_of(value: Value) -> list[Value] | None:
    """Return the items of a tuple or list; None for any other value."""
    if isinstance(value, tuple | list):
        return list(cast("tuple[Value, ...] | list[Value]", value))
    return None


def is_constant(value: Value) -> bool:
    """Whether ``value`` is a compile-time value, with all of its items."""
    items = items_of(value)
    if items is not None:
        return all(is_constant(item) for item in items)
    return not isinstance(value, FRONTEND_ONLY)


def is_number(value: Value) -> bool:
    """Whether ``value`` is a compile-time number or bool."""
    return isinstance(value, bool | int | float)


def is_scalar(value: Value) -> bool:
    """Whether ``value`` is a compile-time or run-time number or bool."""
    return isinstance(value, Scalar) or is_number(value)


def is_int(value: Value) -> bool:
    """Whether ``value`` is a compile-time or run-time integer; a bool is none."""
    return is_scalar(value) and scalar_kind(value) == "int"


def scalar_kind(value: Value) -> ScalarKind:
    """Return the kind of a compile-time or run-time scalar."""
    if isinstance(value, Scalar):
        return value.kind
    if isinstance(value, bool):
        return "bool"
    return "int" if isinstance(value, int) else "float"


def matrix_shape(shape: Shape) -> Shape:
    """Return the shape in the IR: rank 1 becomes a row."""
    return (1, *shape) if len(shape) == 1 else shape


def packed(shape: Shape, blocks: Shape) -> Shape:
    """Return the rank-4 shape of a matrix that is packed in blocks."""
    return (shape[0] // blocks[0], shape[1] // blocks[1], *blocks)


@functools.cache
def element_type(dtype: DType) -> Attribute:
    """Return the MLIR type of an element; it has no sign, so u8 and i8 are equal."""
    if dtype.name == "index":
        return INDEX
    if dtype.is_float:
        return _FLOATS[dtype.name]
    return builtin.IntegerType(dtype.bits)


@functools.cache
def vector_type(shape: Shape, dtype: DType) -> builtin.VectorType[Attribute]:
    """Return the MLIR type of a vector of the user's ``shape``."""
    return builtin.VectorType(element_type(dtype), matrix_shape(shape))


def show_shape(shape: Shape) -> str:
    """Return a shape as text: ``(32, 64)``, ``(32,)``."""
    return str(tuple(shape))


def describe(value: Value) -> str:
    """Describe ``value`` in the user's words, for errors."""
    if isinstance(value, Vector):
        return f"{value.dtype} {show_shape(value.shape)}"
    if isinstance(value, Tile):
        return _describe_tile(value)
    if isinstance(value, Array):
        return f"an array of {value.dtype}, rank {value.rank}"
    if isinstance(value, Scalar):
        return KINDS[value.kind]
    return _describe_constant(value)


def _describe_tile(tile: Tile) -> str:
    """Describe a tile, with all properties of its type that are not the default."""
    type_ = tile.ssa.type
    assert isinstance(type_, TileType)
    order = "column-major " if type_.order == (0, 1) else ""
    kind = "scatter tile" if tile.scattered else "tile"
    found = f"a {order}{kind} of {tile.dtype} {show_shape(tile.shape)}"
    if type_.memory_space:
        found += " in shared memory"
    if type_.inner_blocks:
        found += f" with inner_blocks {list(type_.inner_blocks)}"
    for name, map_ in (("wg_map", type_.wg_map), ("sg_map", type_.sg_map)):
        if map_ is not None:
            lists = [f"{list(each)}" for each in map_.lists]
            found += f" with {name}({', '.join(lists)})"
    return found


def _describe_constant(value: Value) -> str:
    if isinstance(value, LocalFunction):
        return f"the function `{value.name}`"
    if isinstance(value, Function):
        name = cast("Function[..., Any]", value).fn.__name__
        return f"the function `{name}`"
    operation = operation_name(value)
    if operation is not None:
        return f"the operation `{operation}`"
    if isinstance(value, BoundMethod):
        return f"the method `{value.name}`"
    if isinstance(value, Range):
        return "a range"
    if isinstance(value, Text):
        return value.shown
    if isinstance(value, DType):
        return f"the dtype {value}"
    if isinstance(value, tuple | list):
        return _describe_items(cast("tuple[Value, ...] | list[Value]", value))
    if is_number(value) or value is None or isinstance(value, str):
        return f"the constant {value!r}"
    return f"a Python object of type {type(value).__name__}"


def _describe_items(value: tuple[Value, ...] | list[Value]) -> str:
    if isinstance(value, Record):
        return f"a {value.kind} of {', '.join(value.names)}"
    return f"a {'tuple' if isinstance(value, tuple) else 'list'} of {len(value)}"


MISSING = object()


@record(eq=False)
class Binding:
    """The value of a name, and the syntax that bound it (None for parameters)."""

    value: Any
    node: ast.AST | None = None
    used: bool = False
    """Whether the name was read since it was bound."""


@record(frozen=True)
class Unset:
    """The value of a name that has no usable value here.

    ``why`` is a note with the reason. A use of the name raises ``error`` if it is set:
    then other code causes the problem.
    """

    why: str
    error: CompileError | None = None


CONTINUED, BROKEN, RETURNED = 1, 2, 3
"""Exit codes of paths that have ended; 0 is the code of a path that still runs."""


@record(frozen=True, eq=False)
class Exit:
    """The possible exit codes of a path; ``ssa`` (an index) if there are several."""

    codes: frozenset[int]
    ssa: SSAValue | None = None

    @property
    def known(self) -> int | None:
        """The code, if there is only one."""
        return next(iter(self.codes)) if len(self.codes) == 1 else None

    @property
    def may_run(self) -> bool:
        """Whether the statements that follow may still run."""
        return 0 in self.codes

    @staticmethod
    def of(code: int) -> Exit:
        """Return the exit of a path whose code is known."""
        return Exit(frozenset((code,)))


RUNNING = Exit.of(0)


@record(frozen=True)
class Tail:
    """The end of a function or of a loop's body, for blocks that end there."""

    function: ast.AST | None = None
    """None: the end of a loop's body, where ``continue`` equals falling through."""


@record(frozen=True)
class State:
    """The state of a path through a function.

    ``exit`` tells whether it still runs; ``returned`` is the value of its ``return``.
    """

    bindings: dict[str, Binding]
    exit: Exit = RUNNING
    returned: Binding | None = None


class Scope:
    """The local names of a function; ``outer`` holds all others.

    Bindings are replaced, never changed, so the old state can be restored after a
    branch.
    """

    def __init__(self, outer: Scope | Mapping[str, Any]) -> None:
        self.outer = outer
        self.bindings: dict[str, Binding] = {}
        self.exit = RUNNING
        self.returned: Binding | None = None

    @property
    def state(self) -> State:
        """A snapshot of the scope; assigning one restores it."""
        return State(dict(self.bindings), self.exit, self.returned)

    @state.setter
    def state(self, state: State) -> None:
        self.bindings = dict(state.bindings)
        self.exit, self.returned = state.exit, state.returned

    def bind(self, name: str, value: Any, node: ast.AST | None = None) -> None:
        """Bind ``name``."""
        self.bindings[name] = Binding(value, node)

    def find(self, name: str) -> Binding | None:
        """Return the binding of ``name``, here or in outer scopes, or None."""
        found = self.bindings.get(name)
        if found is not None:
            return found
        if isinstance(self.outer, Scope):
            return self.outer.find(name)
        value = self.outer.get(name, MISSING)
        return None if value is MISSING else Binding(value)

    def sets(self, name: str) -> bool:
        """Whether the function sets ``name`` somewhere."""
        return isinstance(self.outer, Scope | Environment) and self.outer.sets(name)

    def names(self) -> Iterable[str]:
        """Yield all visible names."""
        yield from self.bindings
        if isinstance(self.outer, Scope):
            yield from self.outer.names()
        else:
            yield from self.outer


class Environment(Mapping[str, Any]):
    """The outer names of a Python function: closure, globals, builtins."""

    def __init__(self, function: Callable[..., Any], reads: Reads) -> None:
        self._function = function
        self._reads = reads

    def __getitem__(self, name: str) -> Any:
        return self._reads.name(self._function, name)

    def sets(self, name: str) -> bool:
        """Whether the function has a local variable of this name."""
        code = self._function.__code__
        return name in (*code.co_varnames, *code.co_cellvars)

    def __iter__(self) -> Any:
        yield from self._function.__code__.co_freevars
        yield from self._function.__globals__

    def __len__(self) -> int:
        return len(list(iter(self)))
