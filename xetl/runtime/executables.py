"""Find the executable for a specialisation: in memory, on disk, or by compiling.

`changes` describes what is different from the previous compilation.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from operator import is_
from typing import Any, NamedTuple, TypeAlias, cast

from xetl.backend import (
    Artifact,
    BackendBase,
    Executable,
    Place,
    QueuedExecutable,
    other_backends,
)
from xetl.errors import (
    LaunchError,
    SettingWarning,
    TileMapWarning,
    did_you_mean,
    suggest,
)
from xetl.frames import is_debugged
from xetl.imports import collecting_rarely, import_whole
from xetl.language.contents import content, is_opaque
from xetl.language.reads import Captured, Question, Reads
from xetl.locks import ForkSafeLock
from xetl.runtime.cache import DiskCache, disk_cache
from xetl.runtime.call_site import warn_at_caller
from xetl.runtime.fingerprint import Base, Fingerprint, base_of
from xetl.runtime.specialize import Specialization
from xetl.settings import config, misspelt_variables

Facts: TypeAlias = Mapping[str, Mapping[str, str]]
"""See `xetl.runtime.fingerprint.Fingerprint.facts`."""

_VERSIONS = {
    "format": "the form of the cache",
    "version": "the version of xetl",
    "code": "the code of xetl or of the backend",
    "backend": "the backend",
    "machine": "the processor, or the version of LLVM or of the backend",
    "target": "the target",
}
_HIDDEN = ("code", "machine", "format")
"""Entries that are digests: a report says that they changed, but not their values."""

_PARTS = {"unit_dim": "layout", "alias": "sharing of memory"}


def changes(before: Facts, now: Facts) -> list[str]:
    """Return a line for each difference."""
    found: list[str] = []
    if before["versions"].get("target") != now["versions"]["target"]:
        # The description of the machine contains the target, too.
        now = {**now, "versions": {**now["versions"], "machine": ""}}
        before = {**before, "versions": {**before["versions"], "machine": ""}}
    for kind, describe in _KINDS.items():
        old, new = before.get(kind, {}), now.get(kind, {})
        for name in dict.fromkeys([*new, *old]):
            if old.get(name) != new.get(name):
                found.append(describe(name, old.get(name), new.get(name)))
    return found


def _version(name: str, old: str | None, new: str | None) -> str:
    what = _VERSIONS.get(name, name)
    return f"{what} changed" + ("" if name in _HIDDEN else f": {old} -> {new}")


def _source(name: str, old: str | None, new: str | None) -> str:
    short = name.rpartition("<locals>.")[2]
    if old is None:
        return f"the function `{short}` is used now"
    if new is None:
        return f"the function `{short}` is not used any more"
    return f"the source of `{short}` changed"


def _captured(name: str, old: str | None, new: str | None) -> str:
    return f"the captured value `{name}` changed: {_plain(old)} -> {_plain(new)}"


def _param(name: str, old: str | None, new: str | None) -> str:
    if old is None or new is None:
        return f"the parameter `{name}` is {'new' if old is None else 'gone'}"
    before, now = _fields(old), _fields(new)
    if not (before and now):
        return f"`{name}` changed: {_plain(old)} -> {_plain(new)}"
    parts = [
        f"{_PARTS.get(part, part)} {_part(part, before[part])} -> "
        f"{_part(part, now[part])}"
        for part in before
        # Positions of the stride-1 dimension of different ranks cannot be compared.
        if before[part] != now[part]
        and not (part == "unit_dim" and before["rank"] != now["rank"])
    ]
    return f"`{name}` changed: {', '.join(parts)}"


def _fields(text: str) -> dict[str, str]:
    """Return the parts of the description of an array; {} for other values."""
    kind, *parts = text.split(" ")
    return dict(part.split("=") for part in parts) if kind == "array" else {}


def _part(part: str, value: str) -> str:
    if part != "unit_dim":
        return value
    return "without a stride of 1" if value == "None" else f"stride 1 in dim {value}"


def _plain(text: str | None) -> str:
    """Return a value as a user would write it."""
    if text is None:
        return "nothing"
    text = text.removeprefix("constexpr ")
    fields = _fields(text)
    if fields:
        return f"an array of {fields['dtype']}, rank {fields['rank']}"
    kind, _, rest = text.partition(" ")
    kinds = ("int", "float", "bool", "str", "DType", "NoneType", "complex")
    return rest if kind in kinds else text


_KINDS = {
    "versions": _version,
    "params": _param,
    "captured": _captured,
    "sources": _source,
}


_LITERALS = (int, str)


def unchanged_check(captured: Sequence[Captured]) -> Callable[[], bool] | None:
    """Return a test whether captured values are unchanged; None if there are none."""
    seen: dict[tuple[object, ...], Captured] = {}
    for each in captured:
        key = each.key if type(each.key) in _LITERALS else id(each.key)
        seen.setdefault((id(each.owner), each.test, type(each.key), key), each)
    if not seen:
        return None
    scope: dict[str, Any] = {}
    tests: list[str] = []
    for index, each in enumerate(seen.values()):
        key = f"k{index}"
        scope[f"o{index}"], scope[f"v{index}"] = each.owner, each.value
        if type(each.key) in _LITERALS:
            key = repr(each.key)
        elif "{k}" in each.test:
            scope[key] = each.key
        tests.append(each.test.format(o=f"o{index}", v=f"v{index}", k=key))
    # Objects in defaults are local variables, the fastest to read.
    parameters = ", ".join(f"{name}={name}" for name in scope)
    scope |= {"content": content, "is_": is_}
    exec(_CHECK.format(parameters, " and ".join(tests)), scope)
    return scope["unchanged"]


_CHECK = """
def unchanged({}):
    try:
        return {}
    except Exception:  # it is gone; attributes of a user's classes may do anything
        return False
