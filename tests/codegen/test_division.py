"""No integer division that LLVM gets may stop the process."""

import subprocess
import sys

import numpy as np
import pytest

from xetl import xetile
from xetl.codegen.division import check_divisions
from xetl.codegen.types import I32, ll
from xetl.errors import InternalError
from xetl.xetile import constexpr

WIDE = ll.VectorType(I32, 4)


def function(type_):
    """A module, the builder of its function, and two arguments."""
    module = ll.Module()
    kind = ll.FunctionType(ll.VoidType(), [type_, type_])
    made = ll.Function(module, kind, "f")
    return module, ll.IRBuilder(made.append_basic_block()), *made.args


def const(type_, number):
    is_vector = isinstance(type_, ll.VectorType)
    return ll.Constant(type_, [number] * type_.count if is_vector else number)


def guarded(b, value, *numbers, tested=None):
    found = value
    for number in numbers:
        tests = b.icmp_signed("==", tested or value, const(value.type, number))
        found = b.select(tests, const(value.type, 1), found)
    return found


@pytest.mark.parametrize("type_", [I32, WIDE], ids=str)
@pytest.mark.parametrize("name", ["sdiv", "udiv", "srem", "urem"])
def test_a_divisor_without_a_guard_is_refused(name, type_):
    module, b, left, right = function(type_)
    getattr(b, name)(left, right)
    with pytest.raises(InternalError, match="may trap"):
        check_divisions(module)


@pytest.mark.parametrize("type_", [I32, WIDE], ids=str)
def test_a_guard_of_another_value_is_none(type_):
    module, b, left, right = function(type_)
    b.udiv(left, guarded(b, right, 0, tested=left))
    with pytest.raises(InternalError, match="may trap"):
        check_divisions(module)


@pytest.mark.parametrize("number", [0, -1])
def test_constants_that_trap_are_refused(number):
    module, b, left, _ = function(I32)
    b.sdiv(left, I32(number))
    with pytest.raises(InternalError, match="may trap"):
        check_divisions(module)


def test_a_signed_division_wants_both_guards():
    module, b, left, right = function(I32)
    b.sdiv(left, guarded(b, right, 0))
    with pytest.raises(InternalError, match="may trap"):
        check_divisions(module)


@pytest.mark.parametrize("type_", [I32, WIDE], ids=str)
def test_what_is_guarded_or_constant_passes(type_):
    module, b, left, right = function(type_)
    b.udiv(left, guarded(b, right, 0))
    b.srem(left, guarded(b, right, 0, -1))
    b.sdiv(left, guarded(b, right, -1, 0))
    b.udiv(left, const(type_, -1))
    b.sdiv(left, const(type_, 7))
    # A value that is chosen itself, for another reason.
    chosen = b.select(b.icmp_signed("<", left, right), left, right)
    b.udiv(left, guarded(b, chosen, 0))
    check_divisions(module)


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", ["reference", "cpu", pytest.param("xegpu", marks=pytest.mark.slow)]
)
def test_lanes_that_do_not_count_divide_by_anything(backend):
    """In a process of its own: a division that traps ends it."""
    command = [sys.executable, __file__.replace("test_division", "divisions"), backend]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@xetile.kernel
def by_constants(X, OUT, N: constexpr, DIVISORS: constexpr):
    x = xetile.load_tile(xetile.init_tile(X, [0], (N,)))
    for i, divisor in enumerate(DIVISORS):
        xetile.store_tile(x // divisor, xetile.init_tile(OUT[0, i], [0], (N,)))
        xetile.store_tile(x % divisor, xetile.init_tile(OUT[1, i], [0], (N,)))
        n = X[1]
        OUT[0, i, N] = n // divisor
        OUT[1, i, N] = n % divisor


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16], ids=str)
def test_constants_divide_exactly(dtype):
    info, divisors = np.iinfo(dtype), (1, 2, 3, 64, -4)
    some = [
        info.min,
        -7,
        info.min + 1,
        -65,
        -64,
        -63,
        -2,
        -1,
        0,
        1,
        2,
        63,
        64,
        info.max,
    ]
    x = np.array([each for each in some if each >= info.min], dtype)
    divisors = divisors[: len(divisors) - (not info.min)]
    out = np.zeros((2, len(divisors), len(x) + 1), dtype)
    by_constants[1](x, out, N=len(x), DIVISORS=divisors)
    y = np.append(x, x[1])
    for i, divisor in enumerate(divisors):
        assert (out[0, i] == y // dtype(divisor)).all(), divisor
        assert (out[1, i] == y % dtype(divisor)).all(), divisor


def test_powers_of_two_shift():
    @xetile.kernel
    def halved(X):
        X[0] = X[0] // 8 + X[1] % 16

    text = halved.ir("llvm", "i64[N]")
    assert "ashr" in text
    assert "sdiv" not in text
