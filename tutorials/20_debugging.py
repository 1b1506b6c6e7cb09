"""20  Debugging.  You will: interpret a kernel, check it, print in it, and stop in it.

Needs 01.  Runs on any CPU in a few seconds.
"""

# %% [markdown]
# ## Three kinds of mistakes
#
#     the kernel is wrong     the compiler says so, at your line, before anything runs
#     the call is wrong       the launch says so, before anything is written
#     the result is wrong     that is what this tutorial is about
#
#                     kernel[grid](...)                kernel.interpret(..., grid=)
#                     machine code                     the same IR, in Python
#     speed           all of it                        far slower
#     outside         reads 0, is not stored           is reported
#     races           happen                           are reported
#     print, assert   yes                              yes
#     breakpoint()    is skipped                       stops
#
# So: make the arrays small, interpret, and only then look further.

# %%
import contextlib
import io
import sys

import numpy as np

import xetl
from xetl import errors, xetile
from xetl.xetile import constexpr

# %% [markdown]
# ## A wrong kernel
# It should give the average of each number and its two neighbours.  It gives wrong
# numbers at the right end.


# %%
@xetile.kernel
def smooth(X, Y, SIZE: constexpr = 8):
    first = xetile.program_id(0) * SIZE
    place = first + xetile.arange(SIZE)
    left, middle, right = X[place - 1], X[place], X[place + 1]
    xetile.store_tile(
        (left + middle + right) / 3, xetile.init_tile(Y, [first], (SIZE,))
    )


x = np.arange(16, dtype=np.float32)
y = np.empty_like(x)
smooth[2](x, y)
expected = np.convolve(np.pad(x, 1, "edge"), np.full(3, 1 / 3), "valid")
print("wrong at", np.flatnonzero(~np.isclose(y, expected)).tolist())

# %% [markdown]
# ## Interpret
# `interpret` runs one program after the other and checks each access.  In a launch,
# elements outside of the array read as 0 silently.  On the left this does no harm,
# because x[0] is 0; on the right it gives a wrong number.


# %%
def report(kernel, *arguments, **options):
    """What `interpret` finds."""
    try:
        kernel.interpret(*arguments, **options)
    except errors.CheckError as error:
        print(error)
        return error.code
    return None


assert report(smooth, x, y, grid=2) == "X0821"

# %% [markdown]
# ## The repaired kernel


# %%
@xetile.kernel
def smooth2(X, Y, SIZE: constexpr = 8):
    first, last = xetile.program_id(0) * SIZE, X.shape[0] - 1
    place = first + xetile.arange(SIZE)
    left = X[xetile.maximum(place - 1, 0)]
    right = X[xetile.minimum(place + 1, last)]
    middle = X[xetile.minimum(place, last)]
    xetile.store_tile(
        (left + middle + right) / 3, xetile.init_tile(Y, [first], (SIZE,))
    )


assert report(smooth2, x, y, grid=2) is None
smooth2[2](x, y)
np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)
print("repaired: equal to NumPy's")

# %% [markdown]
# ## Races
# Programs run in any order, and at the same time.  No program may read or write an
# element that another one writes, except with atomics.  Smoothing *in place* looks
# harmless, and it works for one program.

# %%
assert report(smooth2, x.copy(), x.copy(), grid=2) is None
z = x.copy()
assert report(smooth2, z, z, grid=2) == "X0823"

# %% [markdown]
# ## Print and assert
# They work in machine code as well.  The `if` chooses the program that prints, because
# the output of all programs would be too long.


# %%
@xetile.kernel
def root(X, Y, SIZE: constexpr = 8):
    first = xetile.program_id(0) * SIZE
    x = xetile.load_tile(xetile.init_tile(X, [first], (SIZE,)))
    if xetile.program_id(0) == 1:
        xetile.device_print("program 1 has", x)
    assert x.min() >= 0, "a negative number has no root"
    xetile.store_tile(xetile.sqrt(x), xetile.init_tile(Y, [first], (SIZE,)))


root[2](x, y)
code = None
try:
    root[2](x - 9, y)
except errors.XetlError as error:
    print(error)
    code = error.code
assert code is not None

# %% [markdown]
# ## Stop
# `breakpoint()` in a kernel, or a breakpoint of your editor, stops the interpreter
# there; then you look at tiles and vectors as NumPy arrays.  `n` goes to the next line.
# A person would type the commands; here a script does.


# %%
@xetile.kernel
def running(X, Y, SIZE: constexpr = 4):
    total = xetile.zeros((SIZE,), xetile.f32)
    for row in range(X.shape[0]):
        x = xetile.load_tile(xetile.init_tile(X[row], [0], (SIZE,)))
        if row == 2:
            breakpoint()
        total += x
    xetile.store_tile(total, xetile.init_tile(Y, [0], (SIZE,)))


X, Y = np.arange(16, dtype=np.float32).reshape(4, 4), np.empty(4, np.float32)
shown = io.StringIO()
sys.stdin = io.StringIO("p row\np x\np total\nn\nn\np total\nc\n")
with contextlib.redirect_stdout(shown):
    running.interpret(X, Y, grid=1)
sys.stdin = sys.__stdin__

print(shown.getvalue())
assert np.array_equal(Y, X.sum(0))
assert "12., 15., 18., 21." in shown.getvalue()

# %% [markdown]
# ## Measure
# The interpreter is for small arrays.

# %%
launch, interpreted = (
    xetl.do_bench(call, return_mode="min")
    for call in (lambda: smooth2[2](x, y), lambda: smooth2.interpret(x, y, grid=2))
)
print(f"launch {launch:.4f} ms, interpreted {interpreted:.2f} ms")

# %% [markdown]
# ## Look inside
# When the interpreter and machine code differ, the compiler is wrong, and `xetl repro`
# makes one file to report it with.  When both are wrong in the same way, it is the
# kernel: compare the IR with what you meant.

# %%
for line in running.ir("xetile", X, Y).splitlines():
    if "_tile" in line:
        print(line.strip().split(" : ")[0])

# %% [markdown]
# ## Change one thing
# `XETL_INTERPRET=1` in the environment interprets all launches of a script, which you
# need not change.  Only `kernel.interpret` also looks for mistakes.
# `XETL_DUMP=after:cse` prints the IR after a pass.
#
# **Try it:** run 10 with `XETL_INTERPRET=1`.