"""


WOULD_COMPILE = "X0815"
"""The error of a launch that `xetl.no_compile` forbids."""

_MOST_KEYS = 4096
_MOST_QUESTIONS = 16
"""Sequences of questions kept for one base: answers decide which questions follow."""

_MOST_TRIES = 8


@cache
def _warn_of_settings() -> None:
    """Warn of environment variables that look like misspelt settings, only once."""
    for name, meant in misspelt_variables().items():
        if meant is not None:
            text = f"the variable {name} is no setting of xetl: {meant}"
            warn_at_caller(text, SettingWarning)


class Loaded:
    """The code of a kernel, and the facts about it that the runtime needs."""

    def __init__(
        self,
        artifact: Artifact,
        backend: BackendBase,
        wanted: Specialization,
        find: Callable[[Specialization, BackendBase, str], Loaded],
    ) -> None:
        self.artifact = artifact
        self.stored = artifact.stored
        self.meta = artifact.meta
        self.backend = backend
        self._wanted = replace(wanted, args=(), values=())  # keeps no array alive
        self._find = find
        self._was_called = False
        _warn_of_settings()
        for line, text, file in artifact.meta.get("warnings", ()):
            warnings.warn_explicit(text, TileMapWarning, file or "<text>", line or 1)

    @cached_property
    def executable(self) -> Executable:
        """The executable; it is made when first used, so `warmup` needs no device."""
        found = self.backend.load(self.artifact, self._wanted.signature)
        if isinstance(found, QueuedExecutable):
            found.compile_part = self._compile_part
        return found

    def _compile_part(self, target: str) -> Artifact:
        return self._find(self._wanted, self.backend, target).artifact

    def complete(self) -> None:
        """Compile the other parts of the code that a launch may need."""
        for part in self.meta.get("parts", ()):
            self._compile_part(part)

    def deserves_shortcut(self) -> bool:
        """Whether to make a shortcut: one is cheap, or this is not the first call."""
        was_called, self._was_called = self._was_called, True
        return was_called or self.executable.is_fast_at_hand


class Found(NamedTuple):
    """A result of `Executables.get`.

    Attributes:
        unchanged: tells whether the captured globals are unchanged; None: there are
            none.
        positions: see `xetl.runtime.fingerprint.Fingerprint`.
    """

    loaded: Loaded
    unchanged: Callable[[], bool] | None
    positions: str

    def holds(self) -> bool:
        """Whether the code is still valid: the captured globals are unchanged."""
        return self.unchanged is None or self.unchanged()


class Prepared(NamedTuple):
    """A call whose arguments are checked and whose code is compiled."""

    wanted: Specialization
    place: Place | None
    found: Found

    @property
    def stored(self) -> list[int]:
        """The indices of the parameters that the kernel writes."""
        return self.wanted.positions(self.found.loaded.stored)


def _names_right_lines(artifact: Artifact, asked: Fingerprint) -> bool:
    """Whether line numbers in assertions and warnings are still right."""
    meta = artifact.meta
    return not meta.get("names_lines") or meta.get("positions") == asked.positions


class Executables:
    """All executables of one kernel; several threads may use it at once."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        self._lock = ForkSafeLock()
        self._by_key: dict[Hashable, Found] = {}
        # A lambda that is made for each call changes the key, but not the source.
        self._by_digest: dict[str, Loaded] = {}
        self._questions: dict[str, list[list[Question]]] = {}
        self.compiles = Compiles(fn)

    def get(self, wanted: Specialization, backend: BackendBase, target: str) -> Found:
        """Find or compile the code for ``wanted``."""
        # Equal objects may differ in attributes that the kernel reads.
        objects = tuple(map(id, filter(is_opaque, wanted.signature.constants.values())))
        stepped = backend.stops_at_breakpoints and is_debugged()
        key = (backend.name, target, config.of_code, stepped, wanted.key, objects)
        found = self._by_key.get(key)
        if found is not None and found.holds():
            return found
        with self._lock.held():
            found = self._by_key.get(key)
            if found is None or not found.holds():
                found = self._find(wanted, backend, target)
                if len(self._by_key) >= _MOST_KEYS:
                    self._by_key.clear()
                self._by_key[key] = found
        return found

    def _load(
        self, wanted: Specialization, backend: BackendBase, target: str
    ) -> Loaded:
        return self.get(wanted, backend, target).loaded

    def compile(
        self,
        wanted: Specialization,
        backend: BackendBase,
        target: str,
        reads: Reads | None = None,
    ) -> Artifact:
        """Compile without a look at the caches; ``reads`` records the dependencies."""
        refuse_if_forbidden(self._fn.__name__)
        make = compiler().compile_kernel
        with collecting_rarely():
            return make(self._fn, wanted.signature, backend, target, reads)

    def _find(self, wanted: Specialization, backend: BackendBase, target: str) -> Found:
        base = base_of(self._fn, wanted.signature, backend, target)
        for questions in self._asked(base, kernel_cache(backend)):
            known = base.answered(questions)
            loaded = None if known is None else self._existing(known, wanted, backend)
            if known is not None and loaded is not None:
                unchanged = unchanged_check(known.reads.captured)
                self._remember(known, loaded)
                return Found(loaded, unchanged, known.positions)
        for _ in range(_MOST_TRIES):
            reads = Reads(self._fn, base.constants)
            new = self.compile(wanted, backend, target, reads)
            unchanged = unchanged_check(reads.captured)
            if unchanged is None or unchanged():
                break
            # A value changed during the compilation: it is unknown which one was used.
        else:
            raise LaunchError(
                f"what `{self._fn.__name__}` reads changes again and again while it is"
                " compiled",
                code="X0834",
                help="let the threads that change it wait, or pass it as an argument",
            )
        made = Fingerprint(base, reads)
        meta = {**new.meta, "positions": made.positions}
        loaded = Loaded(Artifact(new.payload, meta), backend, wanted, self._load)
        self._remember(made, loaded)
        cache = disk_cache() if backend.cacheable else None
        self.compiles.add(made.facts, cache)
        if cache is not None:
            self._store(made, loaded.artifact, cache)
        return Found(loaded, unchanged, made.positions)

    def _asked(self, base: Base, cache: DiskCache | None) -> Iterator[list[Question]]:
        """Yield the questions of earlier compilations: in memory, then on disk."""
        mine = list(self._questions.get(base.digest, ()))
        yield from mine
        yield from (q for q in _stored_questions(base, cache) if q not in mine)

    def _existing(
        self, asked: Fingerprint, wanted: Specialization, backend: BackendBase
    ) -> Loaded | None:
        """Return code from memory or disk; None if its line numbers are outdated."""
        loaded = self._by_digest.get(asked.digest)
        if loaded is None:
            cache = kernel_cache(backend)
            artifact = None if cache is None else cache.load(asked.digest)
            if artifact is None or not _names_right_lines(artifact, asked):
                return None
            return Loaded(artifact, backend, wanted, self._load)
        return loaded if _names_right_lines(loaded.artifact, asked) else None

    def _remember(self, found: Fingerprint, loaded: Loaded) -> None:
        self._by_digest[found.digest] = loaded
        known = self._questions.get(found.base.digest, [])
        if found.reads.questions not in known:
            listed = [found.reads.questions, *known][:_MOST_QUESTIONS]
            self._questions[found.base.digest] = listed

    def _store(self, made: Fingerprint, new: Artifact, cache: DiskCache) -> None:
        cache.store(made.digest, new)
        known = _stored_questions(made.base, cache)
        if made.reads.questions not in known:
            listed = [made.reads.questions, *known][:_MOST_QUESTIONS]
            cache.store(_reads_key(made.base), Artifact(b"", {"questions": listed}))


