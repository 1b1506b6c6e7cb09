"""What the compiler says about a program, out of the JSON of its artifact."""

from __future__ import annotations

from collections.abc import Mapping
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
    """

    name: str
    lanes: Grid
    surfaces: tuple[Surface, ...]


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
class ProgramFacts:
    """A program: the same kernel once or twice, the first that fits is launched.

    Attributes:
        target: what it was compiled for.
        kernels: the most demanding first; the last one takes anything.
        arguments: in order.
        stored: indices of the arrays that are written.
        slm_bytes: shared local memory of a workgroup.
        grf: registers of a thread it was planned for.
        needs: dtypes that the device must compute with.
        log: how to read its prints and failed checks; none if it writes no log.
    """

    target: str
    kernels: tuple[KernelFacts, ...]
    arguments: tuple[ArgumentFacts, ...]
    stored: frozenset[int]
    slm_bytes: int
    grf: int
    needs: frozenset[str]
    log: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self.kernels[-1].name.removesuffix("_unaligned")

    @property
    def lanes(self) -> int:
        """Lanes of a workgroup."""
        x, y, z = self.kernels[-1].lanes
        return x * y * z


def facts_of(meta: Mapping[str, Any]) -> ProgramFacts:
    """Read what `xetl_xegpu.pipeline` wrote."""
    return ProgramFacts(
        target=meta["target"],
        kernels=tuple(_kernel(each) for each in meta["kernels"]),
        arguments=tuple(
            ArgumentFacts(kind, tuple(sizes), tuple(strides))
            for kind, sizes, strides, _ in meta["arguments"]
        ),
        stored=frozenset(meta["stored"]),
        slm_bytes=meta["slm_bytes"],
        grf=meta["grf"],
        needs=frozenset(meta["needs"]),
        log=tuple(meta["log"]),
    )


def _kernel(described: Mapping[str, Any]) -> KernelFacts:
    x, y, z = described["lanes"]
    surfaces = tuple(Surface(*each) for each in described["surfaces"])
    return KernelFacts(described["name"], (x, y, z), surfaces)
