"""The plot of `gemm.py`: how much of the peak each contestant reaches."""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module
from pathlib import Path
from statistics import median

from harness import read_csv

SHOWN = {"kernel": "#1f5fa8", "ops": "#4fa3e0", "best library": "#b0b0b0"}
PEERS = ("openblas", "mkl", "onednn")
Panel = tuple[str, str]


def draw(name: str, path: Path) -> None:
    """Draw part ``products`` of ``results/<name>.csv`` to ``path``.

    Nothing is drawn where nothing was measured, or without matplotlib.
    """
    panels = _shares(read_csv(name))
    if not panels:
        return
    try:
        figures = import_module("matplotlib.figure")
    except ModuleNotFoundError:
        print("no plot: matplotlib is not installed")
        return
    figure = figures.Figure(figsize=(11, 3.1 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), squeeze=False)[:, 0]
    for axis, ((dtype, threads), shapes) in zip(axes, panels.items()):
        for place, (who, colour) in enumerate(SHOWN.items()):
            at = [i + 0.27 * (place - 1) for i in range(len(shapes))]
            heights = [shares.get(who, 0) for shares in shapes.values()]
            bars = axis.bar(at, heights, 0.25, label=who, color=colour)
            axis.bar_label(bars, fmt="%.0f", fontsize=7)
        axis.set_xticks(range(len(shapes)), [_label(shape) for shape in shapes])
        axis.set_title(f"{dtype}, {threads} thread{'s' * (threads != '1')}")
        axis.set_ylabel("% of peak")
        axis.set_ylim(0, 110)
    axes[0].legend(ncols=3, loc="upper right")
    figure.savefig(path, dpi=110)
    print(f"drawn to {path}")


def _shares(rows: list[dict[str, str]]) -> dict[Panel, dict[str, dict[str, float]]]:
    """By dtype and threads, then by shape, per cent of the peak of each contestant."""
    rates: defaultdict[Panel, defaultdict[str, dict[str, float]]]
    rates = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["part"] == "products" and row["dtype"] != "f16":
            shapes = rates[row["dtype"], row["threads"]]
            shapes[row["shape"]][row["contestant"]] = float(row["rate"])
    return {panel: _of_peak(shapes) for panel, shapes in rates.items()}


def _of_peak(shapes: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Per cent of the peak, the median of the cases: no shape changes it."""
    peak = median(rates["peak"] for rates in shapes.values())
    shares: dict[str, dict[str, float]] = {}
    for shape, rates in shapes.items():
        best = max((rates[name] for name in PEERS if name in rates), default=0)
        shown = {**rates, "best library": best}
        shares[shape] = {name: 100 * rate / peak for name, rate in shown.items()}
    return shares


def _label(shape: str) -> str:
    m, k, n = shape.split("x")
    return m if m == k == n else f"{m}x{k}\nx{n}"
