"""From a specialisation to something that runs: memory, then disk, then compiler."""

from __future__ import annotations

import hashlib
import importlib
import warnings
from collections.abc import Callable, Hashable
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple, cast

from xetl.backend import Artifact, Backend, Executable, Place
from xetl.errors import LaunchError, TileMapWarning, did_you_mean
from xetl.language.signature import Signature
from xetl.runtime.cache import DiskCache, disk_cache
from xetl.runtime.captured import unchanged_check
from xetl.runtime.changes import Facts, changes
from xetl.runtime.config import config
from xetl.runtime.fingerprint import Fingerprint, fingerprint
from xetl.runtime.specialize import Specialization

_MOST_KEYS = 4096


class Loaded:
    """The code of a kernel, and what the runtime must know about it."""

    def __init__(
        self, artifact: Artifact, backend: Backend, signature: Signature
    ) -> None:
        self.artifact = artifact
        self.stored = artifact.stored
        self.meta = artifact.meta
        self.backend = backend
        self._signature = signature
        for line, text, file in artifact.meta.get("warnings", ()):
            warnings.warn_explicit(text, TileMapWarning, file or "<text>", line or 1)

    @cached_property
    def executable(self) -> Executable:
        """The code, runnable; made late, since `warmup` needs no device."""
        return self.backend.load(self.artifact, self._signature)


class Found(NamedTuple):
    """An answer of `Executables`.

    Attributes:
        loaded: the code.
        unchanged: says whether the captured globals are still what they were; None:
            there are none.
        positions: see `xetl.runtime.fingerprint.Fingerprint`.
    """

    loaded: Loaded
    unchanged: Callable[[], bool] | None
    positions: str

    def holds(self) -> bool:
        """Whether it is the answer to the same question now."""
        return self.unchanged is None or self.unchanged()


class Executables:
    """All executables of one kernel; several threads may ask at once."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        self._lock = Lock()
        self._by_key: dict[Hashable, Found] = {}
        # A lambda made anew for each call is another key, but the same source.
        self._by_digest: dict[str, Loaded] = {}
        self._compiles = Compiles(fn)

    def get(self, wanted: Specialization, backend: Backend, target: str) -> Found:
        """Find or make the code for ``wanted``."""
        key = (backend.name, target, config.prefetch, wanted.key)
        found = self._by_key.get(key)
        if found is not None and found.holds():
            return found
        with self._lock:
            found = self._by_key.get(key)
            if found is None or not found.holds():
                found = self._find(wanted, backend, target)
                if len(self._by_key) >= _MOST_KEYS:
                    self._by_key.clear()
                self._by_key[key] = found
        return found

    def compile(
        self, wanted: Specialization, backend: Backend, target: str
    ) -> Artifact:
        """Compile anew, whatever there is."""
        if config.compiling_forbidden:
            raise LaunchError(
                f"`{self._fn.__name__}` would have to be compiled, "
                "which `xetl.no_compile()` forbids",
                code="X0815",
                help="call `warmup` with these arguments first",
            )
        return compiler().compile_kernel(self._fn, wanted.signature, backend, target)

    def why_compiled(self) -> str:
        """What was different at the last compile from the one before."""
        return self._compiles.why()

    def _find(self, wanted: Specialization, backend: Backend, target: str) -> Found:
        while True:
            asked = fingerprint(self._fn, wanted.signature, backend, target)
            unchanged = unchanged_check(asked.captured)
            loaded = self._existing(asked, wanted, backend)
            new = None
            if loaded is None:
                new = self.compile(wanted, backend, target)
                positions = {"positions": asked.positions}
                new = Artifact(new.payload, {**new.meta, **positions})
                loaded = Loaded(new, backend, wanted.signature)
            if unchanged is not None and not unchanged():
                continue  # while we compiled: which values were used is unknown
            if new is not None:
                self._keep(asked, new, backend)
            self._by_digest[asked.digest] = loaded
            return Found(loaded, unchanged, asked.positions)

    def _existing(
        self, asked: Fingerprint, wanted: Specialization, backend: Backend
    ) -> Loaded | None:
        """From memory or disk."""
        if asked.digest in self._by_digest:
            return self._by_digest[asked.digest]
        cache = disk_cache() if backend.cacheable and not config.dump else None
        artifact = None if cache is None else cache.load(asked.digest)
        if artifact is None:
            return None
        return Loaded(artifact, backend, wanted.signature)

    def _keep(self, asked: Fingerprint, new: Artifact, backend: Backend) -> None:
        """Remember what was compiled."""
        cache = disk_cache() if backend.cacheable else None
        self._compiles.add(asked.facts, cache)
        if cache is not None:
            cache.store(asked.digest, new)


class Compiles:
    """The last two compiles of a kernel, also of earlier processes."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        code = fn.__code__
        self._name = fn.__name__
        owner = f"{code.co_filename} {fn.__module__}.{fn.__qualname__}"
        self._key = "last-" + hashlib.sha256(owner.encode()).hexdigest()
        self._before: Facts | None = None
        self._last: Facts | None = None

    def add(self, facts: Facts, cache: DiskCache | None) -> None:
        """Note that code was made for ``facts``."""
        self._before, self._last = self._last, facts
        if cache is None:
            return
        if self._before is None:
            kept = cache.load(self._key)
            self._before = None if kept is None else kept.meta["facts"]
        cache.store(self._key, Artifact(b"", {"facts": facts}))

    def why(self) -> str:
        """A line for each reason of the last compile."""
        name = self._name
        if self._last is None:
            return f"`{name}` has not been compiled in this process"
        if self._before is None:
            return f"`{name}` was compiled because it had not been compiled before"
        lines = changes(self._before, self._last)
        if not lines:
            lines = ["nothing changed: its code was not in the cache"]
        return f"`{name}` was compiled because:\n  " + "\n  ".join(lines)


def compiler() -> Any:
    """The compiler; the first use loads xDSL and all passes."""
    return importlib.import_module("xetl.compiler")


def choose_target(backend: Backend, name: object = None) -> str:
    """The machine to compile for when ``target=`` is ``name``.

    Raises:
        LaunchError: the backend has no such target.
    """
    forced = config.target
    # A backend with one target, such as the interpreter, leaves no choice.
    if name is None and (forced is None or len(backend.targets) == 1):
        return _variant(backend, backend.default_target())
    wanted = forced if name is None else name
    if wanted in backend.targets:
        return _variant(backend, cast("str", wanted))
    listed = ", ".join(f"`{each}`" for each in backend.targets)
    raise LaunchError(
        f"backend `{backend.name}` has no target `{wanted}`",
        code="X0811",
        help=did_you_mean(str(wanted), backend.targets) or f"its targets are {listed}",
    )


def target_at(backend: Backend, place: Place | None) -> str:
    """The machine to compile a launch at ``place`` for."""
    if place is None or config.target is not None:
        return choose_target(backend)
    return choose_target(backend, place.target)


def _variant(backend: Backend, target: str) -> str:
    vary: Callable[[str], str] | None = getattr(backend, "variant", None)
    return target if vary is None else vary(target)
