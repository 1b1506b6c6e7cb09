"""Arguments described by text, for compiling without arrays: ``bf16[M,64] f32[64]^T``.

``f32[M,K]`` is a row-major array, ``f32[M,K]^T`` a column-major one; ``i64`` or ``f32``
alone is a number, ``None`` is None. Equal names say equal sizes and numbers fix them;
code is the same for all sizes, so they only have to be consistent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from xetl.errors import LaunchError, did_you_mean
from xetl.language.dtypes import BY_NAME, DType
from xetl.language.signature import ArrayParam, ScalarParam

_TOKEN = re.compile(r"\s*(?:(\w+)\s*(?:\[([^\]]*)\](\^T)?)?)(?=\s|$)")
_DIMENSION = re.compile(r"[A-Za-z_]\w*|[1-9]\d*")
_KINDS = {"b": "i1", "i": "i64", "u": "i64", "f": "f64"}
_EXAMPLE = 'such as "bf16[M,4096] bf16[4096,N] f32[M,N] i64 None"'


@dataclass(frozen=True, slots=True)
class Described:
    """One argument by its description; ``dims`` is None for a number."""

    dtype: DType
    dims: tuple[str, ...] | None
    column_major: bool = False

    def param(self, name: str) -> ArrayParam | ScalarParam:
        """What it is as the parameter called ``name``."""
        if self.dims is None:
            kind = cast('Literal["i64", "f64", "i1"]', _KINDS[self.dtype.kind])
            return ScalarParam(name, kind)
        rank = len(self.dims)
        return ArrayParam(
            name, self.dtype, rank, rank - 2 if self.column_major else rank - 1
        )


def parse(text: str) -> list[Described | None]:
    """The arguments ``text`` describes.

    Raises:
        LaunchError: it cannot be read.
    """
    found: list[Described | None] = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise _wrong(text, f"`{stripped[position:].strip()}` cannot be read")
        found.append(_argument(text, *match.groups()))
        position = match.end()
    return found


def _argument(
    text: str, name: str, dims: str | None, transposed: str | None
) -> Described | None:
    if name == "None" and dims is None:
        return None
    dtype = BY_NAME.get(name)
    if dtype is None or name in ("tf32", "index"):
        raise _wrong(
            text, f"`{name}` is not the dtype of an array", did_you_mean(name, BY_NAME)
        )
    if dims is None:
        return Described(dtype, None)
    sizes = tuple(each.strip() for each in dims.split(","))
    for size in sizes:
        if not _DIMENSION.fullmatch(size):
            raise _wrong(text, f"`{size}` is neither the name of a size nor a size")
    if transposed and len(sizes) < 2:
        raise _wrong(text, "only arrays of rank 2 and more can be `^T`")
    return Described(dtype, sizes, transposed is not None)


def _wrong(text: str, why: str, help: str | None = None) -> LaunchError:
    return LaunchError(
        f'the signature "{text}" is wrong: {why}',
        code="X0816",
        help=help or f"write dtypes and sizes, {_EXAMPLE}",
    )


def fill(
    described: Sequence[Described | None], names: Sequence[str], text: str
) -> dict[str, Any]:
    """Give each description its parameter, in order.

    Args:
        described: what `parse` found.
        names: the parameters that may be described, in order.
        text: for the error.

    Raises:
        LaunchError: there are more descriptions than parameters.
    """
    if len(described) > len(names):
        raise _wrong(
            text,
            f"it has {len(described)} arguments for {len(names)} parameters",
            "they are " + (", ".join(f"`{name}`" for name in names) or "none"),
        )
    return dict(zip(names, described))
