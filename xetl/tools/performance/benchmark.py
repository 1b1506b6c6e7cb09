"""`xetl.Benchmark`: what a report measures; it also takes Triton's argument names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from xetl.errors import LaunchError
from xetl.runtime.call_site import errors_at_caller

WRONG = "X0850"

Point = dict[str, Any]
"""Values of the parameters on the x axis, by name."""


class Value(NamedTuple):
    """A measured value, and the range of its measurements."""

    middle: float
    low: float
    high: float


class Benchmark:
    """A function measured along an axis, with a line for each of several choices.

    Args:
        x: the parameter on the x axis, or several that get the same value.
        values: the values on the x axis; for several parameters also tuples.
        lines: the values of the parameter ``line``, as a list, or as a dict with a
            label for each.
        unit: the unit of measured values; ``ms`` for the result of `do_bench`.
        line: the parameter that differs between lines; by default the one parameter
            that no other argument names.
        name: the name of the report.
        log: whether the x axis is logarithmic.
        args: values of further parameters.
        flops: operations of a call, as a function of the x parameters and ``args``.
        bytes: bytes that a call must move, likewise; both are for the roofline.
        triton: the same by Triton's names, ``x_names``, ``x_vals``, ``line_arg``,
            ``line_vals``, ``line_names``, ``plot_name``, ``xlabel``, ``ylabel``,
            ``x_log``, ``y_log``, ``styles``.

    Raises:
        LaunchError: an argument is missing or unknown.
    """

    @errors_at_caller
    def __init__(
        self,
        *,
        x: str | Sequence[str] | None = None,
        values: Sequence[Any] | None = None,
        lines: Sequence[Any] | Mapping[Any, str] | None = None,
        unit: str | None = None,
        line: str | None = None,
        name: str | None = None,
        log: bool = False,
        args: Mapping[str, Any] | None = None,
        flops: Callable[..., float] | None = None,
        bytes: Callable[..., float] | None = None,
        **triton: Any,
    ) -> None:
        names = x if x is not None else triton.pop("x_names", None)
        points = values if values is not None else triton.pop("x_vals", None)
        keys = lines if lines is not None else triton.pop("line_vals", None)
        if names is None or points is None or keys is None:
            raise _wrong("`Benchmark` needs x=, values= and lines=")
        self.x = [names] if isinstance(names, str) else list(names)
        self.lines = _labels(keys, triton.pop("line_names", None))
        self.points = [_point(self.x, each) for each in points]
        self.line = line or cast("str | None", triton.pop("line_arg", None))
        self.name = name or str(triton.pop("plot_name", "") or "benchmark")
        self.label = str(triton.pop("xlabel", "") or ", ".join(self.x))
        self.unit = unit or str(triton.pop("ylabel", "") or "ms")
        self.log = bool(log or triton.pop("x_log", False))
        self.log_y = bool(triton.pop("y_log", False))
        self.args = dict(args or {})
        self.flops = flops
        self.bytes = bytes
        styles: Sequence[tuple[str, str]] = triton.pop("styles", None) or ()
        self.styles = list(styles)
        for unknown in triton:
            raise _wrong(f"`Benchmark` has no `{unknown}`")
        if not self.points or not self.lines:
            raise _wrong("`Benchmark` has nothing to measure")

    @property
    def knows_work(self) -> bool:
        """Whether both ``flops`` and ``bytes`` were given."""
        return self.flops is not None and self.bytes is not None

    def parameter_of_lines(self, fn: Callable[..., Any]) -> str:
        """Return the parameter of a function that differs between lines.

        Raises:
            LaunchError: not exactly one parameter is left for this.
        """
        if self.line is not None:
            return self.line
        known = {*self.x, *self.args}
        rest = [name for name in inspect.signature(fn).parameters if name not in known]
        if len(rest) != 1:
            raise _wrong(
                f"which parameter of `{fn.__name__}` says the line? There are "
                f"{', '.join(rest) or 'none'}",
                "name it: line=...",
            )
        return rest[0]

    def measure(self, fn: Callable[..., Any], point: Point, key: Any) -> Value:
        """Call the function, which returns a value, or a value with its range."""
        line = self.parameter_of_lines(fn)
        found: Any = fn(**point, **{line: key}, **self.args)
        if not isinstance(found, tuple | list):
            return Value(float(found), float(found), float(found))
        three = [float(each) for each in cast("Sequence[Any]", found)]
        return Value(three[0], min(three), max(three))

    def rate(self, point: Point, value: float) -> tuple[float, float] | None:
        """Return billions of operations a second, and operations per byte moved.

        Return None if the benchmark lacks ``flops`` or ``bytes``.

        Raises:
            LaunchError: the unit is neither a time nor a rate of operations.
        """
        if self.flops is None or self.bytes is None:
            return None
        flops = float(self.flops(**point, **self.args))
        moved = float(self.bytes(**point, **self.args))
        unit = self.unit.lower().replace("/s", "").replace("ps", "")
        scales = {"gflop": 1.0, "tflop": 1e3, "mflop": 1e-3}
        times = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
        if unit in scales:
            return scales[unit] * value, flops / moved
        if unit not in times:
            problem = f"a roofline needs times or rates, but the unit is {self.unit!r}"
            raise _wrong(problem, "measure in ms, us, s, GFLOP/s or TFLOP/s")
        return 1e-9 * flops / (times[unit] * value), flops / moved


def _labels(keys: Any, names: Sequence[str] | None) -> dict[Any, str]:
    if isinstance(keys, Mapping):
        return dict(cast("Mapping[Any, str]", keys))
    listed: list[Any] = list(keys)
    labels = list(names) if names is not None else [str(each) for each in listed]
    if len(labels) != len(listed):
        raise _wrong(f"there are {len(listed)} lines, but {len(labels)} names")
    return dict(zip(listed, labels))


def _point(names: Sequence[str], value: Any) -> Point:
    if not isinstance(value, tuple | list):
        return dict.fromkeys(names, value)
    listed = list(cast("Sequence[Any]", value))
    if len(listed) != len(names):
        raise _wrong(f"{value!r} has {len(listed)} values for {', '.join(names)}")
    return dict(zip(names, listed))


def _wrong(text: str, help: str | None = None) -> LaunchError:
    usual = 'write xetl.Benchmark(x="N", values=[...], lines=[...], unit="GB/s")'
    return LaunchError(text, code=WRONG, help=help or usual)


@dataclass(frozen=True)
class Peak:
    """The limits of a machine, as `BackendBase.peak` returns them.

    Attributes:
        gflops: billions of operations a second; a multiply-add counts as two.
        gbytes: billions of bytes a second, read or written.
    """

    gflops: float
    gbytes: float

    def limit(self, flops: float, moved: float) -> float:
        """Return the most 10^9 operations a second if ``moved`` bytes are moved."""
        return min(self.gflops, self.gbytes * flops / max(moved, 1.0))
