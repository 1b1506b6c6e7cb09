"""From a specialisation to something that runs: memory, then disk, then compiler."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, cast

from xetl.backend import Artifact, Backend, Executable, find_backend
from xetl.errors import LaunchError, did_you_mean
from xetl.runtime.cache import disk_cache
from xetl.runtime.config import config
from xetl.runtime.fingerprint import fingerprint
from xetl.runtime.specialize import Specialization

DEFAULT_BACKEND = "cpu"
INTERPRETER = "reference"
_MOST_KEYS = 4096


class Loaded:
    """An executable with what the runtime must know about it."""

    def __init__(
        self, executable: Executable, artifact: Artifact, backend: Backend
    ) -> None:
        self.executable = executable
        self.stored = artifact.stored
        self.meta = artifact.meta
        self.backend = backend


class Executables:
    """All executables of one kernel; several threads may ask at once."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        self._lock = Lock()
        self._by_key: dict[Hashable, Loaded] = {}
        # A lambda made anew for each call is another key, but the same source.
        self._by_fingerprint: dict[str, Loaded] = {}

    def get(self, wanted: Specialization, backend: Backend, target: str) -> Loaded:
        """Find or make the executable for ``wanted``."""
        key = (backend.name, target, wanted.key)
        found = self._by_key.get(key)
        if found is not None:
            return found
        with self._lock:
            found = self._by_key.get(key)
            if found is None:
                found = self._find(wanted, backend, target)
                if len(self._by_key) >= _MOST_KEYS:
                    self._by_key.clear()
                self._by_key[key] = found
        return found

    def _find(self, wanted: Specialization, backend: Backend, target: str) -> Loaded:
        digest = fingerprint(self._fn, wanted.signature, backend, target)
        if digest in self._by_fingerprint:
            return self._by_fingerprint[digest]
        cache = disk_cache() if backend.cacheable else None
        artifact = None if cache is None else cache.load(digest)
        if artifact is None:
            artifact = self._compile(wanted, backend, target)
            if cache is not None:
                cache.store(digest, artifact)
        executable = backend.load(artifact, wanted.signature)
        loaded = Loaded(executable, artifact, backend)
        self._by_fingerprint[digest] = loaded
        return loaded

    def _compile(
        self, wanted: Specialization, backend: Backend, target: str
    ) -> Artifact:
        if config.compiling_forbidden:
            raise LaunchError(
                f"`{self._fn.__name__}` would have to be compiled, "
                "which `xetl.no_compile()` forbids",
                code="X0815",
                help="call `warmup` with these arguments first",
            )
        return compiler().compile_kernel(self._fn, wanted.signature, backend, target)


def compiler() -> Any:
    """The compiler; the first use loads xDSL and all passes."""
    return importlib.import_module("xetl.compiler")


def choose_backend(name: object = None) -> Backend:
    """The backend of a launch whose ``backend=`` is ``name``."""
    if config.interpret:
        return find_backend(INTERPRETER)
    if name is None:
        return find_backend(config.backend or DEFAULT_BACKEND)
    if not isinstance(name, str):
        raise LaunchError(
            f"`backend=` is a {type(name).__name__}, but must be a name", code="X0810"
        )
    return find_backend(name)


def choose_target(backend: Backend, name: object = None) -> str:
    """The machine to compile for when ``target=`` is ``name``.

    Raises:
        LaunchError: the backend has no such target.
    """
    forced = config.target
    # A backend with one target, such as the interpreter, leaves no choice.
    if name is None and (forced is None or len(backend.targets) == 1):
        return backend.default_target()
    wanted = forced if name is None else name
    if wanted in backend.targets:
        return cast("str", wanted)
    listed = ", ".join(f"`{each}`" for each in backend.targets)
    raise LaunchError(
        f"backend `{backend.name}` has no target `{wanted}`",
        code="X0811",
        help=did_you_mean(str(wanted), backend.targets) or f"its targets are {listed}",
    )
