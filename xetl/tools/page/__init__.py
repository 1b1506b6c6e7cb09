"""One HTML file about a kernel: source with remarks, the IR of each stage, pictures.

The file loads nothing from elsewhere, and all of it can be read without scripts.

`explained` compiles the kernel once more and makes the page. `Stages` has the IR at
each stage, with the user's line of each line of the IR. The roofline is an SVG: the
limit of the machine by operations per loaded byte.
"""

from __future__ import annotations

import inspect
import linecache
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from io import StringIO
from itertools import pairwise
from math import log10, prod
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, ShapedType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer

from xetl.backend import BackendBase, find_backend
from xetl.compiler import build
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.xetile.attributes import layout_of
from xetl.dialects.xetile.types import TileType
from xetl.dialects.xetile.used_maps import used_maps
from xetl.errors import XetlError
from xetl.language.distribution import problem_with
from xetl.language.map_picture import picture
from xetl.language.signature import Signature
from xetl.pipeline import FIRST_STAGE, lower
from xetl.runtime.report import Explanation, Remark
from xetl.tools.performance.benchmark import Peak
from xetl.transforms.diagnostics import positions_of

_MATRIX = 2
_MOST_PICTURES = 8

Place = tuple[str, int]
"""A file, and the number of a line."""


@dataclass(frozen=True)
class StageText:
    """A stage as text.

    Attributes:
        after: the last pass before it; empty for a text that the backend makes of the
            last stage.
        places: the places in the user's files that each line comes from: the innermost
            first, then those of its callers; empty if they are not known.
    """

    name: str
    after: str
    lines: list[str]
    places: list[list[Place]]


@dataclass(frozen=True)
class Product:
    """A product of tiles, and the bytes that are loaded for it.

    Attributes:
        place: the user's line.
        flops: operations of one product; a multiply-add counts as two.
        loaded: bytes of all tiles that its loop loads in an iteration.
        dtype: the dtype of the left operand.
    """

    place: Place
    flops: int
    loaded: int
    dtype: str


@dataclass(frozen=True)
class Stages:
    """The stages of a kernel, as a page shows them.

    Attributes:
        maps: pictures of `wg_map`, each an SVG.
        products: the products at the first stage, in order.
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
    """Compile a kernel once more, and keep every stage."""
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
            except XetlError as error:  # a tool is not installed
                lines = [error.message]
            found.texts.append(StageText(name, "", lines, [[] for _ in lines]))
    return found


@dataclass(eq=False, repr=False)
class _LinePrinter(Printer):
    """A printer that records the user's places of each line."""

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
    """Yield a picture of each map, for the first tile or vector that it fits."""
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
    """Return the shape of a tile or a vector; () for other values."""
    type_: Attribute = value.type
    if isinstance(type_, TileType):
        return type_.shape
    return type_.get_shape() if isinstance(type_, ShapedType) else ()


def _element(value: SSAValue) -> Attribute:
    return cast("VectorType[Attribute]", value.type).element_type


def _bytes(value: SSAValue) -> int:
    return prod(_shape(value)) * bit_width(_element(value)) // 8


_WIDTH, _HEIGHT, _EDGE = 560, 260, 48
_X = (-1.0, 4.0)
"""The range of the x axis: operations per byte, as powers of ten."""


def roofline(products: Sequence[Product], peak: Peak) -> str:
    """Draw the machine's limit, and the limit of each product of a kernel."""
    top = log10(peak.gflops) + 0.3
    bottom = log10(peak.gbytes) + _X[0]
    ridge = log10(peak.gflops / peak.gbytes)

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - _X[0]) / (_X[1] - _X[0])
        up = (y - bottom) / (top - bottom)
        return (
            round(_EDGE + across * (_WIDTH - 2 * _EDGE), 1),
            round(_HEIGHT - _EDGE - up * (_HEIGHT - 2 * _EDGE), 1),
        )

    roof = [at(_X[0], bottom), at(ridge, log10(peak.gflops))]
    roof.append(at(_X[1], log10(peak.gflops)))
    points = " ".join(f"{x},{y}" for x, y in roof)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" role="img" font-family="sans-serif" font-size="12">',
        f"<title>{peak.gflops:.0f} GFLOP/s, {peak.gbytes:.0f} GB/s</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<polyline points="{points}" fill="none" stroke="#05a" stroke-width="2"/>',
        _label(_EDGE, 18, f"{peak.gflops:.0f} GFLOP/s, {peak.gbytes:.1f} GB/s"),
        _label(_EDGE, _HEIGHT - 8, "operations for each byte loaded (1/10 to 10,000)"),
        *_marks(products, peak, at),
    ]
    return "".join([*parts, "</svg>"])


def _marks(products: Sequence[Product], peak: Peak, at: Any) -> Iterator[str]:
    for each in products:
        if each.loaded:
            limit = peak.limit(each.flops, each.loaded)
            x, y = at(log10(each.flops / each.loaded), log10(limit))
            yield f'<circle cx="{x}" cy="{y}" r="5" fill="#c30"/>'
            yield _label(x + 8, y + 18, f"line {each.place[1]}: {limit:.0f} GFLOP/s")


def _label(x: float, y: float, text: str) -> str:
    return f'<text x="{x}" y="{y}">{text}</text>'


_GAP = 8
"""A gap of more lines than this between two shown lines is left out."""


