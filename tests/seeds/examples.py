"""The documents' kernels: what each is launched with, and what it has to leave.

`EXAMPLES` holds every kernel of the files named after sections of the documents
(README.md); tests run them, and send them through passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xetl.dialects.launch_form import launch_form
from xetl.dialects.text import functions_of, read_module
from xetl.transforms.legalize_text import LegalizeTextPass

HERE = Path(__file__).parent
STATED = "4096"
"""The extent of all matrices in appendix 2, and how it is found in its texts."""


@dataclass(frozen=True)
class Run:
    """Arguments of a launch, and what it leaves in some of them, in float64."""

    arguments: Sequence[Any]
    left: Sequence[tuple[Any, Any]]

    def truth(self) -> list[Any]:
        """One entry an argument: what it holds in the end, None if not compared."""
        truths = {id(array): expected for array, expected in self.left}
        return [truths.get(id(argument)) for argument in self.arguments]


@dataclass(frozen=True)
class Example:
    """A kernel of a document.

    Attributes:
        file: which text, without `.mlir`.
        kernel: its name there.
        make: makes arguments and truth, of the extent if there is one.
        extent: what stands for 4096 in a run.
        edits: replaced in the text, to run a variant of it.
        variant: what the edits make of it.
    """

    file: str
    kernel: str
    make: Callable[..., Run]
    extent: int | None = None
    edits: tuple[tuple[str, str], ...] = ()
    variant: str = ""

    @property
    def name(self) -> str:
        return "-".join(filter(None, (self.file, self.kernel, self.variant)))

    def run(self) -> Run:
        """Arguments and truth, made anew."""
        return self.make() if self.extent is None else self.make(self.extent)

    def text(self) -> str:
        """The file at the extent of the run, with the edits made."""
        text = (HERE / f"{self.file}.mlir").read_text("utf-8")
        for old, new in self.edits:
            assert old in text, old
            text = text.replace(old, new)
        if self.extent is not None:
            assert STATED in text
            text = text.replace(f"%c{STATED}", "%extent")  # %c512 may exist
            text = text.replace(STATED, str(self.extent))
        return text

    def module(self) -> ModuleOp:
        """This kernel alone, as it is launched."""
        found = {each.sym_name.data: each for each in functions_of(self.parsed())}
        function = found[self.kernel]
        arguments = function.body.block.args
        names = [each.name_hint or "" for each in arguments]
        module = launch_form(function, [], names, [-1] * len(names), (1, 1, 1))
        LegalizeTextPass().apply(Context(), module)
        return module

    def parsed(self) -> ModuleOp:
        """The text as a module."""
        return read_module(self.text())


EXAMPLES: list[Example] = []


def example(
    file: str, extent: int | None = None, edits: tuple[tuple[str, str], ...] = ()
) -> Callable[[Callable[..., Run]], Callable[..., Run]]:
    """The decorated function of the kernel's name makes its run, of an extent if any.

    With edits it runs a variant, and is called ``kernel__variant``.
    """

    def register(make: Callable[..., Run]) -> Callable[..., Run]:
        kernel, _, variant = make.__name__.partition("__")
        EXAMPLES.append(Example(file, kernel, make, extent, edits, variant))
        return make

    return register


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    """Small integers: their sums and products are exact in f32, however ordered."""
    rng = np.random.default_rng((seed, *shape))
    return rng.integers(-4, 5, shape).astype(dtype)


def bf16(*shape: int, seed: int = 0) -> Any:
    return numbers(*shape, dtype=ml_dtypes.bfloat16, seed=seed)


def f16(*shape: int, seed: int = 0) -> Any:
    return numbers(*shape, dtype=np.float16, seed=seed)


def wide(array: Any) -> Any:
    """In float64, where the truth is computed."""
    return array.astype(np.float64)


def unset(like: Any, *shape: int) -> Any:
    """An array for results; 9 is in none of them."""
    return np.full(shape or like.shape, 9, like.dtype)


def copies(source: Any, expected: Any, *others: Any) -> Run:
    """A run of a kernel that takes a source, numbers, and an array for the result."""
    out = unset(source, *expected.shape)
    return Run([source, *others, out], [(out, wide(expected))])
