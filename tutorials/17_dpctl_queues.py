"""17  dpctl queues.  You will: launch on a device of your choice, and not wait.

Needs 01.  Runs in about ten seconds if dpctl is installed (the extra `xegpu` of xetl);
otherwise it says how to install it.  Without a GPU it uses the CPU through Intel's
OpenCL driver.
"""

# %% [markdown]
# ## Devices, queues and memory
#
#     host  ---- kernel[grid](..., queue=q, wait=False) ----> queue q ----> device
#       |                                                        |
#       |  goes on at once                                       | runs launches
#       |                                                        | one after another
#     event.wait()  <--------------------------------------------+
#
# A *queue* belongs to a device.  USM memory (*unified shared memory*) belongs to a
# queue: `device` lives on the device, `host` with the host, `shared` moves where it is
# used.  A launch goes to a queue, and all of its memory must be readable there.

# %%
import re
import sys
from collections import Counter
from time import perf_counter

import numpy as np

from xetl import errors, xetile
from xetl.xetile import cdiv, constexpr

try:
    import dpctl
    import dpctl.memory
except ImportError:
    command = f"{sys.executable} -m pip install -e '.[xegpu]'"
    print(f"dpctl is not installed: this tutorial needs it (in the clone: {command})")
    sys.exit(0)


# %% [markdown]
# ## A kernel
# It repeats its work, so that a launch takes some time.


# %%
@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], 1024))
def steps(X, Y, count, SIZE: constexpr = 1024):
    first = xetile.program_id(0) * SIZE
    x = xetile.load_tile(xetile.init_tile(X, [first], (SIZE,)))
    for _ in range(count):
        x = x + 0.5 * (1.0 - x * x) * x  # goes to 1
    xetile.store_tile(x, xetile.init_tile(Y, [first], (SIZE,)))


# %% [markdown]
# ## NumPy arrays on a device
# `backend="xegpu"` takes the first GPU, or else the CPU.  A device that can read memory
# of the host uses the array in place.  For other devices the array is copied there and
# back.

# %%
x = np.linspace(0.1, 1.5, 100_000, dtype=np.float32)
y, expected = np.empty_like(x), x.copy()
for _ in range(10):
    expected += 0.5 * (1 - expected * expected) * expected
try:
    steps(x, y, 10, backend="xegpu")
except errors.XetlError as error:
    print(f"no device here: {str(error).splitlines()[0]}")
    sys.exit(0)
np.testing.assert_allclose(y, expected, rtol=1e-5)
print("xegpu: equal to NumPy's")

# %% [markdown]
# ## A queue of your own

# %%
for device in dpctl.get_devices():
    print(device.backend, device.device_type, device.name)
queue = dpctl.SyclQueue()
print("queue on", queue.sycl_device.name)
y[...] = 0
steps(x, y, 10, queue=queue, backend="xegpu")
np.testing.assert_allclose(y, expected, rtol=1e-5)

# %% [markdown]
# ## USM memory
# `np.frombuffer` sees memory that the host can read.  Arrays of dpnp and tensors of
# `torch.xpu` say where they live, and a launch goes there; a NumPy view does not say
# it, so the queue is named.

# %%
memory = [dpctl.memory.MemoryUSMShared(x.nbytes, queue=queue) for _ in range(2)]
usm_x, usm_y = (np.frombuffer(each, np.float32) for each in memory)
usm_x[:] = x
there = {"backend": "xegpu", "queue": queue}
steps(usm_x, usm_y, 10, **there)
np.testing.assert_allclose(usm_y, expected, rtol=1e-5)
print("USM memory: equal to NumPy's")

# %% [markdown]
# ## Without waiting
# `wait=False` returns an event as soon as the launch is in the queue.  Launches of one
# queue run in order, so three of them in a row need one `wait` at the end.  (Do not
# read the results, or change the arguments, before it.)


# %%
def three(wait):
    """Three launches: the time until the host goes on, and until all is done."""
    start = perf_counter()
    steps(usm_x, usm_y, 2000, wait=wait, **there)
    steps(usm_y, usm_x, 2000, wait=wait, **there)
    event = steps(usm_x, usm_y, 2000, wait=wait, **there)
    goes_on = perf_counter() - start
    if not wait:
        event.wait()
        assert event.done
    return goes_on * 1e3, (perf_counter() - start) * 1e3


for wait in (True, False):
    three(wait)
    goes_on, done = min(three(wait) for _ in range(3))
    print(f"wait={wait!s:5}: on after {goes_on:6.2f} ms, done after {done:6.2f} ms")
np.testing.assert_allclose(usm_y, 1, rtol=1e-5)

# %% [markdown]
# ## Look inside
# What runs is SPIR-V, which the device's driver turns into machine code when a kernel
# is first launched in a process.

# %%
text = steps.ir("spirv", x, y, 10, backend="xegpu")
words = Counter(re.findall(r"\bOp\w+", text))
print(f"{words.total()} instructions, the most frequent ones:", words.most_common(4))

# %% [markdown]
# ## Change one thing: use the time
# While the device works, the host does something else: here a sum in NumPy.

# %%
start = perf_counter()
event = steps(usm_x, usm_y, 2000, wait=False, **there)
total = sum(float(np.sqrt(x).sum()) for _ in range(100))
alone = perf_counter() - start
event.wait()
both = perf_counter() - start
print(f"host done after {alone * 1e3:.2f} ms, both {both * 1e3:.2f} ms")

# %% [markdown]
# **Try it:** with a GPU and a CPU driver, two queues: half of the array on each, with
# `wait=False`, and then both events.
