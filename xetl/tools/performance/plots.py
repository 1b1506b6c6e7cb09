"""Plots of a report; matplotlib is loaded for them alone."""

from __future__ import annotations

import importlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xetl.tools.performance.benchmark import Benchmark
from xetl.tools.performance.peak import Peak

if TYPE_CHECKING:
    from xetl.tools.performance.report import Row

_SIZE = (7.0, 4.2)
_DOTS = 150


def draw(
    benchmark: Benchmark, rows: Sequence[Row], path: Path | None, shows: bool
) -> bytes:
    """Draw the lines, with a band for the range of each value."""
    figure, axis = _figure(shows)
    numbers = _positions(benchmark, rows)
    for index, label in enumerate(benchmark.lines.values()):
        values = [row.values[label] for row in rows]
        colour, style = _style(benchmark, index)
        middles = [value.middle for value in values]
        axis.plot(numbers, middles, style, color=colour, marker="o", ms=3, label=label)
        lows, highs = [v.low for v in values], [v.high for v in values]
        if lows != highs:
            axis.fill_between(numbers, lows, highs, color=colour, alpha=0.15)
    if not all(_is_number(row.point[benchmark.x[0]]) for row in rows):
        texts = [", ".join(map(str, row.point.values())) for row in rows]
        axis.set_xticks(numbers, texts)
    if benchmark.log:
        axis.set_xscale("log", base=2)
    if benchmark.log_y:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
    axis.set_xlabel(benchmark.label)
    axis.set_ylabel(benchmark.unit)
    axis.set_title(benchmark.name)
    return _finish(figure, axis, path, shows)


def draw_roofline(
    benchmark: Benchmark, rows: Sequence[Row], peak: Peak, path: Path
) -> bytes:
    """Draw the limits of the machine, and how near to them each value comes."""
    figure, axis = _figure(shows=False)
    found: list[float] = []
    for index, label in enumerate(benchmark.lines.values()):
        rates = [benchmark.rate(row.point, row.values[label].middle) for row in rows]
        pairs = [each for each in rates if each is not None]
        found += [intensity for _, intensity in pairs]
        colour, _ = _style(benchmark, index)
        heights = [rate for rate, _ in pairs]
        axis.plot([i for _, i in pairs], heights, "o", color=colour, label=label)
    ridge = peak.gflops / peak.gbytes
    ends = [min([*found, ridge]) / 2, ridge, max([*found, ridge]) * 2]
    roof = [peak.limit(each, 1.0) for each in ends]
    axis.plot(ends, roof, "-", color="black", lw=1.2)
    texts = (f"{peak.gbytes:.0f} GB/s", f"{peak.gflops:.0f} GFLOP/s")
    for text, at, place, side in zip(
        texts, (0, 2), ((6, -3), (0, 6)), ("left", "right")
    ):
        axis.annotate(
            text, (ends[at], roof[at]), place, textcoords="offset points", ha=side
        )
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    axis.margins(y=0.1)  # room for the text above the roof
    axis.set_xlabel("operations for each byte moved")
    axis.set_ylabel("GFLOP/s")
    axis.set_title(f"{benchmark.name}: roofline")
    return _finish(figure, axis, path, shows=False)


def _figure(shows: bool) -> tuple[Any, Any]:
    """A figure of its own; one to be shown must be known to pyplot."""
    if shows:
        plots: Any = importlib.import_module("matplotlib.pyplot")
        return plots.subplots(figsize=_SIZE, layout="constrained")
    figures: Any = importlib.import_module("matplotlib.figure")
    figure = figures.Figure(figsize=_SIZE, layout="constrained")
    return figure, figure.subplots()


def _finish(figure: Any, axis: Any, path: Path | None, shows: bool) -> bytes:
    axis.grid(alpha=0.3)
    axis.legend()
    stream = io.BytesIO()
    if path is not None:
        figure.savefig(stream, format=path.suffix[1:] or "png", dpi=_DOTS)
    if shows:
        plots: Any = importlib.import_module("matplotlib.pyplot")
        plots.show()
        plots.close(figure)
    return stream.getvalue()


def _positions(benchmark: Benchmark, rows: Sequence[Row]) -> list[Any]:
    first = [row.point[benchmark.x[0]] for row in rows]
    return first if all(map(_is_number, first)) else list(range(len(first)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _style(benchmark: Benchmark, index: int) -> tuple[str, str]:
    """Colour and kind of a line: what was given, else one of ten colours."""
    if index < len(benchmark.styles):
        colour, style = benchmark.styles[index]
        return str(colour), str(style)
    return f"C{index % 10}", "-"
