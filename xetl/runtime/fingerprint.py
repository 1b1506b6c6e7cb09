"""The cache key of a compiled kernel: a digest of everything that its code depends on.

The key covers the source of the kernel, the signature with its compile-time values, the
code of xetl, versions and processor (from the backend), and all Python values that the
kernel read while it was compiled (`xetl.language.reads`). These reads are not known
before, so the lookup has two steps. The digest of all other parts, the `Base`, leads to
the questions (reads) of earlier compilations. The questions with their current answers
then give the key of the code.

In an edited checkout the version of xetl does not change with its code. So names, sizes
and times of the files count, at 5 us a file; contents would take ten times as long.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from typing import Any

import xetl
from xetl.backend import BackendBase
from xetl.frames import is_debugged
from xetl.language.contents import content
from xetl.language.reads import Question, Reads
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl.records import record
from xetl.settings import config


@cache
def stamp(package: str) -> str:
    """Return a text that changes with the code of the imported ``package``.

    It is computed once, since a process keeps the code that it has imported.
    """
    module = sys.modules.get(package)
    file = getattr(module, "__file__", None)
    if file is None or not hasattr(module, "__path__"):
        return package  # a module that was not imported from files, as in tests
    folder = os.path.dirname(file)
    if os.path.basename(os.path.dirname(folder)) in ("site-packages", "dist-packages"):
        # The version is known otherwise; the time tells installations of it apart.
        return f"{package} {os.stat(file).st_mtime_ns}"
    return f"{package} {stamp_of_folder(folder)}"


def stamp_of_folder(folder: str) -> str:
    """Return a digest of names, sizes and times of all Python files in a folder."""
    digest = hashlib.sha256()
    for path, size, time in sorted(_files(folder, "")):
        digest.update(f"{path} {size} {time}\n".encode())
    return digest.hexdigest()[:16]


def _files(folder: str, prefix: str) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            if entry.name.endswith(".py"):
                with suppress(FileNotFoundError):  # a temporary file of an editor
                    status = entry.stat()
                    found.append((name, status.st_size, status.st_mtime_ns))
            elif entry.name != "__pycache__" and entry.is_dir():
                found += _files(entry.path, f"{name}/")
    return found


_FORMAT = "3"
"""It is increased whenever the meaning of a key changes."""


@record(frozen=True)
class Base:
    """The dependencies of the code that are known before a kernel is compiled.

    Attributes:
        constants: its compile-time arguments.
        versions: versions of xetl, of the backend and of the machine, by name.
        params: a text for each parameter.
    """

    function: Callable[..., Any]
    constants: dict[str, object]
    versions: dict[str, str]
    params: dict[str, str]

    @cached_property
    def digest(self) -> str:
        """The digest of all of it, in hexadecimal."""
        parts = repr((*self.versions.items(), *self.params.items()))
        own = content(self.function)
        return hashlib.sha256(f"{parts}\n{own}".encode()).hexdigest()

    def answered(self, questions: list[Question]) -> Fingerprint | None:
        """Return the key with the current answers; None if a question has no answer."""
        try:
            reads = Reads(self.function, self.constants, questions)
        except Exception:  # reading a user's objects may raise anything
            return None
        return Fingerprint(self, reads)


@record(frozen=True)
class Fingerprint:
    """The identity of the code of a kernel: its base, and what the kernel read."""

    base: Base
    reads: Reads

    @cached_property
    def digest(self) -> str:
        """The key, in hexadecimal."""
        return self.reads.digest(self.base.digest)

    @property
    def facts(self) -> dict[str, dict[str, str]]:
        """All dependencies by kind and name, for `xetl.runtime.executables.changes`."""
        functions = self.reads.functions()
        values = self.reads.values()
        return {
            "versions": self.base.versions,
            "params": {name: _short(text) for name, text in self.base.params.items()},
            "sources": {fn.__qualname__: _digest(content(fn)) for fn in functions},
            "captured": {name: _short(text) for name, text in values.items()},
        }

    @property
    def positions(self) -> str:
        """A text that changes when a function moves within its file."""
        codes = [fn.__code__ for fn in self.reads.functions()]
        return _digest(repr([(c.co_filename, c.co_firstlineno) for c in codes]))


def base_of(
    fn: Callable[..., Any], signature: Signature, backend: BackendBase, target: str
) -> Base:
    """Return the base of the code of ``fn`` for a signature and a target."""
    params = {p.name: _param(p) for p in signature.params}
    params |= {each.name: f"tuple {each}" for each in signature.tuples}
    return Base(fn, signature.constants, _versions(backend, target), params)


def _versions(backend: BackendBase, target: str) -> dict[str, str]:
    """Return the versions of xetl, of the backend and of the machine, by name."""
    owner = type(backend).__module__.partition(".")[0]
    is_stepped = backend.stops_at_breakpoints and is_debugged()
    return {
        "format": _FORMAT,
        "version": xetl.__version__,
        "code": f"{stamp('xetl')} {stamp(owner)}",
        "backend": backend.name,
        "machine": backend.cache_key(target),
        "target": target,
        **_override(),
        **({"stepped": "yes"} if is_stepped else {}),
    }


def _override() -> dict[str, str]:
    """Return a digest of the text that XETL_OVERRIDE puts in place of the IR."""
    if config.override is None:
        return {}
    stage, file = config.override
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:  # the compiler reports it
        digest = ""
    return {"override": f"{stage} {digest}"}


def text_digest(
    text: str, kernel: str, options: object, backend: BackendBase, target: str
) -> str:
    """Return the key of a text kernel; its code depends on ``options``, too.

    The whole text counts, because errors of a launch name lines of it.
    """
    parts = (*_versions(backend, target).items(), kernel, options)
    digest = hashlib.sha256(repr(parts).encode())
    digest.update(text.encode())
    return f"text-{digest.hexdigest()}"


def _param(param: ArrayParam | ScalarParam | ConstParam) -> str:
    match param:
        case ConstParam():
            return f"constexpr {content(param.value)}"
        case ScalarParam():
            return param.kind
        case ArrayParam():
            layout = f"unit_dim={param.unit_dim} alias={param.alias}"
            return f"array dtype={param.dtype.name} rank={param.rank} {layout}"


def _short(text: str) -> str:
    """Return a text to show to users; a long one is cut, and a digest is added."""
    first = text.partition("\n")[0]
    if text == first and len(text) <= 60:
        return text
    return f"{first[:40].strip()}... {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
