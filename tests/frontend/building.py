"""Build kernels from signatures as short as `X="f32 2"`."""

import inspect

from xetl.dialects.parser import parse_module
from xetl.frontend import build_module
from xetl.language.dtypes import BY_NAME
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature


def signature(kernel, **given):
    """ "f32 2" is an array of rank 2 (T: column-major, S: no unit stride), "i64" a
    scalar, anything else a constant; parameters left out have their default."""
    params = []
    for name, parameter in inspect.signature(kernel).parameters.items():
        params.append(_parameter(name, given.get(name, parameter.default)))
    return Signature(tuple(params))


def _parameter(name, value):
    if value in ("i64", "f64", "i1"):
        return ScalarParam(name, value)
    words = value.split() if isinstance(value, str) else []
    if len(words) > 1 and words[0] in BY_NAME:
        rank = int(words[1])
        unit = {"T": 0, "S": None}.get(words[-1], rank - 1)
        return ArrayParam(name, BY_NAME[words[0]], rank, unit)
    return ConstParam(name, value)


def build(kernel, **given):
    """The verified module; its text parses back to the same text."""
    module = build_module(kernel, signature(kernel, **given))
    module.verify()
    text = str(module)
    assert str(parse_module(text, "test")) == text
    return module


def ops(module, name):
    """All ops of a name, in order."""
    return [op for op in module.walk() if op.name == name]


def names(module):
    """Names of all ops, in order."""
    return [op.name for op in module.walk()]
