"""The checks of `xetl doctor`: versions, settings, the cache, the backends."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import xetl
from xetl.backend import DEFAULT_BACKEND, INTERPRETER, backend_names, find_backend
from xetl.errors import XetlError
from xetl.findings import Finding
from xetl.runtime.cache import disk_cache
from xetl.settings import Config, Setting, config, misspelt_variables, variables

_OPTIONAL = {
    "torch": "tensors of torch can be passed where it is",
    "dpctl": "queues and memory of Intel GPUs come from it",
}

_MEGABYTE = 1 << 20


def sections() -> Iterator[tuple[str, Sequence[Finding]]]:
    """Yield headings with findings: those of the core, then those of each backend."""
    yield (
        "xetl",
        [*_versions(), *_optional_packages(), *_settings(), *_cache(), *_launches()],
    )
    for name in backend_names():
        yield f"backend {name}", _of_backend(name)


def _versions() -> Iterator[Finding]:
    folder = Path(xetl.__file__).parent
    python = f"Python {platform.python_version()}, {platform.platform(terse=True)}"
    yield Finding("version", f"{xetl.__version__} in {folder}; {python}")
    found: list[str] = []
    for name in ("numpy", "ml_dtypes", "llvmlite", "numba", "xdsl", "click"):
        installed = _version(name)
        if installed is None:
            fix = f"pip install {name}"
            yield Finding(name, "is not installed, but is needed", "problem", fix)
        else:
            found.append(f"{name} {installed}")
    yield Finding("packages", ", ".join(found))


def _optional_packages() -> Iterator[Finding]:
    for name, purpose in _OPTIONAL.items():
        installed = _version(name)
        if installed is not None:
            yield Finding(name, installed)
        else:
            text = f"not installed; {purpose}"
            yield Finding(name, text, "note", f"pip install {name}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _settings() -> Iterator[Finding]:
    """Yield a finding for each ``XETL_*`` variable: its value, or why it is wrong."""
    known = {
        each.variable: name
        for name, each in vars(Config).items()
        if isinstance(each, Setting)
    }
    misspelt = misspelt_variables()
    for variable, text in variables().items():
        shown = f"{variable}={text}"
        if variable in known:
            yield _setting(shown, known[variable])
        else:
            text = f"{shown} is no setting of xetl"
            yield Finding("setting", text, "problem", misspelt[variable])


def _setting(shown: str, name: str) -> Finding:
    try:
        getattr(config, name)
    except XetlError as error:
        return Finding("setting", error.message, "problem", "correct or unset it")
    return Finding("setting", shown)


def _cache() -> Iterator[Finding]:
    try:
        cache = disk_cache()
    except XetlError:  # a wrong setting, which `_settings` has reported
        return
    if cache is None:
        yield Finding("cache", "switched off by XETL_CACHE", "note")
        return
    size = sum(status.st_size for _, status in cache.entries())
    limit = cache.limit / _MEGABYTE
    text = f"{cache.folder}, {size / _MEGABYTE:.1f} of {limit:.0f} MB used"
    problem = cache.why_unusable()
    if problem is None:
        yield Finding("cache", text)
    else:
        text = f"{cache.folder} cannot be used: {problem}"
        fix = "set XETL_CACHE_DIR to a folder of your own"
        yield Finding("cache", text, "problem", fix)


def _launches() -> Iterator[Finding]:
    """Yield the backend and target of a launch on host arrays."""
    with suppress(XetlError):  # a wrong setting, which `_settings` has reported
        chosen = INTERPRETER if config.interpret else config.backend or DEFAULT_BACKEND
        known = backend_names()
        if chosen not in known:
            text = f"there is no backend called `{chosen}`, so every launch fails"
            fix = f"set XETL_BACKEND to one of {', '.join(known)}, or unset it"
            yield Finding("launches", text, "problem", fix)
            return
        target = f" for target `{config.target}`" if config.target else ""
        what = f"on backend `{chosen}`{target}, unless they say more"
        yield Finding("launches", what)


def _of_backend(name: str) -> Sequence[Finding]:
    """Return the findings of a backend. A failure is a finding: others still run."""
    try:
        backend = find_backend(name)
        return list(backend.doctor())
    except Exception as error:
        text = f"cannot be examined: {type(error).__name__}: {error}"
        return [Finding("backend", text, "problem")]
