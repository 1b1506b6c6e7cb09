"""``@xetl.perf_report``: measures benchmarks, prints tables, writes CSV and PNG.

matplotlib is loaded only for plots.
"""

from __future__ import annotations

import csv as csv_format
import importlib
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from xetl.backend import find_backend
from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.runtime.call_site import errors_at_caller
from xetl.tools.output import replace_files, why_not_written
from xetl.tools.performance.benchmark import WRONG, Benchmark, Peak, Point, Value

PathLike = str | Path
_TOO_MUCH = 1.05
"""Values above the limit by this factor are no noise."""


@dataclass(frozen=True)
class Row:
    """The measurements at one point of the x axis: the value of each line, by label."""

    point: Point
    values: dict[str, Value]


def measured_peak(dtype: str) -> Peak | None:
    """Measure the limits of this machine; None if the backend has no measurement."""
    said = find_backend("cpu").peak("host", dtype)
    return None if said is None else Peak(*said)


class Report:
    """A function with at least one benchmark. A call calls it; `run` measures it."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = list(benchmarks)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the function itself."""
        return self.fn(*args, **keywords)

    @errors_at_caller
    def run(
        self,
        show: bool = False,
        csv: PathLike | None = None,
        png: PathLike | None = None,
        *,
        roofline: bool | PathLike = False,
        dtype: str = "f32",
        show_plots: bool = False,
        print_data: bool = True,
        save_path: PathLike | None = None,
    ) -> list[list[Row]]:
        """Measure, and print a table for each benchmark.

        Args:
            show: whether a window with the plot is opened.
            csv: a file for the values. From the second benchmark on, the name has the
                index of the benchmark before the suffix.
            png: a file for the plot, likewise.
            roofline: whether the table shows which part of the machine's limit is
                reached. If it is a path, the roofline is also drawn to this file. The
                benchmarks must have ``flops`` and ``bytes``.
            dtype: the dtype of the products that measure the limit, ``f32`` or
                ``bf16``.
            show_plots: as ``show``.
            print_data: whether the table is printed.
            save_path: a folder for CSV and PNG with the name of the benchmark.

        Returns:
            The rows of each benchmark.

        Raises:
            LaunchError: a file cannot be written; matplotlib is missing; or a benchmark
                lacks ``flops`` or ``bytes``.
        """
        shows = show or show_plots
        files = [csv, png, None if isinstance(roofline, bool) else roofline]
        _check_files([*files, save_path and Path(save_path) / "x"])
        if shows or png or files[2] or save_path:
            _check_plots([png, files[2]])
        if roofline and not all(each.knows_work for each in self.benchmarks):
            help_ = "give the benchmark flops= and bytes=, functions of its x"
            raise LaunchError("a roofline needs the work of a call", WRONG, help_)
        found: list[list[Row]] = []
        for index, each in enumerate(self.benchmarks):
            outputs = _outputs(files, save_path, each.name, index)
            peak = measured_peak(dtype) if roofline else None
            found.append(self._run_one(each, outputs, peak, shows, print_data))
        return found

    def _run_one(
        self,
        benchmark: Benchmark,
        outputs: Sequence[Path | None],
        peak: Peak | None,
        shows: bool,
        prints: bool,
    ) -> list[Row]:
        csv, png, roofline = outputs
        rows: list[Row] = []
        for point in benchmark.points:
            lines = benchmark.lines.items()
            found = {n: benchmark.measure(self.fn, point, key) for key, n in lines}
            rows.append(Row(point, found))
        if prints:
            for line in table(benchmark, rows, peak):
                sys.stdout.write(line + "\n")
        made: dict[Path, bytes | str] = {}
        if csv is not None:
            file = io.StringIO(newline="")
            writer = csv_format.writer(file)
            labels = list(benchmark.lines.values())
            heads = [f"{each} ({benchmark.unit})" for each in labels]
            writer.writerow([*benchmark.x, *heads])
            for row in rows:
                middles = [value.middle for value in row.values.values()]
                writer.writerow([*row.point.values(), *middles])
            made[csv] = file.getvalue()
        if png is not None or shows:
            picture = draw(benchmark, rows, png, shows)
            made |= {} if png is None else {png: picture}
        if roofline is not None and peak is not None:
            made[roofline] = draw_roofline(benchmark, rows, peak, roofline)
        try:
            replace_files(made)
        except OSError as error:
            text, mend = why_not_written(error), "name another place"
            raise LaunchError(text, code=WRONG, help=mend) from None
        return rows


def perf_report(
    benchmarks: Benchmark | Sequence[Benchmark],
) -> Callable[[Callable[..., Any]], Report]:
    """Measure a function by benchmarks: ``@xetl.perf_report(xetl.Benchmark(...))``.

    The function gets a value of x and the line. It returns its measurement: a number,
    or a number and its range (`do_bench` with three quantiles).

    Raises:
        LaunchError: the parameters of the function do not fit a benchmark.
    """
    listed = [benchmarks] if isinstance(benchmarks, Benchmark) else list(benchmarks)

    @errors_at_caller
    def decorate(fn: Callable[..., Any]) -> Report:
        for each in listed:
            each.parameter_of_lines(fn)
        return Report(fn, listed)

    return decorate


