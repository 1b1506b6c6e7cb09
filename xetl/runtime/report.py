"""What a compiled kernel can say about itself: decisions by line, sizes and times."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from xetl.backend import Artifact, find_backend


@dataclass(frozen=True, slots=True)
class Remark:
    """What a pass decided.

    Attributes:
        line: of the user's file; 0 where it is not known.
        topic: what it is about, such as ``brgemm`` or ``packing``.
        text: what was done, or why not.
        file: where the line is.
        source: the text of the line.
    """

    line: int
    topic: str
    text: str
    file: str
    source: str


@dataclass(frozen=True)
class Explanation:
    """What became of a kernel; ``str()`` is the report.

    Attributes:
        kernel: its name.
        backend: who compiled it.
        target: the machine it was compiled for.
        remarks: what was decided, in the order of the lines.
    """

    kernel: str
    backend: str
    target: str
    remarks: tuple[Remark, ...]

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
    """Sizes and times of a compiled kernel; None where it does not apply.

    Attributes:
        kernel: its name.
        backend: who compiled it.
        target: the machine it was compiled for.
        compile_ms: milliseconds from the Python function to machine code.
        code_bytes: size of the machine code.
        slm_bytes: shared local memory of a workgroup.
        spill_bytes: what did not fit the registers of a thread.
        instructions: of the machine code, where a GPU's compiler is at hand.
        subgroups: of a workgroup, each of which runs that code.
        grf: registers of a thread, on a GPU.
        tile_config: how the tiles were cut, on a GPU.
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

    def __str__(self) -> str:
        head = f"{self.kernel}, compiled by `{self.backend}` for `{self.target}`"
        lines = [head]
        for name in MEASURES:
            value = getattr(self, name)
            if value is not None:
                shown = f"{value:.1f}" if isinstance(value, float) else str(value)
                lines.append(f"  {name:12}{shown}")
        return "\n".join(lines)


MEASURES = (
    "compile_ms",
    "code_bytes",
    "slm_bytes",
    "spill_bytes",
    "instructions",
    "subgroups",
    "grf",
    "tile_config",
)
"""What `Stats` takes from the facts of an artifact."""


def explain(
    fn: Callable[..., Any], backend: str, target: str, artifact: Artifact
) -> Explanation:
    """The remarks that the passes left, with the lines they are about."""
    file = fn.__code__.co_filename
    found = [_remark(file, *each) for each in artifact.meta.get("remarks", ())]
    found.sort(key=lambda remark: (remark.file != file, remark.file, remark.line))
    return Explanation(fn.__name__, backend, target, tuple(_unique(found)))


def stats(
    fn: Callable[..., Any], backend: str, target: str, artifact: Artifact
) -> Stats:
    """The facts an artifact holds, and what its backend finds out when asked."""
    facts = {name: artifact.meta.get(name) for name in MEASURES}
    facts |= find_backend(backend).measure(artifact)
    return Stats(fn.__name__, backend, target, **facts)


def _remark(
    kernel_file: str, line: int, topic: str, text: str, file: str | None = None
) -> Remark:
    where = file or kernel_file
    source = linecache.getline(where, line).rstrip("\n") if line else ""
    return Remark(line, topic, text, where, source)


def _unique(remarks: Sequence[Remark]) -> list[Remark]:
    return [remark for remark, _ in groupby(remarks)]
