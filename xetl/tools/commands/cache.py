"""``xetl cache``: list the compiled kernels on disk, or remove some."""

from __future__ import annotations

import time
from itertools import islice
from os import stat_result
from pathlib import Path
from typing import Any

import click

from xetl.runtime.cache import DiskCache, disk_cache
from xetl.settings import Config
from xetl.tools.output import json_option, show

_SHOWN = 20
_HEAD = ("KERNEL", "BACKEND", "TARGET", "KB", "LAST USED")
_UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


@click.group()
def command() -> None:
    """List the compiled kernels on disk, or remove some."""


@command.command("ls")
@click.option(
    "--all", "every", is_flag=True, help=f"Show all, not only the last {_SHOWN}."
)
@json_option
def list_kernels(every: bool, as_json: bool) -> None:
    """List the compiled kernels, the most recently used first."""
    cache = _cache()
    entries = cache.entries()[::-1]
    kernels = ((path, status, cache.peek(path)) for path, status in entries)
    named = (each for each in kernels if "kernel" in each[2])
    if as_json:
        show([_facts(*each) for each in named], (), as_json)
        return
    # Read only what is shown: each entry is a file, and there may be 100,000.
    shown = list(named if every else islice(named, _SHOWN))
    rows = [_HEAD, *map(_row, shown)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths))
        click.echo("  ".join(cells).rstrip())
    if not every and next(named, None):
        click.echo(f"... the {_SHOWN} used last; for all: xetl cache ls --all")
    size = sum(status.st_size for _, status in entries)
    click.echo(
        f"{len(entries)} files, {_megabytes(size)} of {_megabytes(cache.limit)} in "
        f"{cache.folder}"
    )


@command.command()
@click.option("--to", "size", metavar="SIZE", help="Leave at most SIZE, such as 100M.")
@click.option(
    "--unused-for",
    "days",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    help="Also remove kernels that were not used for DAYS.",
)
@click.option("--all", "everything", is_flag=True, help="Remove everything.")
@json_option
def prune(
    size: str | None, days: float | None, everything: bool, as_json: bool
) -> None:
    """Remove the least recently used kernels, until the cache fits XETL_CACHE_SIZE.

    Other processes may run at the same time: they compile a removed kernel again.
    """
    cache = _cache()
    before = _size(cache)
    limit = 0 if everything else _bytes(size, cache)
    since = {} if days is None else {"since": time.time() - days * 86400}
    removed = cache.prune(limit, **since)
    freed = before - _size(cache)
    facts = {"removed": removed, "bytes": freed, "folder": str(cache.folder)}
    line = f"removed {removed} files, {_megabytes(freed)}, from {cache.folder}"
    show(facts, [line], as_json)


def _cache() -> DiskCache:
    cache = disk_cache()
    if cache is None:
        raise click.UsageError("the cache is switched off by XETL_CACHE: unset it")
    return cache


def _size(cache: DiskCache) -> int:
    return sum(status.st_size for _, status in cache.entries())


def _bytes(text: str | None, cache: DiskCache) -> int:
    if text is None:
        return cache.limit
    try:
        return Config.cache_size.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--to") from None


def _row(entry: tuple[Path, stat_result, Any]) -> tuple[str, ...]:
    _, status, facts = entry
    return (
        facts["kernel"],
        facts["backend"],
        facts["target"],
        str(-(-status.st_size // 1024)),
        _age(time.time() - status.st_mtime),
    )


def _facts(path: Path, status: stat_result, facts: Any) -> dict[str, Any]:
    named = {name: facts[name] for name in ("kernel", "backend", "target")}
    used = {"bytes": status.st_size, "last_used": status.st_mtime}
    return {**named, **used, "file": str(path)}


def _age(seconds: float) -> str:
    """Return a time ago as text, in the largest unit of which it has two."""
    for unit, length in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return "now"


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB"
