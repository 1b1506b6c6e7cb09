"""Choose the config of a call: from memory, from disk, or by trials.

On disk there is one JSON file for each kernel, which can be checked in and shipped. It
is replaced as a whole, so a reader sees the old or the new file, even if the writer is
killed. Writers take turns by a lock, which the system releases when a process ends.
Nothing in a file is run: its texts are only compared with those of the declared
configs. A file that cannot be read or written is ignored.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from xetl.errors import LaunchError, XetlError
from xetl.language.contents import source_text
from xetl.language.signature import items_by_path
from xetl.locks import ForkSafeLock
from xetl.runtime.cache import tuned_folder, write_whole
from xetl.runtime.parameters import Parameters
from xetl.runtime.tuning.config import (
    DECLARED_WRONG,
    Call,
    Config,
    check_names,
    text_of,
)
from xetl.runtime.tuning.trials import Options, Trial, Trials, warn_of_dropped
from xetl.settings import config as settings
from xetl.settings import launch_state


class Tuner:
    """The configs of a kernel, and the best ones of earlier calls.

    Attributes:
        configs: the configs in the order of the declaration.
        chosen: the names of all constants that they set.
        best: the config of the last launch.
        trials: the trials of the last tuning in this process.
        tunes_anew: whether to ignore configs on disk.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        configs: Sequence[Config],
        key: Sequence[str],
        options: Options,
        prune: Mapping[str, Any],
        remembers: bool,
    ) -> None:
        self.configs = list(configs)
        self.chosen = frozenset(name for each in configs for name in each.kwargs)
        self.best: Config | None = None
        self.trials: list[Trial] = []
        self.tunes_anew = False
        parameters = Parameters.of(fn)
        check_names(parameters, sorted(self.chosen), "the configs")
        check_names(parameters, key, "`key` of `autotune` has the")
        changed = (*options.zeroed, *options.restored)
        check_names(parameters, changed, "`reset_to_zero` or `restore_value` has the")
        for name in key:
            if name in self.chosen:
                problem = f"`key` of `autotune` names `{name}`, which the configs set"
                help_ = "a key names arguments that decide which config is best"
                raise LaunchError(problem, DECLARED_WRONG, help_)
        self._key = tuple(key)
        self._options = options
        self._prune = prune
        self._file = (
            TunedFile(fn.__qualname__, _plain_source(fn)) if remembers else None
        )
        texts = sorted(map(str, configs))
        self._choice = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
        self._known: dict[object, Config] = {}
        self._state: object = None
        self._lock = ForkSafeLock()
        self._is_tuning = False

    def known(self, call: Call) -> Config:
        """Return the best config if it is known, else the first; make no trials."""
        found = self._known.get(self._memory_key(call))
        found = found or self._remembered(call)
        return found or self.configs[0]

    def choose(self, call: Call) -> Config:
        """Return the best config, if need be by trials; an XetlError if none works."""
        state = launch_state()
        if state != self._state:
            self._known, self._state = {}, state
        key = self._memory_key(call)
        found = self._known.get(key)
        if found is None:
            with self._lock.held():
                found = self._known.get(key) or self._found(call, key)
        self.best = found
        return found

    def _found(self, call: Call, key: object) -> Config:
        if len(self.configs) == 1:
            found: Config | None = self.configs[0]
        else:
            found = None if self.tunes_anew else self._remembered(call)
        if found is None:
            # A hook may launch its own kernel; times in the interpreter mean nothing.
            cannot = self._is_tuning or settings.interpret
            if cannot or settings.compiling_forbidden:
                return self.configs[0]
            found = self._tuned(call)
        self._known[key] = found
        return found

    def _tuned(self, call: Call) -> Config:
        self._is_tuning = True
        try:
            listed = self._pruned(call)
            trials = Trials(call, self._options, [Trial(each) for each in listed])
            best = trials.run()
        finally:
            self._is_tuning = False
        self.trials = trials.trials
        warn_of_dropped(call.name, self.trials)
        if self._file is not None:
            timed = sum(each.milliseconds is not None for each in self.trials)
            facts = {
                "config": best.config.texts,
                "milliseconds": round(best.milliseconds or 0.0, 6),
                "timed": f"{timed} of {len(self.configs)}",
            }
            self._file.add(self._question(call), facts)
        return best.config

    # What is known -----------------------------------------------------------------

    def _memory_key(self, call: Call) -> object:
        """Return a key that tells calls apart; each launch needs it, so it is cheap."""
        parts: list[object] = [call.backend]
        for name, value in call.values.items():
            if name in self._key:
                parts.append(_key_value(value))
            parts += _forms(value)
        key = tuple(parts)
        try:
            hash(key)
        except TypeError:
            return repr(key)
        return key

    def _remembered(self, call: Call) -> Config | None:
        if self._file is None:
            return None
        try:
            texts = self._file.find(self._question(call))
        except XetlError:  # an argument or setting is wrong: the launch reports it
            return None
        if texts is None:
            return None
        return next((each for each in self.configs if each.texts == texts), None)

    def _question(self, call: Call) -> Question:
        values = call.values
        backend, target, machine = call.where()
        return {
            "key": {name: _key_text(values.get(name)) for name in self._key},
            "arguments": {name: _kind(value) for name, value in values.items()},
            "configs": self._choice,
            "backend": backend,
            "target": target,
            "machine": machine,
        }

    # Pruning by the user -----------------------------------------------------------

    def _pruned(self, call: Call) -> list[Config]:
        """Return the configs that `prune_configs_by` leaves, as in Triton."""
        listed = self.configs
        early = self._prune.get("early_config_prune")
        if early is not None:
            listed = list(early(listed, dict(call.values)))
            if not listed:
                problem = "`early_config_prune` of `autotune` left no config"
                help_ = "let it return at least one of those it is given"
                raise LaunchError(problem, "X0851", help_)
        model = self._prune.get("perf_model")
        if model is None:
            return listed
        top: float = self._prune.get("top_k", 1.0)
        is_part = isinstance(top, float) and top <= 1.0
        most = int(len(self.configs) * top if is_part else top)

        def rank(each: Config) -> Any:
            return model(**{**call.values, **each.kwargs})

        return sorted(listed, key=rank)[: max(1, most)]


