"""The IR of a kernel at each stage: text, and the user's line behind each line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import StringIO
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import FixedBitwidthType, ModuleOp, ShapedType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer

from xetl.backend import BackendBase
from xetl.compiler import build
from xetl.dialects.xetile.attributes import layout_of
from xetl.dialects.xetile.types import TileType
from xetl.dialects.xetile.used_maps import used_maps
from xetl.errors import XetlError
from xetl.language.distribution import problem_with
from xetl.language.map_picture import picture
from xetl.language.signature import Signature
from xetl.pipeline import FIRST_STAGE, lower
from xetl.transforms.diagnostics import positions_of

_MATRIX = 2
_MOST_PICTURES = 8

Place = tuple[str, int]
"""A file and a line of it."""


@dataclass(frozen=True)
class StageText:
    """A stage as text.

    Attributes:
        name: of the stage.
        after: the pass before it; empty for what the backend makes of the last one.
        lines: of the text.
        places: of each line, where in the user's files it comes from: the innermost
            first, then the calls it came through; empty where that is not known.
    """

    name: str
    after: str
    lines: list[str]
    places: list[list[Place]]


@dataclass(frozen=True)
class Product:
    """A product of matrices and what is loaded for it.

    Attributes:
        place: the user's line.
        flops: operations, of which a multiply-add has two.
        loaded: bytes of the tiles that its loop loads for it.
        dtype: of the operands.
    """

    place: Place
    flops: int
    loaded: int
    dtype: str


@dataclass(frozen=True)
class Stages:
    """What a page shows of the way to machine code.

    Attributes:
        texts: of the stages, in order.
        maps: pictures of `wg_map`, each an SVG.
        products: at the first stage, in order.
    """

    texts: list[StageText]
    maps: list[str]
    products: list[Product]


def collect(
    function: Callable[..., Any],
    signature: Signature,
    backend: BackendBase,
    target: str,
) -> Stages:
    """Compile once more, and keep every stage."""
    module = build(function, signature, backend, target)
    found = Stages([], [], [])
    for step in lower(module, backend, target):
        if step.stage is None:
            continue
        if step.stage == FIRST_STAGE:
            found.products.extend(_products(module))
        found.texts.append(_text(step.stage, step.name, module))
        for each in _maps(module):
            if each not in found.maps and len(found.maps) < _MOST_PICTURES:
                found.maps.append(each)
    shown = {each.name for each in found.texts} | {*backend.slow_stages}
    for name in backend.stages:
        if name not in shown:
            try:
                lines = backend.text(module, signature, target, name).splitlines()
            except XetlError as error:  # a tool is not here
                lines = [error.message]
            found.texts.append(StageText(name, "", lines, [[] for _ in lines]))
    return found


@dataclass(eq=False, repr=False)
class _LinePrinter(Printer):
    """Notes where each line comes from while it prints."""

    places: dict[int, list[Place]] = field(default_factory=dict[int, list[Place]])

    def print_op(self, op: Operation) -> None:
        found = [(e.filename.data, e.line.data) for e in positions_of(op.location)]
        if found:
            self.places.setdefault(self._current_line, found)
        super().print_op(op)


def _text(name: str, after: str, module: ModuleOp) -> StageText:
    stream = StringIO()
    printer = _LinePrinter(stream)
    printer.print_op(module)
    lines = stream.getvalue().splitlines()
    places = [printer.places.get(number, []) for number in range(len(lines))]
    return StageText(name, after, lines, places)


def _maps(module: ModuleOp) -> Iterator[str]:
    """A picture of each map: on the first tile or vector that has it."""
    for function in module.walk():
        if function.parent_op() is not None and function.name.endswith(".func"):
            for attribute, op in used_maps(function).items():
                layout = layout_of(attribute)
                for shape in _shapes(op):
                    if problem_with(shape, layout) is None:
                        title = f"wg_map of {op.name.partition('.')[2]}"
                        yield picture(shape, layout, title)
                        break


def _shapes(op: Operation) -> Iterator[tuple[int, int]]:
    for value in (*op.results, *op.operands):
        shape = _shape(value)
        if len(shape) == _MATRIX:
            yield shape[0], shape[1]


def _products(module: ModuleOp) -> Iterator[Product]:
    for op in module.walk():
        place = next(positions_of(op.location), None)
        if op.name == "xetile.tile_mma" and place is not None and op.parent:
            rows, inner = _shape(op.operands[0])[-_MATRIX:]
            columns = _shape(op.operands[1])[-1]
            loads = [e for e in op.parent.ops if e.name == "xetile.load_tile"]
            yield Product(
                (place.filename.data, place.line.data),
                2 * rows * inner * columns,
                sum(_bytes(load.results[0]) for load in loads),
                str(_element(op.operands[0])),
            )


def _shape(value: SSAValue) -> tuple[int, ...]:
    """Of a tile or a vector; empty for all else."""
    type_: Attribute = value.type
    if isinstance(type_, TileType):
        return type_.shape
    return type_.get_shape() if isinstance(type_, ShapedType) else ()


def _element(value: SSAValue) -> Attribute:
    return cast("VectorType[Attribute]", value.type).element_type


def _bytes(value: SSAValue) -> int:
    element = _element(value)
    size = element.bitwidth if isinstance(element, FixedBitwidthType) else 64
    return prod(_shape(value)) * size // 8
