"""One HTML file about a kernel: source with remarks, the IR of each stage, pictures.

Nothing is loaded from elsewhere, and without scripts all of it can still be read.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import pairwise

from xetl.runtime.report import Explanation, Remark
from xetl.tools.page.roofline import roofline
from xetl.tools.page.stages import Place, Product, Stages, StageText
from xetl.tools.performance.peak import Peak

_GAP = 8
"""Lines between two that are shown, which are left out if there are more."""


def page(
    said: Explanation, stages: Stages, span: tuple[int, int], peak: Peak | None
) -> str:
    """The text of the page.

    Args:
        said: the remarks and figures.
        stages: the IR.
        span: first and last line of the kernel in its file.
        peak: of the machine the kernel is for, if it was measured.
    """
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
    """A short name for each line of each file."""

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
    """The lines of all files, with what was decided below each."""
    first, last = span
    wanted = {(said.file, line) for line in range(first, last + 1)}
    linked = {p for text in stages.texts for places in text.places for p in places}
    wanted |= linked | {(each.file, each.line) for each in said.remarks if each.line}
    by_file: dict[str, list[int]] = {}
    for file, line in sorted(wanted, key=lambda p: (p[0] != said.file, *p)):
        by_file.setdefault(file, []).append(line)
    yield from _general(said)
    for file, lines in by_file.items():
        yield f'<h3 class="file">{escape(file)}</h3>'
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


def _general(said: Explanation) -> Iterator[str]:
    for each in said.remarks:
        if not each.line:
            yield _remark(each)


def _remark(each: Remark) -> str:
    return f'<p class="r"><b>{escape(each.topic)}</b> {escape(each.text)}</p>'


def _filled(lines: Sequence[int]) -> Iterator[int | None]:
    """Lines with what lies between neighbours; None: lines are left out."""
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
            # Patterns are found by their ids, of which a page has one each.
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
