"""The parameters of a kernel, and the binding of arguments to them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, TypeAlias

from xetl.errors import LaunchError, did_you_mean
from xetl.language.operation import constexpr
from xetl.language.source_lines import lines_of
from xetl.records import record

RESERVED = ("backend", "queue", "wait", "grid", "target", "check", "stage")
"""Names of options of launches, which no parameter may have."""


def triton_option(name: str) -> str | None:
    """Return what to do about an option of Triton's compiler; None for other names."""
    if name not in ("num_warps", "num_stages", "num_ctas", "maxnreg"):
        return None
    return (
        f"`{name}` is an option of Triton's compiler: leave it out; how a "
        "workgroup is divided is said by a `wg_map`"
    )


Args: TypeAlias = Sequence[Any]
Keywords: TypeAlias = Mapping[str, Any]
"""The arguments of a call by name; `Args` are those by position."""

MISSING: Any = inspect.Parameter.empty
"""Stands for a default or an argument that does not exist."""

_CONSTEXPR = re.compile(r"(^|[\w.]*\.)constexpr(\[.*\])?$")


@record(frozen=True)
class Parameter:
    """One parameter; ``default`` is `MISSING` if it has none.

    ``is_rest`` is true of ``*args``, whose value is a tuple.
    """

    name: str
    default: Any
    is_constexpr: bool
    is_rest: bool = False


@record(frozen=True)
class Parameters:
    """All parameters of the kernel called ``kernel``, in order."""

    kernel: str
    each: tuple[Parameter, ...]
    positional: int
    """How many of them may be given by position."""

    @staticmethod
    def of(fn: Callable[..., Any]) -> Parameters:
        """Return the parameters of a function.

        Raises:
            LaunchError: a name is reserved, or there are ``**keywords``.
        """
        found = inspect.signature(fn).parameters.values()
        for parameter in found:
            _check_declaration(fn, parameter)
        each = tuple(_parameter(fn, parameter) for parameter in found)
        positional = sum(
            p.kind not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL) for p in found
        )
        return Parameters(fn.__name__, each, positional)

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return [parameter.name for parameter in self.each]

    @property
    def has_rest(self) -> bool:
        """Whether one takes all further arguments: ``*rest``."""
        return any(each.is_rest for each in self.each)

    def bind(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
        """Return the value of each parameter, in order.

        Raises:
            LaunchError: an argument is missing, unknown, given twice or too many.
        """
        rest = tuple(args[self.positional :])
        if rest and not self.has_rest:
            raise LaunchError(
                f"`{self.kernel}` takes {self.positional} positional arguments, "
                f"but {len(args)} were given",
                code="X0803",
                help=f"its parameters are {_listed(self.names)}",
            )
        values = list(args[: self.positional])
        values += [parameter.default for parameter in self.each[len(values) :]]
        if rest:  # `*rest` follows the positional parameters
            values[self.positional] = rest
        given = self.positional + 1 if rest else len(args)
        for name, value in keywords.items():
            values[self._position(name, given)] = value
        missing = [p.name for p, v in zip(self.each, values) if v is MISSING]
        if missing:
            problem = f"`{self.kernel}` was called without {_listed(missing)}"
            help_ = f"its parameters are {_listed(self.names)}"
            if self.names[0] == "self":
                help_ = "a kernel is no method: it gets no `self`"
            raise LaunchError(problem, "X0803", help_)
        return values

    def _position(self, name: str, given: int) -> int:
        for index, parameter in enumerate(self.each):
            if parameter.name != name:
                continue
            if index < given:
                raise LaunchError(
                    f"`{self.kernel}` was given `{name}` by position and by keyword",
                    code="X0803",
                )
            return index
        raise LaunchError(
            f"`{self.kernel}` has no parameter `{name}`",
            code="X0804",
            help=triton_option(name)
            or did_you_mean(name, [*self.names, "backend", "queue", "wait"])
            or f"its parameters are {_listed(self.names)}",
        )


def _parameter(fn: Callable[..., Any], found: inspect.Parameter) -> Parameter:
    is_rest = found.kind is found.VAR_POSITIONAL
    default = () if is_rest else found.default
    return Parameter(found.name, default, _is_constexpr(fn, found), is_rest)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _check_declaration(fn: Callable[..., Any], parameter: inspect.Parameter) -> None:
    if parameter.kind is parameter.VAR_KEYWORD:
        problem = f"`{parameter}` cannot be a parameter of the kernel `{fn.__name__}`"
        help_ = "name each parameter; optional ones may default to None"
        raise LaunchError(
            problem, code="X0809", help=help_, **_place_of(fn, parameter.name)
        )
    if parameter.name in RESERVED:
        raise LaunchError(
            f"`{parameter.name}` cannot be a parameter of the kernel `{fn.__name__}`: "
            "it means something in a launch",
            code="X0809",
            help=f"reserved are {_listed(RESERVED)}; give it another name",
            **_place_of(fn, parameter.name),
        )


def _place_of(fn: Callable[..., Any], name: str) -> dict[str, Any]:
    """Return the place of a parameter in the source: its name after ``def``."""
    code: CodeType | None = getattr(fn, "__code__", None)
    if code is None:
        return {}
    lines = lines_of(fn)
    head, first = "", code.co_firstlineno
    for line, text in enumerate(lines[first - 1 : first + 49], first):
        start = re.search(r"\bdef\b.*?\(", text) if not head else None
        found = re.compile(rf"\b{name}\b").search(text, start.end() if start else 0)
        head += start[0] if start else ""
        if head and found:
            column, length = found.start() + 1, found.end() - found.start()
            place = {"file": code.co_filename, "line": line, "column": column}
            return {**place, "length": length, "source_line": text.rstrip("\n")}
    return {"file": code.co_filename, "line": code.co_firstlineno}


def _is_constexpr(fn: Callable[..., Any], parameter: inspect.Parameter) -> bool:
    annotation: object = parameter.annotation
    if isinstance(annotation, str):
        annotation = _evaluate(fn, annotation)
    return annotation is constexpr


def _evaluate(fn: Callable[..., Any], text: str) -> object:
    """Return the value of a text annotation; None if it cannot be evaluated."""
    text = text.strip(" '\"")  # postponed annotations may be quoted twice
    if _CONSTEXPR.fullmatch(text):
        return constexpr
    names: dict[str, object] = getattr(fn, "__globals__", {})
    if text.isidentifier():  # most are; `eval` takes longer
        return names.get(text)
    try:  # constexpr may have another name
        return eval(text, names)
    except Exception:  # an annotation that fails is not constexpr
        return None
