"""Programs that wait for each other by atomics do not race; those that seem to do."""

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import CheckError
from xetl.xetile import constexpr, i32


@xetile.kernel
def sum_with_a_lock(X, OUT, Lock, SEM: constexpr, BEFORE: constexpr, AFTER: constexpr):
    out = xetile.init_tile(OUT, [0, 0], (1, 24))
    lock = xetile.init_tile(Lock, [0], (1,))
    x = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0), 0], (1, 24)))
    if BEFORE:
        x += xetile.load_tile(out)
    while xetile.atomic_cas(lock, 0, 1)[0] == 1:
        pass
    xetile.store_tile(xetile.load_tile(out) + x, out)
    xetile.atomic_rmw_tile("xchg", xetile.full((1,), 0, i32), lock, sem=SEM)
    if AFTER:
        xetile.store_tile(x, out)


def summed(*how):
    x, out = np.ones((3, 24), np.float32), np.zeros((1, 24), np.float32)
    sum_with_a_lock.interpret(x, out, np.zeros(1, np.int32), *how, grid=3)
    return out


def test_a_lock_orders_what_it_guards():
    assert (summed("release", False, False) == 3).all()


@pytest.mark.parametrize(
    ("sem", "before", "after"),
    [
        ("relaxed", False, False),
        ("release", True, False),
        ("release", False, True),
    ],
)
def test_a_lock_orders_nothing_else(sem, before, after):
    with pytest.raises(CheckError) as caught:
        summed(sem, before, after)
    assert (caught.value.code, caught.value.array) == ("X0823", "OUT")


@xetile.kernel
def handed_on(X, Flags, BACK: constexpr):
    """Each program waits for the one before it; it adds to what ``BACK`` has left."""
    i = xetile.program_id(0)
    if i >= BACK:
        flag = xetile.init_tile(Flags, [i - 1], (1,))
        while xetile.atomic_rmw_tile("add", 0, flag, sem="acquire")[0] == 0:
            pass
        X[i] = X[i - BACK] + 1.0
    else:
        X[i] = 1.0
    mine = xetile.init_tile(Flags, [i], (1,))
    xetile.atomic_rmw_tile("xchg", 1, mine, sem="release")


def test_flags_hand_on_what_others_have_left():
    x = np.zeros(4, np.float32)
    handed_on.interpret(x, np.zeros(4, np.int32), 1, grid=4)
    assert x.tolist() == [1, 2, 3, 4]


def test_a_flag_says_nothing_of_programs_that_its_own_did_not_wait_for():
    """Program 1 waited for none, so 2 knows of 1 and not of 0."""
    x = np.zeros(4, np.float32)
    with pytest.raises(CheckError) as caught:
        handed_on.interpret(x, np.zeros(4, np.int32), 2, grid=4)
    assert caught.value.programs == ((0, 0, 0), (2, 0, 0))