def table(
    benchmark: Benchmark, rows: Sequence[Row], peak: Peak | None
) -> Iterator[str]:
    """Yield the lines of a table: x, the value of each line, its part of the limit."""
    labels = list(benchmark.lines.values())
    yield f"{benchmark.name} ({benchmark.unit})"
    parts = [f"{n} of limit" for n in labels] if peak else []
    heads = [*benchmark.x, *labels, *parts]
    cells = [_cells(benchmark, row, peak) for row in rows]
    widths = [max(len(line[i]) for line in [heads, *cells]) for i in range(len(heads))]
    for line in [heads, *cells]:
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths))
    if peak is not None:
        yield f"limit: {peak.gflops:.1f} GFLOP/s, {peak.gbytes:.1f} GB/s (measured)"
        reached = (part for row in rows for part in _parts(benchmark, row, peak))
        if max(reached, default=0.0) > _TOO_MUCH:
            yield "more than the limit: something else ran while that was measured"


def _cells(benchmark: Benchmark, row: Row, peak: Peak | None) -> list[str]:
    cells = [str(row.point[name]) for name in benchmark.x]
    cells += [f"{value.middle:.4g}" for value in row.values.values()]
    if peak is not None:
        cells += [f"{part:.1%}" for part in _parts(benchmark, row, peak)]
    return cells


def _parts(benchmark: Benchmark, row: Row, peak: Peak) -> Iterator[float]:
    """Yield which part of the limit each line reaches, if its work is known."""
    for value in row.values.values():
        rate = benchmark.rate(row.point, value.middle)
        if rate is not None:
            yield rate[0] / peak.limit(rate[1], 1.0)


def _outputs(
    files: Sequence[PathLike | None], folder: PathLike | None, name: str, index: int
) -> list[Path | None]:
    """Return the paths for CSV, PNG and roofline of a benchmark."""
    found: list[Path | None] = []
    for file, suffix in zip(files, (".csv", ".png", None)):
        if file is not None:
            path = Path(file)
            numbered = path.with_name(f"{path.stem}-{index}{path.suffix}")
            found.append(numbered if index else path)
        elif folder is not None and suffix is not None:
            found.append(Path(folder) / f"{name}{suffix}")
        else:
            found.append(None)
    return found


def _check_files(files: Sequence[PathLike | None]) -> None:
    """Refuse files in folders that do not exist, before anything is measured."""
    for file in files:
        folder = Path(file or ".").absolute().parent
        if file is not None and not folder.is_dir():
            problem = f"`{file}` cannot be written: there is no folder `{folder}`"
            raise LaunchError(problem, code=WRONG, help="make it first")


def _check_plots(files: Sequence[PathLike | None]) -> None:
    try:
        import_whole("matplotlib.figure")
        canvas: Any = import_whole("matplotlib.backend_bases").FigureCanvasBase
    except ModuleNotFoundError:
        problem = "plots need matplotlib, which is not installed"
        help_ = "pip install matplotlib; tables and csv= need nothing"
        raise LaunchError(problem, WRONG, help_) from None
    kinds = {"", *(f".{kind}" for kind in canvas.filetypes)}
    for file in files:
        if file is not None and Path(file).suffix not in kinds:
            problem = f"`{file}` is of no kind that plots have"
            raise LaunchError(problem, WRONG, "let its name end in .png, .svg or .pdf")


_SIZE = (7.0, 4.2)
_DOTS = 150


def draw(
    benchmark: Benchmark, rows: Sequence[Row], path: Path | None, shows: bool
) -> bytes:
    """Draw the lines, with a band for the range of the values."""
    figure, axis = _figure(shows)
    first = [row.point[benchmark.x[0]] for row in rows]
    are_numbers = all(isinstance(each, int | float) for each in first)
    numbers = first if are_numbers else list(range(len(first)))
    for index, label in enumerate(benchmark.lines.values()):
        values = [row.values[label] for row in rows]
        colour, style = _style(benchmark, index)
        middles = [value.middle for value in values]
        axis.plot(numbers, middles, style, color=colour, marker="o", ms=3, label=label)
        lows, highs = [v.low for v in values], [v.high for v in values]
        if lows != highs:
            axis.fill_between(numbers, lows, highs, color=colour, alpha=0.15)
    if not are_numbers:
        texts = [", ".join(map(str, row.point.values())) for row in rows]
        axis.set_xticks(numbers, texts)
    if benchmark.log:
        axis.set_xscale("log", base=2)
    if benchmark.log_y:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
    axis.set(xlabel=benchmark.label, ylabel=benchmark.unit, title=benchmark.name)
    return _finish(figure, axis, path, shows)


def draw_roofline(
    benchmark: Benchmark, rows: Sequence[Row], peak: Peak, path: Path
) -> bytes:
    """Draw the limits of the machine, and each value below them."""
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
    note = partial(axis.annotate, textcoords="offset points")
    note(f"{peak.gbytes:.0f} GB/s", (ends[0], roof[0]), (6, -3), ha="left")
    note(f"{peak.gflops:.0f} GFLOP/s", (ends[2], roof[2]), (0, 6), ha="right")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    axis.margins(y=0.1)  # room for the text above the roof
    axis.set(xlabel="operations for each byte moved", ylabel="GFLOP/s")
    axis.set_title(f"{benchmark.name}: roofline")
    return _finish(figure, axis, path, shows=False)


def _figure(shows: bool) -> tuple[Any, Any]:
    """Make a figure. Only a figure that is shown needs pyplot."""
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


def _style(benchmark: Benchmark, index: int) -> tuple[str, str]:
    """Return colour and style of a line: the given ones, or else one of ten colours."""
    if index < len(benchmark.styles):
        colour, style = benchmark.styles[index]
        return str(colour), str(style)
    return f"C{index % 10}", "-"
