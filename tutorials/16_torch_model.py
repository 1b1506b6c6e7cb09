"""16  A torch model.  You will: put kernels into a model that trains and compiles.

Needs 05 and 06.  Runs in 15 seconds if torch is installed (the extra `torch` of xetl);
otherwise it says how to install it.
"""

# %% [markdown]
# ## What torch must know
# A model is a graph of *operators*.  To train, torch wants the derivative of each; to
# compile, the shape and dtype of each result without running it:
#
#                     forward                    backward
#         x ---> [ linear ] ---> [ gated ] ---> [ linear ] ---> loss
#                    |               |              |
#                    v               v              v
#        dx <--- [   ...  ] <--- [ kernel ] <--- [   ...  ] <--- 1
#
# `xetl.ops` has functions like torch's, with derivatives.  `@xetl.op` makes an operator
# of a function of yours.

# %%
import sys

import numpy as np

import xetl
from xetl import ops, xetile
from xetl.xetile import cdiv, constexpr

try:
    import torch
except ImportError:
    command = f"{sys.executable} -m pip install -e '.[torch]'"
    print(f"torch is not installed: this tutorial needs it (in the clone: {command})")
    sys.exit(0)

# %% [markdown]
# ## Two kernels
# A gated activation, as language models have it: y = silu(a) * b, with
# silu(a) = a * sigmoid(a).  Its derivative:
#
#     da = dy * b * s * (1 + a * (1 - s))     with s = sigmoid(a)
#     db = dy * a * s


# %%
@xetile.kernel(grid=lambda k: cdiv(k.A.shape[0], k.N))
def forward(A, B, Y, N: constexpr = 1024):
    at = xetile.program_id(0) * N
    a = xetile.load_tile(xetile.init_tile(A, [at], (N,)))
    b = xetile.load_tile(xetile.init_tile(B, [at], (N,)))
    xetile.store_tile(a * xetile.sigmoid(a) * b, xetile.init_tile(Y, [at], (N,)))


@xetile.kernel(grid=lambda k: cdiv(k.A.shape[0], k.N))
def backward(DY, A, B, DA, DB, N: constexpr = 1024):
    at = xetile.program_id(0) * N
    dy = xetile.load_tile(xetile.init_tile(DY, [at], (N,)))
    a = xetile.load_tile(xetile.init_tile(A, [at], (N,)))
    b = xetile.load_tile(xetile.init_tile(B, [at], (N,)))
    s = xetile.sigmoid(a)
    da = dy * b * s * (1.0 + a * (1.0 - s))
    xetile.store_tile(da, xetile.init_tile(DA, [at], (N,)))
    xetile.store_tile(dy * a * s, xetile.init_tile(DB, [at], (N,)))


# %% [markdown]
# ## An operator
# `out="a"` says that the result has the shape and dtype of a.  Nothing else is needed
# for `torch.compile`.


# %%
def gated_backward(grad, a, b):
    da, db = torch.empty_like(a), torch.empty_like(b)
    flat = (each.reshape(-1) for each in (grad.contiguous(), a, b, da, db))
    backward(*flat)
    return da, db


@xetl.op("tutorial::gated", out="a", backward=gated_backward)
def gated(a, b, out):
    forward(a.reshape(-1), b.reshape(-1), out.reshape(-1))


# %% [markdown]
# ## Call it

# %%
torch.manual_seed(0)
a, b = (torch.randn(50, 70, dtype=torch.float32, requires_grad=True) for _ in range(2))
y = gated(a, b)
y.square().sum().backward()
found = y.detach(), a.grad.clone(), b.grad.clone()

a.grad = b.grad = None
expected = torch.nn.functional.silu(a) * b
expected.square().sum().backward()
for ours, theirs in zip(found, (expected.detach(), a.grad, b.grad)):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)

x = a.detach().numpy()
s = 1 / (1 + np.exp(-x.astype(np.float64)))
np.testing.assert_allclose(found[0], x * s * b.detach().numpy(), rtol=1e-4, atol=1e-5)
print("the operator and its derivative: equal to torch's and NumPy's")

# %% [markdown]
# `torch.library.opcheck` tries what goes wrong most often: a wrong shape or dtype in
# the description, arguments that are written, a derivative that is not registered.

# %%
torch.library.opcheck(torch.ops.tutorial.gated, (a.detach(), b.detach()))

# %% [markdown]
# ## A model
# One block of a transformer without its attention: norm, two linear layers, a gate, a
# linear layer, and the input added.  With `own` it uses xetl, else torch.


# %%
class Block(torch.nn.Module):
    """x + down(silu(gate(norm(x))) * up(norm(x)))."""

    def __init__(self, width, hidden, own):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, hidden, bias=False)
        self.gate = torch.nn.Linear(width, hidden, bias=False)
        self.down = torch.nn.Linear(hidden, width, bias=False)
        self.own = own

    def forward(self, x):
        """By xetl or by torch."""
        if not self.own:
            h = self.norm(x)
            h = torch.nn.functional.silu(self.gate(h)) * self.up(h)
            return x + self.down(h)
        h = ops.layer_norm(x, weight=self.norm.weight, bias=self.norm.bias)
        h = gated(ops.linear(h, self.gate.weight), ops.linear(h, self.up.weight))
        return x + ops.linear(h, self.down.weight)


def model(own):
    torch.manual_seed(1)
    return torch.nn.Sequential(*(Block(128, 256, own) for _ in range(2)))


def losses(net, steps=5):
    optimizer = torch.optim.SGD(net.parameters(), 1.0)
    torch.manual_seed(2)
    x, target = torch.randn(256, 128), torch.randn(256, 128)
    said = []
    for _ in range(steps):
        loss = (net(x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        said.append(loss.item())
    return said


ours, theirs = losses(model(own=True)), losses(model(own=False))
np.testing.assert_allclose(ours, theirs, rtol=1e-4)
assert ours[-1] < ours[0]
print("losses of five steps, equal to torch's:", *(f"{loss:.4f}" for loss in ours))

# %% [markdown]
# ## Look inside: torch.compile
# `fullgraph=True` fails if torch has to leave its graph.  It does not: each function of
# xetl is one node.  (`aot_eager` makes the graphs of forward and backward and runs
# them as they are; the usual backend, `inductor`, needs a C++ compiler.)

# %%
nodes = []


def record(graph, inputs):
    nodes.extend(str(n.target) for n in graph.graph.nodes if n.op == "call_function")
    return graph.forward


net = model(own=True)
x = torch.randn(256, 128)
with torch.no_grad():
    compiled = torch.compile(net, fullgraph=True, backend=record)(x)
    torch.testing.assert_close(compiled, net(x))
print(*nodes[: len(nodes) // 2], sep="\n")
assert sum("gated" in node for node in nodes) == 2

net = model(own=True)
trained = losses(torch.compile(net, fullgraph=True, backend="aot_eager"))
np.testing.assert_allclose(trained, ours, rtol=1e-5)
print("compiled: the same losses")

# %% [markdown]
# ## Measure
# One step of training: forward, backward, and the new weights.

# %%
with_xetl, with_torch = model(own=True), model(own=False)
print(xetl.do_bench({
    "xetl": lambda: losses(with_xetl, 1),
    "torch": lambda: losses(with_torch, 1),
}))  # fmt: skip

# %% [markdown]
# **Try it:** let `gated` save s, and not compute it again (`ctx` as the first parameter
# of the backward function has what was saved).
