"""Reports about a compiled kernel: decisions by line, sizes and times."""

from __future__ import annotations

import json
import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any

from xetl.backend import Argument, Artifact, Expected, find_backend
from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.language.signature import Signature
from xetl.runtime.call_site import at_caller
from xetl.runtime.grid import Grid


@dataclass(frozen=True, slots=True)
class Remark:
    """A decision of a pass.

    Attributes:
        line: the line in ``file``; 0 if it is not known.
        topic: the subject, such as ``brgemm`` or ``packing``.
        text: what the pass did, or why it did nothing.
        file: the file of the line.
        source: the text of the line.
    """

    line: int
    topic: str
    text: str
    file: str
    source: str


@dataclass(frozen=True)
class Explanation:
    """The decisions of the compiler about a kernel; ``str()`` is the report.

    Attributes:
        target: the machine it was compiled for.
        remarks: the decisions, in the order of the lines.
        file: the file of the kernel.
        figures: sizes and times by their names in `Stats`.
        draw: makes the page; its second argument: whether to measure the machine.
    """

    kernel: str
    backend: str
    target: str
    remarks: tuple[Remark, ...]
    file: str = ""
    figures: Mapping[str, object] = field(
        default_factory=dict[str, object], compare=False
    )
    draw: Callable[[Explanation, bool], str] | None = field(
        default=None, repr=False, compare=False
    )

    def json(self) -> str:
        """Return as JSON kernel, backend, target, file, figures and remarks."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        remarks = [asdict(each) for each in self.remarks]
        return json.dumps({**plain, "remarks": remarks}, indent=1, default=str)

    def html(
        self, path: str | PathLike[str] | None = None, *, roofline: bool = False
    ) -> str:
        """Make one HTML page: the source beside the IR of each stage, and pictures.

        This compiles the current source of the kernel again.

        Args:
            path: a file to write the page to.
            roofline: whether to draw the roofline of the machine with the kernel's
                matrix products. The limits of a GPU are from its data sheet; those of
                this CPU are measured, which takes a second.

        Returns:
            The text of the page.

        Raises:
            LaunchError: it is a text kernel, or the report is from another process.
        """
        if self.draw is None:
            error = LaunchError(
                f"there is no page about `{self.kernel}`: it is a kernel of a text, or"
                " this explanation came from another process",
                code="X0812",
                help="print it, or see json() and `kernel.ir`",
            )
            raise at_caller(error) from None
        text = self.draw(self, roofline)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def __getstate__(self) -> dict[str, object]:
        """Return all attributes except `draw`, which refers to the kernel itself."""
        return {**self.__dict__, "draw": None}

    def _repr_html_(self) -> str:
        """Return the page in a frame for notebooks: its style affects nothing else."""
        if self.draw is None:
            return f"<pre>{import_whole('html').escape(str(self))}</pre>"
        text = import_whole("html").escape(self.html())
        return f'<iframe srcdoc="{text}" style="{_FRAME}" title="xetl"></iframe>'

    def __str__(self) -> str:
        head = f"{self.kernel}, compiled by `{self.backend}` for `{self.target}`"
        if not self.remarks:
            return f"{head}: there is nothing to remark"
        lines = [head]
        width = max(len(str(remark.line)) for remark in self.remarks)
        place = file = None
        for remark in self.remarks:
            if remark.file != file:
                file = remark.file
                lines.append(f"{' ' * width}--> {file}")
            if remark.line != place:
                place = remark.line
                source = remark.source.rstrip() or "(no line)"
                lines.append(f"{remark.line:>{width}} | {source}")
            lines.append(f"{' ' * width} = {remark.topic}: {remark.text}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Stats:
    """Sizes and times of a compiled kernel; None for those that do not apply.

    Attributes:
        target: the machine it was compiled for.
        compile_ms: milliseconds from the Python function to machine code.
        code_bytes: size of the machine code.
        slm_bytes: shared local memory of a workgroup.
        spill_bytes: bytes that do not fit the registers of a thread.
        instructions: the number in the machine code, if a GPU's compiler is installed.
        subgroups: the number in a workgroup; each of them runs that code.
        grf: registers of a thread, on a GPU.
        tile_config: the 64 bytes of AMX's tile configuration in hexadecimal, on a CPU.
        expected: estimates of a launch, on a GPU: with the given arrays, or else with
            arrays of 4096 in each dimension and a grid that fills the GPU.
    """

    kernel: str
    backend: str
    target: str
    compile_ms: float | None = None
    code_bytes: int | None = None
    slm_bytes: int | None = None
    spill_bytes: int | None = None
    instructions: int | None = None
    subgroups: int | None = None
    grf: int | None = None
    tile_config: object | None = None
    expected: tuple[Expected, ...] = ()

    def __str__(self) -> str:
        head = f"{self.kernel}, compiled by `{self.backend}` for `{self.target}`"
        lines = [head]
        for name in MEASURES:
            value = getattr(self, name)
            if value is not None:
                shown = f"{value:.1f}" if isinstance(value, float) else str(value)
                lines.append(f"  {name:13}{shown}")
        lines += [f"  {'roofline':13}{each}" for each in self.expected]
        return "\n".join(lines)


_PLAIN = ("kernel", "backend", "target", "file", "figures")
_FRAME = "width: 100%; height: 40rem; border: 0"

MEASURES = tuple(each.name for each in fields(Stats) if each.default is None)
"""The facts of an artifact that `Stats` holds."""


def explain(
    fn: Callable[..., Any],
    backend: str,
    target: str,
    artifact: Artifact,
    signature: Signature,
) -> Explanation:
    """Return the remarks of the passes about a kernel, with their lines."""

    def draw(said: Explanation, measures: bool) -> str:
        # Imported late: few explanations are looked at as pages.
        return import_whole("xetl.tools.page").explained(said, fn, signature, measures)

    where = fn.__name__, fn.__code__.co_filename, linecache.getline
    return replace(explained(*where, backend, target, artifact), draw=draw)


def explained(
    kernel: str,
    file: str,
    line_of: Callable[[str, int], str],
    backend: str,
    target: str,
    artifact: Artifact,
) -> Explanation:
    """Return the remarks that an artifact holds, those of ``file`` first."""

    def remark(line: int, topic: str, text: str, other: str | None = None) -> Remark:
        where = other or file
        source = line_of(where, line).rstrip("\n") if line else ""
        return Remark(line, topic, text, where, source)

    found = [remark(*each) for each in artifact.meta.get("remarks", ())]
    found.sort(key=lambda each: (each.file != file, each.file, each.line))
    known = {name: artifact.meta.get(name) for name in MEASURES}
    figures = {name: value for name, value in known.items() if value is not None}
    remarks = tuple(each for each, _ in groupby(found))
    return Explanation(kernel, backend, target, remarks, file, figures)


def stats(
    kernel: str,
    backend: str,
    target: str,
    artifact: Artifact,
    grid: Grid | None,
    args: Sequence[Argument] | None,
) -> Stats:
    """Return the facts of an artifact, and those that its backend measures now.

    ``grid`` and ``args`` are those of a launch; None if they were not given.
    """
    maker = find_backend(backend)
    facts = {name: artifact.meta.get(name) for name in MEASURES}
    facts |= maker.measure(artifact)
    expected = tuple(maker.expect(artifact, grid, args))
    return Stats(kernel, backend, target, **facts, expected=expected)
