"""A backend without machine code: it writes down what it is asked to do."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from xetl import backend as backends
from xetl.backend import Artifact, BackendBase, Executable
from xetl.language.operation import Function
from xetl.language.reads import Reads
from xetl.language.signature import ConstParam, Signature
from xetl.runtime import executables, placement


def read_names(reads: Reads, function: Any) -> None:
    """Read every name of a function, and of the functions that are found there."""
    code = getattr(getattr(function, "fn", function), "__code__", None)
    for name in (*code.co_freevars, *code.co_names) if code else ():
        try:
            found = reads.name(function, name)
        except KeyError:  # an attribute
            continue
        if isinstance(found, FunctionType | Function) and found is not function:
            read_names(reads, found)


class FakeExecutable(Executable):
    def __init__(self, backend: FakeBackend, signature: Signature) -> None:
        self.backend = backend
        self.signature = signature

    @property
    def fast(self) -> Any:
        return self._fast if self.backend.with_fast else None

    def launch(self, grid: tuple[int, int, int], args: Any) -> None:
        self.backend.launches.append((grid, list(args), self.signature))

    def _fast(self, gx: int, gy: int, gz: int, *objects: object) -> int:
        for value, param in zip(objects, self.signature.params):
            if isinstance(param, ConstParam) and value is not param.value:
                return 1
        missing = self.signature.params[len(objects) :]
        assert all(isinstance(param, ConstParam) for param in missing)
        if not self.backend.accepts(objects):
            return 1
        self.backend.fast_launches.append(((gx, gy, gz), objects))
        return 0


class FakeBackend(BackendBase):
    targets = ("host", "avx2")
    stages = ("llvm", "asm")
    cacheable = False
    with_fast = False

    def __init__(self, name: str = "cpu") -> None:
        self.name = name
        self.stored: list[int] = []
        self.launches: list[Any] = []
        self.fast_launches: list[Any] = []
        self.compiled: list[tuple[str, Signature, str]] = []
        self.accepts = lambda objects: True

    def cache_key(self, target: str) -> str:
        return f"fake {target}"

    def load(self, artifact: Artifact, signature: Signature) -> FakeExecutable:
        return FakeExecutable(self, signature)

    # The compiler is faked, too.
    def compile_kernel(
        self,
        fn: Any,
        signature: Signature,
        backend: FakeBackend,
        target: str,
        reads: Reads | None = None,
    ) -> Artifact:
        backend.compiled.append((fn.__name__, signature, target))
        if reads is not None:
            for each in (fn, *filter(callable, signature.constants.values())):
                read_names(reads, each)
        return Artifact(b"code", {"stored": backend.stored})

    def build(self, fn: Any, *_: Any) -> Any:
        return fn

    def ir_at_stage(
        self, fn: Any, signature: Signature, backend: Any, target: str, stage: str
    ) -> str:
        return f"{fn.__name__} at {stage} for {target}"

    def has_stage(self, stage: str, backend: Any) -> bool:
        return backend is self


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBackend:
    """Stands for `cpu`; a second one for `reference`."""
    for variable in ("XETL_BACKEND", "XETL_TARGET", "XETL_INTERPRET", "XETL_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XETL_CACHE_DIR", str(tmp_path / "cache"))
    cpu, reference = FakeBackend("cpu"), FakeBackend("reference")
    known = {"cpu": cpu, "reference": reference}
    cpu.reference = reference

    def find(name: str) -> Any:
        return known[name] if name in known else backends.find_backend(name)

    monkeypatch.setattr(placement, "find_backend", find)
    monkeypatch.setattr(executables, "compiler", lambda: cpu)
    monkeypatch.setattr("xetl.runtime.kernel.compiler", lambda: cpu)
    return cpu
