"""The roofline as an SVG: what a machine can do with each byte that is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10
from typing import Any

from xetl.tools.page.stages import Product
from xetl.tools.performance.peak import Peak

_WIDTH, _HEIGHT, _EDGE = 560, 260, 48
_X = (-1.0, 4.0)
"""Powers of ten of operations for each byte."""


def roofline(products: Sequence[Product], peak: Peak) -> str:
    """Draw the limit, and where the products of a kernel stand under it.

    Args:
        products: those that load something.
        peak: the most that the machine does.
    """
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