def refuse_if_forbidden(name: str) -> None:
    """Refuse to compile the kernel called ``name`` inside of `xetl.no_compile`."""
    if config.compiling_forbidden:
        raise LaunchError(
            f"`{name}` would have to be compiled, which `xetl.no_compile()` forbids",
            code=WOULD_COMPILE,
            help="call `warmup` with these arguments first",
        )


def kernel_cache(backend: BackendBase) -> DiskCache | None:
    """Return where to look for code of a backend; None if it has to be compiled."""
    return disk_cache() if backend.cacheable and not config.dump else None


def _reads_key(base: Base) -> str:
    return f"reads-{base.digest}"


def _stored_questions(base: Base, cache: DiskCache | None) -> list[list[Question]]:
    kept = None if cache is None else cache.load(_reads_key(base))
    listed: list[Any] = [] if kept is None else kept.meta["questions"]
    return [[Question(*each) for each in questions] for questions in listed]


class Compiles:
    """The last two compilations of a kernel, also in earlier processes."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        code = fn.__code__
        self._name = fn.__name__
        owner = ascii((code.co_filename, fn.__module__, fn.__qualname__))  # any bytes
        self._key = "last-" + hashlib.sha256(owner.encode()).hexdigest()
        self._before: Facts | None = None
        self._last: Facts | None = None

    def add(self, facts: Facts, cache: DiskCache | None) -> None:
        """Record that code was compiled for ``facts``."""
        self._before, self._last = self._last, facts
        if cache is None:
            return
        if self._before is None:
            kept = cache.load(self._key)
            self._before = None if kept is None else kept.meta["facts"]
        cache.store(self._key, Artifact(b"", {"facts": facts}))

    def why(self) -> str:
        """Return a text with a line for each reason of the last compilation."""
        name = self._name
        if self._last is None:
            return f"`{name}` has not been compiled in this process"
        if self._before is None:
            return f"`{name}` was compiled because it had not been compiled before"
        lines = changes(self._before, self._last) or [
            "nothing changed: its code was not in the cache"
        ]
        return f"`{name}` was compiled because:\n  " + "\n  ".join(lines)


def compiler() -> Any:
    """Return the module `xetl.compiler`; the first call imports xDSL and all passes."""
    return import_whole("xetl.compiler")


def choose_target(backend: BackendBase, name: object = None) -> str:
    """Return the target to compile for if ``target=`` is ``name``.

    Raises:
        LaunchError: the backend has no such target.
    """
    forced = config.target
    # A backend with one target, such as the interpreter, leaves no choice.
    if name is None and (forced is None or len(backend.targets) == 1):
        return backend.variant(backend.default_target())
    wanted = forced if name is None else name
    wanted = backend.runs_as.get(str(wanted), wanted)
    if wanted in backend.targets:
        return backend.variant(cast("str", wanted))
    listed = ", ".join(f"`{each}`" for each in backend.targets)
    near = did_you_mean(str(wanted), backend.targets)
    problem = f"backend `{backend.name}` has no target `{wanted}`"
    raise LaunchError(problem, "X0811", near or _of_others(backend, wanted, listed))


def _of_others(backend: BackendBase, wanted: object, listed: str) -> str:
    """Return the help if other backends have a target of this or a similar name."""
    owners = {
        name: each.name
        for each in other_backends(backend)
        for name in (*each.targets, *each.runs_as)
    }
    owner = owners.get(str(wanted))
    if owner is not None:
        return f"it is a target of backend `{owner}`: pass `backend={owner!r}`"
    near = suggest(str(wanted), owners)
    if near is None:
        return f"its targets are {listed}"
    return (
        f"did you mean `{near}`? It is of backend `{owners[near]}`; "
        f"those of `{backend.name}` are {listed}"
    )


def target_at(backend: BackendBase, place: Place | None) -> str:
    """Return the target to compile for if the launch runs on the queue ``place``."""
    if place is None or config.target is not None:
        return choose_target(backend)
    return backend.variant(place.target)
