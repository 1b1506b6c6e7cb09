"""`while`, `break`, `continue` and early `return`: the same as Python."""

import pytest
from programs import as_kernel, as_python

DATA = [3, 5, -2, 7, 0, 4, -9, 1]


def count_down(X, n):
    total = 0
    while n > 0:
        total = total + n
        n = n - 3
    return total


def collatz(X, n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 100:
            break
    return steps


def first_negative(X, n):
    for i in range(n):
        if X[i] < 0:
            return i
    return -1


def found_and_kept(X, n):
    found, seen = -1, 0
    for i in range(n):
        seen = seen + 1
        if X[i] == 0:
            found = i
            break
        seen = seen + X[i]
    return found * 100 + seen


def skips(X, n):
    total = 0
    for i in range(n):
        if X[i] < 0:
            continue
        if X[i] > 4:
            total = total + 100
            continue
        total = total + X[i]
    return total


def skips_in_while(X, n):
    i, total = 0, 0
    while i < n:
        i += 1
        if X[i - 1] % 2 == 0:
            continue
        total += X[i - 1]
    return total


def mixed_paths(X, n):
    total = 0
    for i in range(n):
        if X[i] > 0:
            if X[i] > 6:
                break
            if X[i] == 5:
                continue
            total += 1
        else:
            if X[i] == -9:
                return 1000 + total
        total += 10
    return total


def downwards(X, n):
    for i in range(n - 1, -1, -2):
        if X[i] == 7:
            return i
    return -1


def nested(X, n):
    total = 0
    for i in range(n):
        for j in range(n):
            if j > i:
                break
            if X[j] == 0:
                return total * 10 + j
            total += 1
        total += 1000
    return total


def forever(X, n):
    i = 0
    while True:
        i += 1
        if i * i > n:
            break
        if X[i] == 4:
            return -i
    return i


def always_returns(X, n):
    i = 0
    while True:
        i = i + 2
        if i > n:
            return i


def returns_on_all_paths(X, n):
    if n > 5:
        if X[0] > n:
            return 1
        return 2
    if n == 3:
        return 3
    if n == 2:
        n = n + 1
    else:
        return n * 7
    return n


def partly_returns(X, n):
    x = 5
    if n > 3:
        if X[1] == 5:
            return x
        x = 6
    y = x + n
    if n == 2:
        y = y * 2
    return y


def walrus_test(X, n):
    i = 0
    while (value := X[i]) > 0:
        i = i + 1
    return i * 100 + value


def walrus_with_break(X, n):
    i, last = 0, 0
    while (value := X[i]) != 0:
        if i == n:
            break
        last = value
        i = i + 1
    return i * 100 + last


def unrolled(X, n):
    total = 0
    for i in (0, 1, 2, 3, 4):
        if X[i] < 0:
            continue
        if i == n:
            break
        total = total * 10 + X[i]
    return total


def unrolled_return(X, n):
    for i in (0, 1, 2, 3):
        if i == n:
            return X[i]
    return -5


def pruned(X, n):
    total, debug = 0, False
    for i in range(n):
        if debug:
            break
        total += X[i]
    return total


def short_circuit(X, n):
    i = 0
    while i < n and not (X[i] < 0 or X[i] == 7):
        i += 1
    both = n and i
    either = (n - n) or 40
    return i + 100 * both + 10000 * either


def helper_in_loop(X, n):
    def classify(v):
        if v < 0:
            return -1
        if v == 0:
            return 0
        return 1

    total = 0
    for i in range(n):
        kind = classify(X[i])
        if kind == 0:
            continue
        total = total * 2 + kind
    return total


def chained(X, n):
    i = 0
    while 0 <= i < n != 4:
        i += 1
    return i


PROGRAMS = [
    value
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__ and callable(value)
]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_python(program, n):
    if program is collatz and n == 0:
        n = 27
    assert as_kernel(program, DATA, n, "reference") == as_python(program, DATA, n)


@pytest.mark.parametrize("program", PROGRAMS)
def test_on_the_cpu(program):
    for n in (0, 1, 3, 8):
        n = max(n, 1) if program is collatz else n
        assert as_kernel(program, DATA, n, "cpu") == as_python(program, DATA, n)
