"""Kernels of all kinds: what the tests compile, random ones, and modules of text."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

import xetl
from tests.campaign.cases import of_seed
from tests.campaign.check import check
from xetl import compiler
from xetl.backend import BackendBase
from xetl.errors import XetlError
from xetl.language.signature import Signature
from xetl.runtime.text_kernel import TextKernel

TESTS = Path(__file__).parents[1]
TEXTS = [*TESTS.glob("conformance/*.mlir"), *TESTS.glob("seeds/*.mlir")]
OF_TESTS = [
    *TESTS.glob("backends/cpu/test_kernels_*.py"),
    *TESTS.glob("frontend/test_page_*.py"),
    *TESTS.glob("ops/test_*.py"),
    TESTS / "seeds/test_python_gemms.py",
]
SEEDS = range(200)
QUICK_SEEDS = range(40)

Build = Callable[[BackendBase, str], ModuleOp]


@dataclass(frozen=True)
class Entry:
    """A kernel with the types of its arguments, to be lowered for any target."""

    name: str
    signature: Signature
    build: Build


class Recorder:
    """Takes down what the compiler is given while other code runs."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    @contextlib.contextmanager
    def recording(self) -> Generator[None]:
        compile_kernel = compiler.compile_kernel

        def recorded(function: Any, signature: Signature, *others: Any) -> Any:
            self.add(function, signature)
            return compile_kernel(function, signature, *others)

        compiler.compile_kernel = recorded
        try:
            yield
        finally:
            compiler.compile_kernel = compile_kernel

    def add(self, function: Any, signature: Signature) -> None:
        where = f"{function.__module__}.{function.__qualname__}"
        what = f"{where} {signature!r}"
        build = partial(built, function, signature)
        self.entries.setdefault(what, Entry(what, signature, build))


def built(
    function: Any, signature: Signature, backend: BackendBase, target: str
) -> ModuleOp:
    return compiler.build(function, signature, backend, target)


def module_of(kernel: TextKernel, _backend: BackendBase, _target: str) -> ModuleOp:
    return kernel.for_any_arguments()[0]


def of_tests() -> list[Entry]:
    """What some tests of kernels compile on the host, one case of each."""
    recorder = Recorder()
    options = ["-q", "-p", "no:cacheprovider", "--targets=host", "--one-of-each"]
    with recorder.recording(), contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*options, *map(str, sorted(OF_TESTS))])
    return list(recorder.entries.values())


def of_seeds(seeds: range) -> list[Entry]:
    """What the campaign writes."""
    recorder = Recorder()
    with recorder.recording():
        for seed in seeds:
            check(of_seed(seed))
    return list(recorder.entries.values())


def of_texts() -> Iterator[Entry]:
    """Each kernel of each module that a launch could run."""
    for path in sorted(TEXTS):
        try:
            library = xetl.load_mlir(path.read_text("utf-8"))
        except XetlError:
            continue
        for name in sorted(library):
            try:
                _, signature = library[name].for_any_arguments()
            except XetlError:
                continue
            build = partial(module_of, library[name])
            yield Entry(f"{path.parent.name}/{path.name} {name}", signature, build)


def corpus(*, quick: bool) -> list[Entry]:
    """All entries; of quick ones the modules of text and a few random kernels."""
    if quick:
        return [*of_texts(), *of_seeds(QUICK_SEEDS)]
    return [*of_texts(), *of_seeds(SEEDS), *of_tests()]
