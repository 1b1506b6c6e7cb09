"""What the compiler says about a program, out of the JSON of its artifact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Surface:
    """A matrix that a kernel moves by block messages.

    Attributes:
        argument: which of the arguments it is.
        row: the dimension of its rows; -1: it is one row.
        column: the dimension along a row, whose stride is 1.
    """

    argument: int
    row: int
    column: int


@dataclass(frozen=True)
class KernelFacts:
    """One kernel of a program.

    Attributes:
        name: of the function.
        lanes: of a workgroup along x, y and z.
        surfaces: what must fit block messages for it to be launched.
        spirv: where its program is in the artifact.
        log: how to read its prints and failed checks; none if it writes no log.
    """

    name: str
    lanes: Grid
    surfaces: tuple[Surface, ...]
    spirv: slice
    log: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class ArgumentFacts:
    """What a kernel gets for an argument.

    Attributes:
        kind: ``array``, or the type of a number: ``i64``, ``f64``, ``f32``.
        sizes: dimensions of the array whose size it gets.
        strides: dimensions whose stride it gets.
    """

    kind: str
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class CodeFacts:
    """The same kernel once or twice, the first that fits the arrays is launched.

    Attributes:
        target: what it was compiled for.
        kernels: the most demanding first; the last one takes anything.
        arguments: in order.
        stored: indices of the arrays that are written.
        slm_bytes: shared local memory of a workgroup.
        grf: registers of a thread it was planned for.
        needs: dtypes that the device must compute with.
    """

    target: str
    kernels: tuple[KernelFacts, ...]
    arguments: tuple[ArgumentFacts, ...]
    stored: frozenset[int]
    slm_bytes: int
    grf: int
    needs: frozenset[str]

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self.kernels[-1].name.removesuffix("_unaligned")

    @property
    def lanes(self) -> int:
        """Lanes of a workgroup."""
        x, y, z = self.kernels[-1].lanes
        return x * y * z


def facts_of(meta: Mapping[str, Any]) -> CodeFacts:
    """Read what `xetl_xegpu.pipeline` wrote."""
    return CodeFacts(
        target=meta["target"],
        kernels=tuple(_kernels(meta["kernels"])),
        arguments=tuple(
            ArgumentFacts(kind, tuple(sizes), tuple(strides))
            for kind, sizes, strides, _ in meta["arguments"]
        ),
        stored=frozenset(meta["stored"]),
        slm_bytes=meta["slm_bytes"],
        grf=meta["grf"],
        needs=frozenset(meta["needs"]),
    )


def _kernels(described: Sequence[Mapping[str, Any]]) -> Iterator[KernelFacts]:
    start = 0
    for each in described:
        x, y, z = each["lanes"]
        surfaces = tuple(Surface(*numbers) for numbers in each["surfaces"])
        end = start + each["bytes"]
        log = tuple(each["log"])
        yield KernelFacts(each["name"], (x, y, z), surfaces, slice(start, end), log)
        start = end
