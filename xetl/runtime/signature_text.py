"""Arguments described by text, for compiling without arrays: ``bf16[M,64] f32[64]^T``.

``f32[M,K]`` is a row-major array, ``f32[M,K]^T`` a column-major one; ``i64`` or ``f32``
alone is a number, ``None`` is None, ``(f32[M,N], f32[N])`` is a tuple. Equal names mean
equal sizes, and a number is a size. Neither is checked: code is the same for all sizes.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Literal, cast

from xetl.errors import LaunchError, did_you_mean
from xetl.language.dtypes import BY_NAME, DType
from xetl.language.signature import ArrayParam, RuntimeParam, ScalarParam
from xetl.records import record
from xetl.runtime.parameters import Parameters

_ARGUMENT = r"\s*(?:(\w+)\s*(?:\[([^\]]*)\](\^T)?)?)"
_TOKEN = re.compile(_ARGUMENT + r"(?=\s|$)")
_ITEM = re.compile(_ARGUMENT + r"(?=[\s,)]|$)")
_OPEN, _CLOSE = re.compile(r"\s*\("), re.compile(r"\s*\)")
_COMMA = re.compile(r"\s*,")
_DIMENSION = re.compile(r"[A-Za-z_]\w*|[1-9]\d{0,17}")
_KINDS = {"b": "i1", "i": "i64", "u": "i64", "f": "f64"}
_EXAMPLE = 'such as "bf16[M,4096] bf16[4096,N] f32[M,N] i64 None"'


@record(frozen=True)
class Described:
    """The description of one argument; ``dims`` is None for a number."""

    dtype: DType
    dims: tuple[str, ...] | None
    column_major: bool = False

    def param(self, name: str) -> RuntimeParam:
        """Return it as the parameter called ``name``."""
        if self.dims is None:
            kind = cast('Literal["i64", "f64", "i1"]', _KINDS[self.dtype.kind])
            return ScalarParam(name, kind)
        rank = len(self.dims)
        return ArrayParam(
            name, self.dtype, rank, rank - 2 if self.column_major else rank - 1
        )


Description = Described | None | tuple[Any, ...]
"""The description of one argument; a tuple holds those of its items."""


def parse(text: str) -> list[Description]:
    """Return the arguments that a text describes; a LaunchError if it is wrong."""
    stack: list[list[Description]] = [[]]
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        is_inside = len(stack) > 1
        if match := _OPEN.match(stripped, position):
            stack.append([])
        elif is_inside and (match := _CLOSE.match(stripped, position)):
            inner = tuple(stack.pop())
            stack[-1].append(inner)
        elif is_inside and (match := _COMMA.match(stripped, position)):
            pass
        elif match := (_ITEM if is_inside else _TOKEN).match(stripped, position):
            stack[-1].append(_argument(text, *match.groups()))
        else:
            raise _wrong(text, f"`{stripped[position:].strip()}` cannot be read")
        position = match.end()
    if len(stack) > 1:
        raise _wrong(text, "a tuple has no `)`")
    return stack[0]


def _argument(
    text: str, name: str, dims: str | None, transposed: str | None
) -> Described | None:
    if name == "None" and dims is None:
        return None
    dtype = BY_NAME.get(name)
    if dtype is None or name in ("tf32", "index"):
        problem = f"`{name}` is not the dtype of an array"
        raise _wrong(text, problem, did_you_mean(name, BY_NAME))
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
    problem = f'the signature "{text}" is wrong: {why}'
    return LaunchError(problem, "X0816", help or f"write dtypes and sizes, {_EXAMPLE}")


def describe(
    text: str, parameters: Parameters, known: Collection[str]
) -> dict[str, Description]:
    """Return the descriptions in a text by the names of their parameters.

    Args:
        known: names of parameters that have a value already.

    Raises:
        LaunchError: there are more descriptions than parameters.
    """
    free = [p for p in parameters.each if not p.is_constexpr and p.name not in known]
    names = [each.name for each in free]
    described = parse(text)
    for index, parameter in enumerate(free):
        if parameter.is_rest:
            described[index:] = [tuple(described[index:])]
            break
    if len(described) > len(names):
        raise _wrong(
            text,
            f"it has {len(described)} arguments for {len(names)} parameters",
            "they are " + (", ".join(f"`{name}`" for name in names) or "none"),
        )
    return dict(zip(names, described))
