"""Random kernels at workgroup level, with maps on some of what they do.

For the passes from workgroups to blocks: whatever these do, memory holds the same at
the end.  A kernel comes from a seed (`kernel_of`) or from Hypothesis (`kernels`), which
makes a failing one small.  All numbers are small integers: results are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st
from workgroup_control import COMPOUND
from workgroup_statements import SIMPLE
from workgroup_writer import Choices, Seeded, Writer

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class WorkgroupKernel:
    """A module with one kernel, and what to run it on.

    Attributes:
        text: of the module.
        grid: programs along x and y.
        arrays: one an argument; those that are stored have random numbers as well.
        subgroups: that all its maps have; it may have no map at all.
    """

    text: str
    grid: tuple[int, int]
    arrays: list[Any]
    subgroups: int

    def __repr__(self) -> str:
        return f"grid {self.grid}, {self.subgroups} subgroups:\n{self.text}"


class _Drawn:
    """Decisions of Hypothesis."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def pick(self, options: Sequence[T]) -> T:
        return options[self._draw(st.integers(0, len(options) - 1))]


def kernel_of(seed: int, statements: int = 8) -> WorkgroupKernel:
    """The kernel of a seed: always the same one."""
    return _kernel(Seeded(seed), seed, statements)


@st.composite
def kernels(draw: Any, most_statements: int = 8) -> WorkgroupKernel:
    """A strategy for kernels."""
    count = draw(st.integers(1, most_statements))
    return _kernel(_Drawn(draw), draw(st.integers(0, 1000)), count)


def _kernel(choices: Choices, seed: int, statements: int) -> WorkgroupKernel:
    grid = choices.pick(((1, 1), (2, 1), (1, 2), (2, 2)))
    writer = Writer(choices, grid, choices.pick((1, 2, 4, 6, 8)), seed)
    writer.load(writer.input(writer.shape(), writer.pick(("f32", "f16", "i32"))))
    for _ in range(statements):
        choices.pick(SIMPLE + COMPOUND)(writer)
    for value in writer.values[-3:]:
        _keep(writer, value)
    return WorkgroupKernel(_module(writer), grid, writer.arrays, writer.subgroups)


def _keep(writer: Writer, value: Any) -> None:
    """Store a value, that it cannot be left out."""
    writer.store(value, writer.output(value.shape, value.element))


def _module(writer: Writer) -> str:
    lines = [
        "builtin.module {",
        "  gpu.module @kernels {",
        f"    gpu.func @kernel({', '.join(writer.arguments)}) kernel "
        'attributes {xetile.level = "workgroup"} {',
        "      %px = gpu.block_id x",
        "      %py = gpu.block_id y",
        *("      " + line for line in writer.shared),
        *writer.lines,
        "      gpu.return",
        "    }",
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"
