"""What a compiled kernel depends on, as one number: the key of the caches.

It covers the source of the kernel, the signature with its compile-time values, our own
code, what the backend adds (versions and processor), and everything that the kernel
read of the Python around it while it was compiled (`xetl.language.reads`). What will be
read is not known before, so code is looked up in two steps: under the key of the rest,
the `base`, are the questions that earlier compilations asked; with today's answers
they are the key of the code.

In a checkout that is edited, our version says nothing about our code. Names, sizes
and times of the files do, at 5 us a file; their contents would take ten times as long.
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

_INSTALLED = ("site-packages", "dist-packages")


@cache
def stamp(package: str) -> str:
    """A text that changes with the code of the imported ``package``.

    Taken once in a process, which goes on with the code it has.
    """
    module = sys.modules.get(package)
    file = getattr(module, "__file__", None)
    if file is None or not hasattr(module, "__path__"):
        return package  # no package: made by hand, as tests do
    folder = os.path.dirname(file)
    if os.path.basename(os.path.dirname(folder)) in _INSTALLED:
        # The version tells; the time tells two installations of one version apart.
        return f"{package} {os.stat(file).st_mtime_ns}"
    return f"{package} {stamp_of_folder(folder)}"


def stamp_of_folder(folder: str) -> str:
    """As `stamp`, of all Python files below ``folder``."""
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
                with suppress(FileNotFoundError):  # an editor's, gone by now
                    status = entry.stat()
                    found.append((name, status.st_size, status.st_mtime_ns))
            elif entry.name != "__pycache__" and entry.is_dir():
                found += _files(entry.path, f"{name}/")
    return found


_FORMAT = "3"
"""Changed whenever the same key would mean something else."""


@record(frozen=True)
class Base:
    """What is known before a kernel is compiled.

    Attributes:
        constants: its compile-time arguments.
        versions: our own code, and what the backend adds.
        params: a text for each parameter.
    """

    function: Callable[..., Any]
    constants: dict[str, object]
    versions: dict[str, str]
    params: dict[str, str]

    @cached_property
    def digest(self) -> str:
        """All of it as a number."""
        parts = repr((*self.versions.items(), *self.params.items()))
        own = content(self.function)
        return hashlib.sha256(f"{parts}\n{own}".encode()).hexdigest()

    def answered(self, questions: list[Question]) -> Fingerprint | None:
        """The key with today's answers; None where there is none to a question."""
        try:
            reads = Reads(self.function, self.constants, questions)
        except Exception:  # objects of a user are looked at
            return None
        return Fingerprint(self, reads)


@record(frozen=True)
class Fingerprint:
    """What identifies the code of a kernel.

    Attributes:
        base: what was known before.
    """

    base: Base
    reads: Reads

    @cached_property
    def digest(self) -> str:
        """The key, in hexadecimal."""
        return self.reads.digest(self.base.digest)

    @property
    def facts(self) -> dict[str, dict[str, str]]:
        """What went into it, by kind and name, for `xetl.runtime.executables`."""
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
    """What the code of ``fn`` compiled for ``signature`` and ``target`` depends on."""
    params = {p.name: _param(p) for p in signature.params}
    params |= {each.name: f"tuple {each}" for each in signature.tuples}
    return Base(fn, signature.constants, _versions(backend, target), params)


def _versions(backend: BackendBase, target: str) -> dict[str, str]:
    """Our own code, and what the backend adds."""
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
    """The text that XETL_OVERRIDE puts in place of a kernel's IR."""
    if config.override is None:
        return {}
    stage, file = config.override
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:  # compiling says so
        digest = ""
    return {"override": f"{stage} {digest}"}


def text_digest(
    text: str, kernel: str, options: object, backend: BackendBase, target: str
) -> str:
    """The key of a kernel of a text; ``options``: what else its code depends on.

    The whole text counts: errors of a launch say the line.
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
    """A text to show to people; of a long one, what tells it apart."""
    first = text.partition("\n")[0]
    if text == first and len(text) <= 60:
        return text
    return f"{first[:40].strip()}... {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
