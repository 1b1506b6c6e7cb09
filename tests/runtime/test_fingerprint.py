"""What changes the key of the disk cache, and what does not."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.conftest import read_names
from xetl import xetile
from xetl.frontend import build_module
from xetl.language import dtypes
from xetl.language.contents import content, source_text
from xetl.language.reads import Reads
from xetl.language.signature import ArrayParam, ConstParam, ScalarParam, Signature
from xetl.runtime.fingerprint import Fingerprint, base_of

BACKEND: Any = types.SimpleNamespace(
    name="fake", cache_key=lambda target: "1.0", stops_at_breakpoints=False
)
A32 = ArrayParam("A", dtypes.f32, 2, 1)


def key(
    fn: Callable[..., Any], *params: Any, target: str = "host", compiles: bool = False
) -> str:
    signature = Signature(params)
    base = base_of(fn, signature, BACKEND, target)
    reads = Reads(fn, base.constants)
    if compiles:
        build_module(fn, signature, reads=reads)
    else:  # no kernel at all, but functions with names
        for each in (fn, *filter(callable, base.constants.values())):
            read_names(reads, each)
    again = base.answered(reads.questions)
    assert again is not None
    assert again.digest == Fingerprint(base, reads).digest
    assert again.reads.questions == reads.questions
    return again.digest


def module(text: str, tmp_path: Path, name: str = "user") -> Any:
    """A module made of ``text``, from a file as users have them."""
    path = tmp_path / f"{name}{len(list(tmp_path.iterdir()))}.py"
    path.write_text(textwrap.dedent(text))
    made = types.ModuleType(name)
    made.__file__ = str(path)
    exec(compile(path.read_text(), str(path), "exec"), made.__dict__)
    return made


KERNEL = """
from xetl import xetile
import math
N = 5
class Sizes:
    BM = 32
    OTHER = 1
@xetile.function
def helper(v):
    return inner(v) + N
@xetile.function
def inner(v):
    return v * 2
marked = xetile.function(lambda v: v + 3)
unused = 7
def k(A):
    tile = xetile.init_tile(A, [0, 0], (16, 16))
    x = helper(xetile.load_tile(tile)) + math.pi + Sizes.BM
    y = marked(x)
    def nested(v):
        return xetile.exp(v) + N
    xetile.store_tile(nested(y), tile)
"""


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("unused = 7", "unused = 8", False),
        ("OTHER = 1", "OTHER = 2", False),
        ("import math", "import math # comment", False),
        ("N = 5", "N = 6", True),
        ("N = 5", "N = 5.0", True),
        ("v * 2", "v * 3", True),
        ("v + 3", "v + 4", True),
        ("BM = 32", "BM = 64", True),
        ("xetile.exp", "xetile.log", True),
        ("nested(y)", "y", True),
    ],
)
def testsource_text(old: str, new: str, changes: bool, tmp_path: Path) -> None:
    before = module(KERNEL, tmp_path).k
    after = module(KERNEL.replace(old, new, 1), tmp_path).k
    keys = [key(each, A32, compiles=True) for each in (before, after)]
    assert (keys[0] != keys[1]) == changes


SHAPES = """
def decorated(f): return f
def multi_line(
    A,
    B,
):
    x = (A +
B)
    assert x, "first"

    # a comment
    if False:
        x = 1

@decorated
def decorated_one(A): return A
many = [lambda v: v + 1,
        lambda v: v
        + 2]
class Holder:
    def method(self):
        '''
  text that is indented less
        '''
        def inner():
            return 1
        return inner
    other = 2
"""


def test_the_text_of_functions(tmp_path: Path) -> None:
    made = module(SHAPES, tmp_path)
    for fn in (made.multi_line, made.decorated_one, made.Holder.method):
        assert source_text(fn) == inspect.getsource(fn).rstrip()
    assert source_text(made.many[0]) == "many = [lambda v: v + 1,"
    assert source_text(made.many[1]).split() == ["lambda", "v:", "v", "+", "2]"]
    assert source_text(made.multi_line).endswith("x = 1")
    assert source_text(eval("lambda v: v")) == "<lambda>"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = 1", "x = 2"),
        ("first", "second"),
        ("A +", "A -"),
        ("# a comment", "# another"),
        ("indented less", "indented more"),
        ("return 1", "return 2"),
        ("other = 2", "other = 3"),
    ],
)
def test_a_change_of_any_line_counts(old: str, new: str, tmp_path: Path) -> None:
    before, after = module(SHAPES, tmp_path), module(SHAPES.replace(old, new), tmp_path)
    for get in (lambda m: m.multi_line, lambda m: m.Holder.method):
        first, second = get(before), get(after)
        changed = inspect.getsource(first) != inspect.getsource(second)
        assert (key(first) != key(second)) == changed


def test_it_is_the_same_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "made.py"
    path.write_text(KERNEL)
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import made
from tests.runtime import test_fingerprint as test
from xetl.runtime import fingerprint
fingerprint.stamp = lambda package: "somebody may be editing it while this runs"
print(test.key(made.k, test.A32, compiles=True))
"""
    keys = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1


def plain(A): ...


def test_signature_and_target() -> None:
    keys = [
        key(plain, A32),
        key(plain, ArrayParam("A", dtypes.f64, 2, 1)),
        key(plain, ArrayParam("A", dtypes.f32, 2, 0)),
        key(plain, ArrayParam("A", dtypes.f32, 2, None)),
        key(plain, ArrayParam("A", dtypes.f32, 2, 1, alias=0)),
        key(plain, ScalarParam("A", "i64")),
        key(plain, ScalarParam("A", "f64")),
        key(plain, A32, target="avx2"),
    ]
    assert len(set(keys)) == len(keys)
    assert key(plain, A32) == keys[0]


def test_compile_time_values() -> None:
    values = [1, 1.0, True, None, "1", 0.0, -0.0, (1, 2), (1.0, 2), dtypes.f32, "f32"]
    values += [xetile.exp, xetile.log, math.sqrt, lambda v: v, lambda v: v + 1]
    values += [xetile.wg_map([1, 2], [3, 4]), xetile.wg_map([2, 1], [3, 4])]
    values += [xetile.function(lambda v: v * 5), np.float32]
    keys = [key(plain, ConstParam("A", value)) for value in values]
    assert len(set(keys)) == len(keys)
    assert [key(plain, ConstParam("A", value)) for value in values] == keys


def test_closures() -> None:
    def make(factor: object) -> Callable[..., Any]:
        return lambda v: v * factor

    same = [key(plain, ConstParam("A", make(2))) for _ in range(2)]
    assert same[0] == same[1]
    assert key(plain, ConstParam("A", make(3))) != same[0]
    two = ConstParam("A", make(make(2)))
    three = ConstParam("A", make(make(3)))
    assert key(plain, two) != key(plain, three)


def test_of_opaque_objects_the_class_counts() -> None:
    first, other = type("First", (), {}), type("Other", (), {})
    assert content(first()) == content(first()) != content(other())


def test_the_level_of_a_kernel() -> None:
    def leveled(A): ...

    before = key(leveled)
    leveled.__xetl_subgroups__ = (2, 2)
    assert key(leveled) != before
