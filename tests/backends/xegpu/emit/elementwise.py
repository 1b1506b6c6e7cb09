"""Kernels that work on arrays element by element, and what they are run with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from tests.backends.xegpu.emit.on_opencl import Program, kernel

DTYPES: dict[str, Any] = {
    **{"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32},
    **{"i64": np.int64, "f16": np.float16, "bf16": bfloat16},
    **{"f32": np.float32, "f64": np.float64},
}
Form = tuple[str, tuple[str, ...], str]
"""An expression of ``%0``, ``%1``, ...; the types of these; the type of the result."""


def vector(count: int, element: str) -> str:
    return element if count == 1 else f"vector<{count}x{element}>"


def elementwise(name: str, form: Form, count: int = 1) -> str:
    """``out[i] = form(in0[i], in1[i], ...)``, ``count`` neighbours a lane.

    In the expression ``{0}`` is the type of ``%0`` and so on, ``{r}`` of the result.
    """
    expression, types, result = form
    lines = [
        "%x = simt.group_id x",
        f"%span = arith.constant {16 * count} : i64",
        f"%count = arith.constant {count} : i64",
        "%first = arith.muli %x, %span : i64",
        "%mine = arith.muli %wide, %count : i64",
        "%start = arith.addi %first, %mine : i64",
    ]
    for number, type_ in enumerate(types):
        lines += _load(number, type_, count)
    given = {str(n): vector(count, type_) for n, type_ in enumerate(types)}
    text = expression
    for number in range(len(types)):
        text = text.replace(f"%{number}", f"%v{number}")
    named = text.replace("{r}", vector(count, result))
    for key, value in given.items():
        named = named.replace(f"{{{key}}}", value)
    lines.append(f"%result = {named}")
    lines += _store(result, count)
    arguments = ", ".join(f"%in{n}: i64" for n in range(len(types)))
    return kernel(name, f"{arguments}, %out: i64", "\n      ".join(lines))


def _size(type_: str) -> int:
    return np.dtype(DTYPES[type_]).itemsize


def _address(name: str, base: str, type_: str, index: int) -> list[str]:
    return [
        f"%{name}i = arith.constant {index} : i64",
        f"%{name}j = arith.addi %start, %{name}i : i64",
        f"%{name}s = arith.constant {_size(type_)} : i64",
        f"%{name}o = arith.muli %{name}j, %{name}s : i64",
        f"%{name}p = arith.addi {base}, %{name}o : i64",
    ]


def _load(number: int, type_: str, count: int) -> list[str]:
    fill = "false" if type_ == "i1" else f"{'0.0' if 'f' in type_ else '0'} : {type_}"
    lines = [f"%f{number} = arith.constant {fill}"]
    for index in range(count):
        name = f"l{number}_{index}"
        lines += _address(name, f"%in{number}", type_, index)
        value = f"%v{number}" if count == 1 else f"%{name}v"
        lines.append(f"{value} = simt.load %{name}p, %on, %f{number} : {type_}")
    if count > 1:
        parts = ", ".join(f"%l{number}_{index}v" for index in range(count))
        whole = vector(count, type_)
        lines.append(f"%v{number} = vector.from_elements {parts} : {whole}")
    return lines


def _store(type_: str, count: int) -> list[str]:
    lines: list[str] = []
    for index in range(count):
        name, value = f"s{index}", "%result"
        lines += _address(name, "%out", type_, index)
        if count > 1:
            value, whole = f"%{name}v", vector(count, type_)
            extract = f"vector.extract %result[{index}] : {type_} from {whole}"
            lines.append(f"{value} = {extract}")
        lines.append(f"simt.store {value}, %{name}p, %on : {type_}")
    return lines


class Elementwise:
    """Many forms, built at once."""

    def __init__(self, forms: Sequence[Form], count: int = 1) -> None:
        self.forms, self.count = list(forms), count
        text = [elementwise(f"k{n}", form, count) for n, form in enumerate(forms)]
        self.program = Program("\n".join(text))

    def __call__(self, form: Form, *arrays: np.ndarray) -> np.ndarray:
        """Run a form on arrays of one length, a multiple of 16 * count."""
        out = np.zeros(len(arrays[0]), DTYPES[form[2]])
        groups, rest = divmod(len(out), 16 * self.count)
        assert rest == 0
        name = f"k{self.forms.index(form)}"
        self.program(name, *map(np.ascontiguousarray, arrays), out, groups=groups)
        return out


def edges(dtype: Any, count: int, seed: int = 0) -> np.ndarray:
    """Numbers of a type: its edges, small ones, any ones."""
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.bool_):
        return rng.integers(0, 2, count).astype(np.bool_)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        some = [info.min, info.min + 1, -2, -1, 0, 1, 2, 3, 7, info.max - 1, info.max]
        some += list(rng.integers(-9, 10, count // 4))
        rest = rng.integers(info.min, info.max, count - len(some), endpoint=True)
        made = np.concatenate([np.array(some, np.int64), rest]).astype(dtype)
    else:
        some = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -2.5]
        rest = rng.standard_normal(count - len(some)) * 8
        made = np.concatenate([np.array(some), rest]).astype(dtype)
    rng.shuffle(made)
    return made


def assert_same(found: np.ndarray, expected: np.ndarray, what: object) -> None:
    """Equal numbers, NaN where NaN is expected; for all types, bf16 too."""
    assert found.dtype == expected.dtype, what
    if found.dtype.kind in "fV":  # NumPy takes bf16 for no float
        found, expected = (each.astype(np.float64) for each in (found, expected))
    np.testing.assert_array_equal(found, expected, str(what))