def page(
    said: Explanation, stages: Stages, span: tuple[int, int], peak: Peak | None
) -> str:
    """Return the text of the page; ``span``: first and last line of the kernel."""
    keys = _Keys()
    source = "\n".join(_source(said, stages, span, keys))
    names = "\n".join(_tab(each, index) for index, each in enumerate(stages.texts))
    texts = "\n".join(_panel(each, i, keys) for i, each in enumerate(stages.texts))
    folder = files("xetl.tools.page")
    return (
        folder.joinpath("page.html")
        .read_text("utf-8")
        .replace("{{title}}", escape(said.kernel))
        .replace("{{about}}", escape(f"compiled by {said.backend} for {said.target}"))
        .replace("{{figures}}", "\n".join(_figures(said.figures)))
        .replace("{{source}}", source)
        .replace("{{tabs}}", names)
        .replace("{{panels}}", texts)
        .replace("{{pictures}}", "\n".join(_pictures(stages, peak)))
    )


class _Keys:
    """Short names for lines of files."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}

    def of(self, place: Place) -> str:
        file, line = place
        return f"{self._files.setdefault(file, len(self._files))}.{line}"


def _figures(figures: Mapping[str, object]) -> Iterator[str]:
    for name, value in figures.items():
        shown = f"{value:.1f}" if isinstance(value, float) else str(value)
        yield f"<div><dt>{escape(name)}</dt><dd>{escape(shown)}</dd></div>"


def _source(
    said: Explanation, stages: Stages, span: tuple[int, int], keys: _Keys
) -> Iterator[str]:
    """Yield the lines of all files, and the remarks on a line below it."""
    first, last = span
    wanted = {(said.file, line) for line in range(first, last + 1)}
    linked = {p for text in stages.texts for places in text.places for p in places}
    wanted |= linked | {(each.file, each.line) for each in said.remarks if each.line}
    by_file: dict[str, list[int]] = {}
    for file, line in sorted(wanted, key=lambda p: (p[0] != said.file, *p)):
        by_file.setdefault(file, []).append(line)
    yield from (_remark(each) for each in said.remarks if not each.line)
    for file, lines in by_file.items():
        name = os.fsencode(file).decode(errors="replace")  # of any bytes
        yield f'<h3 class="file">{escape(name)}</h3>'
        for line in _filled(lines):
            if line is None:
                yield '<div class="gap">&#8942;</div>'
                continue
            text = linecache.getline(file, line).rstrip()
            key = keys.of((file, line))
            number = f'<span class="n">{line}</span>'
            if (file, line) in linked:
                yield (
                    f'<div class="l k" role="button" tabindex="0" data-k="{key}">'
                    f"{number}{escape(text)}</div>"
                )
            else:
                yield f'<div class="l">{number}{escape(text)}</div>'
            for each in said.remarks:
                if (each.file, each.line) == (file, line):
                    yield _remark(each)


def _remark(each: Remark) -> str:
    return f'<p class="r"><b>{escape(each.topic)}</b> {escape(each.text)}</p>'


def _filled(lines: Sequence[int]) -> Iterator[int | None]:
    """Yield lines and those between close neighbours; None stands for a gap."""
    for line, after in pairwise(lines):
        yield line
        if after - line > _GAP:
            yield None
        else:
            yield from range(line + 1, after)
    yield lines[-1]


def _tab(text: StageText, index: int) -> str:
    title = f' title="after {escape(text.after)}"' if text.after else ""
    return (
        f'<button role="tab" id="t{index}" aria-controls="p{index}"{title}>'
        f"{escape(text.name)}</button>"
    )


def _panel(text: StageText, index: int, keys: _Keys) -> str:
    lines = [_line(line, p, keys) for line, p in zip(text.lines, text.places)]
    return (
        f'<section role="tabpanel" id="p{index}" aria-labelledby="t{index}">'
        f"<h3>{escape(text.name)}</h3><pre>{chr(10).join(lines)}</pre></section>"
    )


def _line(line: str, places: Sequence[Place], keys: _Keys) -> str:
    if not places:
        return escape(line, quote=False)
    known = " ".join(keys.of(place) for place in places)
    return f'<i data-k="{known}">{escape(line, quote=False)}</i>'


def _pictures(stages: Stages, peak: Peak | None) -> Iterator[str]:
    if stages.products:
        yield "<h2>Products</h2>"
        yield from (f"<p>{escape(_work(each))}</p>" for each in stages.products)
        if peak is not None:
            yield f"<figure>{roofline(stages.products, peak)}</figure>"
    if stages.maps:
        yield "<h2>Which subgroup has which part</h2>"
        for index, each in enumerate(stages.maps):
            # Patterns are found by id, so each picture needs ids of its own.
            own = each.replace("shared", f"shared{index}")
            yield f"<figure>{own}</figure>"


def _work(each: Product) -> str:
    text = f"line {each.place[1]}: {each.flops:,} operations a step on {each.dtype}"
    if each.loaded:
        text += (
            f" for {each.loaded:,} bytes that the step loads: "
            f"{each.flops / each.loaded:.1f} for each byte"
        )
    return text


def explained(
    said: Explanation,
    function: Callable[..., Any],
    signature: Signature,
    measures: bool,
) -> str:
    """Return the text of the page about ``function``.

    Args:
        measures: whether to draw a roofline. The limits of a GPU are in its data sheet;
            those of a CPU are measured on this machine.
    """
    backend = find_backend(said.backend)
    stages = collect(function, signature, backend, said.target)
    dtypes = [each.dtype for each in stages.products] or ["f32"]
    limits = backend.peak(said.target, dtypes[0]) if measures else None
    return page(said, stages, _span(function), limits and Peak(*limits))


def _span(function: Callable[..., Any]) -> tuple[int, int]:
    """Return the first and the last line of a function in its file."""
    first = function.__code__.co_firstlineno
    lines = (line for *_, line in function.__code__.co_lines() if line is not None)
    return first, max(max(lines, default=first), _end(function))


def _end(function: Callable[..., Any]) -> int:
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):  # the function has no source file
        return 0
    return first + len(lines) - 1
