"""Every wrong kernel of the folder `kernels`: the message, its code, place and parts.

Beside the wrong line stands `# ERROR: <code> <message>`, or in a helper
`# ERROR(<kernel>): ...`.  In the kernel, `# CARET: <text>` says what is underlined and
each `# CHECK: <text>` must occur in the drawing.  Annotations are the signature:
"f32 2" an array of rank 2 (with T column-major), "i64" a scalar.
"""

import importlib.util
import inspect
import re
import traceback
from pathlib import Path

import pytest

from xetl.errors import CompileError
from xetl.frontend import build_module
from xetl.language.dtypes import BY_NAME
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature

KERNELS = Path(__file__).parent / "kernels"


def load(path):
    spec = importlib.util.spec_from_file_location(f"wrong_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [
        pytest.param(value, id=f"{path.stem}-{name}")
        for name, value in vars(module).items()
        if name.startswith("wrong_")
    ]


CASES = [case for path in sorted(KERNELS.glob("*.py")) for case in load(path)]


def signature_of(kernel):
    return Signature(
        tuple(parameter_of(p) for p in inspect.signature(kernel).parameters.values())
    )


def parameter_of(parameter):
    words = str(parameter.annotation).split()
    if words[0] in ("i64", "f64", "i1"):
        return ScalarParam(parameter.name, words[0])
    if len(words) > 1 and words[0] in BY_NAME:
        rank = int(words[1])
        unit = 0 if words[-1] == "T" else rank - 1
        return ArrayParam(parameter.name, BY_NAME[words[0]], rank, unit)
    return ConstParam(parameter.name, parameter.default)


def expectation(kernel):
    """Line, code and message of the error, and the comments of the kernel."""
    lines, first = inspect.getsourcelines(kernel)
    for number, line in enumerate(lines, first):
        found = re.search(r"# ERROR: (\w+) (.*)", line)
        if found:
            return number, *found.groups(), lines
    whole = Path(inspect.getsourcefile(kernel)).read_text().splitlines()
    for number, line in enumerate(whole, 1):
        found = re.search(rf"# ERROR\({kernel.__name__}\): (\w+) (.*)", line)
        if found:
            return number, *found.groups(), lines
    raise AssertionError(f"{kernel.__name__} says no error")


def comments(lines, kind):
    pattern = re.compile(rf"\s*# {kind}: (.*)")
    return [found.group(1) for line in lines if (found := pattern.match(line))]


def test_there_are_many():
    assert len(CASES) >= 150


@pytest.mark.parametrize("kernel", CASES)
def test_message(kernel):
    line, code, message, lines = expectation(kernel)
    with pytest.raises(CompileError) as caught:
        build_module(kernel, signature_of(kernel))
    error, drawing = caught.value, str(caught.value)
    assert (error.code, error.line) == (code, line), drawing
    assert error.message.startswith(message), drawing
    assert error.file == inspect.getsourcefile(kernel)
    underlined = error.source_line[error.column - 1 :][: error.length]
    for text in comments(lines, "CARET"):
        assert underlined == text, drawing
    for text in comments(lines, "CHECK"):
        assert text in drawing, drawing
    assert error.__cause__ is None
    assert error.__suppress_context__


@pytest.mark.parametrize("kernel", CASES)
def test_traceback_ends_at_the_users_line(kernel):
    with pytest.raises(CompileError) as caught:
        build_module(kernel, signature_of(kernel))
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (caught.value.file, caught.value.line)


def test_every_code_has_a_page():
    pages = Path(__file__).parents[2] / "docs" / "errors"
    codes = {expectation(case.values[0])[1] for case in CASES}
    missing = sorted(code for code in codes if not (pages / f"{code}.md").exists())
    assert not missing