def _plain_source(fn: Callable[..., Any]) -> str:
    """Return the source of a function without decorators: these declare the configs."""
    lines = source_text(fn).splitlines(keepends=True)
    starts = (i for i, line in enumerate(lines) if line.lstrip().startswith("def "))
    return "".join(lines[next(starts, 0) :])


def _forms(value: object) -> list[object]:
    """Return dtype and device of each array, also in structures; classes of others."""
    dtype: object = getattr(value, "dtype", None)
    if dtype is not None:
        return [dtype, getattr(value, "device", None)]
    items = items_by_path("", value)
    if items is None:
        return [cast("object", type(value))]
    return [form for item in items.values() for form in _forms(item)]


def _key_value(value: object) -> object:
    """Return the shape of an array; any other value itself."""
    if isinstance(value, tuple | list):
        return tuple(map(_key_value, cast("Sequence[object]", value)))
    shape: Any = getattr(value, "shape", None)
    return value if shape is None else tuple(shape)


def _key_text(value: object) -> str:
    value = _key_value(value)
    if isinstance(value, tuple):
        return "x".join(map(str, cast("tuple[object, ...]", value)))
    return text_of(value)


def _kind(value: object) -> str:
    """Return the dtype of an array, else the class; for a structure those of items."""
    items = items_by_path("", value)
    if items is not None:
        return f"({', '.join(map(_kind, items.values()))})"
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "shape"):
        return type(value).__name__
    return str(dtype).removeprefix("torch.")


_FORMAT = 1
_LOCK = ".lock"
Question = Mapping[str, Any]
"""The fields of an entry that say for which calls it holds, all JSON."""


class TunedFile:
    """The best configs of one kernel; the name of the file changes with its source."""

    def __init__(self, kernel: str, source: str) -> None:
        """Name the file of the kernel called ``kernel``."""
        self._kernel = kernel
        self._fingerprint = hashlib.sha256(source.encode()).hexdigest()[:16]
        plain = re.sub(r"[^\w.-]", "_", kernel)[-80:]
        self._name = f"{plain}-{self._fingerprint}.json"

    @property
    def path(self) -> Path:
        """The path in the folder of the current settings."""
        return tuned_folder() / self._name

    def find(self, question: Question) -> Mapping[str, str] | None:
        """Return the texts of the best config's values; None if it is not known."""
        for entry in self._entries():
            if _answers(entry, question):
                texts: object = entry.get("config")
                if isinstance(texts, dict):
                    return cast("dict[str, str]", texts)
        return None

    def add(self, question: Question, facts: Mapping[str, Any]) -> None:
        """Store an answer; it replaces an older one to the same question."""
        folder = self.path.parent
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder):
                others = [e for e in self._entries() if not _answers(e, question)]
                entries = [*others, {**question, **facts}]
                entries.sort(key=lambda each: json.dumps(each, sort_keys=True))
                self._write(entries)

    def _entries(self) -> list[dict[str, Any]]:
        try:
            found: Any = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError):
            return []
        if not isinstance(found, dict):
            return []
        whole = cast("dict[str, Any]", found)
        entries = whole.get("entries")
        if whole.get("format") != _FORMAT or not isinstance(entries, list):
            return []
        listed = cast("list[Any]", entries)
        return [each for each in listed if isinstance(each, dict)]

    def _write(self, entries: Sequence[Mapping[str, Any]]) -> None:
        whole = {
            "format": _FORMAT,
            "kernel": self._kernel,
            "fingerprint": self._fingerprint,
            "entries": entries,
        }
        text = json.dumps(whole, indent=1) + "\n"
        write_whole({self.path: text.encode()}, mode=0o644)  # it is to be checked in


def _answers(entry: Mapping[str, Any], question: Question) -> bool:
    return all(entry.get(field) == value for field, value in question.items())


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Hold the lock of the writers of a folder, if the file system has locks."""
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
