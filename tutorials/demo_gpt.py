"""Demo: a small GPT.  You will: train a language model whose kernels are xetl's.

It learns to write documentation from the docstrings of Python's standard library, byte
by byte, in one or two minutes on two cores.  The same model in plain torch trains
beside it for 100 steps: the losses must agree, and both are timed.  Needs torch (the
extra `torch` of xetl); without it, says how to install it.  `--plot` as well draws
demo_gpt.png; `--quick` trains less; `--compile` also times torch.compile.
"""

# %% [markdown]
# ## The model
# A GPT reads a text and predicts, at each place, the next byte.  Ours has 4 blocks of
# width 128 with 2 heads of attention, 0.8 million parameters in all.  Activations and
# products are bf16; parameters, sums and the loss are f32.
#
# One class is the model for both libraries; it is given the functions that it calls.
# The functions of `xetl.ops` have the names and arguments of torch's.

# %%
import ast
import os
import sys
import sysconfig
import textwrap
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace

# Two libraries with threads of their own share the cores here.  Threads that wait
# must sleep, not spin, or those of one library slow down the other.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np

import xetl
from xetl import ops, xetile
from xetl.xetile import cdiv, constexpr, f32

try:
    import torch
except ImportError:
    command = f"{sys.executable} -m pip install -e '.[torch]'"
    print(f"torch is not installed: this demo needs it (in the clone: {command})")
    sys.exit(0)

QUICK = "--quick" in sys.argv
WIDTH, HEADS, BLOCKS, LENGTH, BATCH = 128, 2, 4, 128, 16
STEPS, COMPARED = (30, 20) if QUICK else (600, 100)
RATE, DECAY = 2e-3, 0.1

# %% [markdown]
# ## The data
# All docstrings of the modules of the standard library, each once and in random order:
# 0.9 MB of English that every Python has.  The last tenth is kept for the test.


# %%
def docstrings():
    """The docstrings of the standard library as one text."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = {}  # keeps each docstring once
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                found[text] = None
    order = np.random.default_rng(0).permutation(len(found))
    return "\n\n".join(np.array(list(found), object)[order])


text = np.frombuffer(docstrings().encode("ascii", "ignore"), np.uint8)
seen, unseen = np.split(text.astype(np.int64), [len(text) * 9 // 10])
print(f"{len(seen):,} bytes to learn from, {len(unseen):,} to test with")


def batches(text, count, seed):
    """Pairs of BATCH pieces of a text, and of the same pieces one byte later."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        starts = rng.integers(0, len(text) - LENGTH, BATCH)
        pieces = text[starts[:, None] + np.arange(LENGTH + 1)]
        yield torch.from_numpy(pieces[:, :-1].copy()), torch.from_numpy(pieces[:, 1:])


# %% [markdown]
# ## A kernel of our own
# In each block a result h is added to x, and the sum is normalised.  As two operations
# this writes the sum to memory and reads it again; one kernel does both while the rows
# are in registers.  Its derivative is one kernel, too.  `@xetl.op` makes an operator of
# torch of the two, as in tutorial 16.


# %%
@xetile.function
def rows_of(X, at, ROWS):
    return xetile.init_tile(X, [at, 0], (ROWS, WIDTH))


@xetile.kernel(grid=lambda k: cdiv(k.X.shape[0], k.ROWS))
def add_norm_forward(X, H, W, B, SUM, NORM, ROWS: constexpr = 16):
    at = xetile.program_id(0) * ROWS
    x = xetile.load_tile(rows_of(X, at, ROWS)).to(f32)
    x = (x + xetile.load_tile(rows_of(H, at, ROWS)).to(f32)).to(SUM.dtype)
    xetile.store_tile(x, rows_of(SUM, at, ROWS))
    x = x.to(f32)
    x = x - x.sum(1, keepdims=True) / WIDTH
    x = x * xetile.rsqrt((x * x).sum(1, keepdims=True) / WIDTH + 1e-5)
    w = xetile.load_tile(xetile.init_tile(W, [0], (WIDTH,)))
    b = xetile.load_tile(xetile.init_tile(B, [0], (WIDTH,)))
    xetile.store_tile((x * w + b).to(NORM.dtype), rows_of(NORM, at, ROWS))


@xetile.kernel(grid=lambda k: k.DW.shape[0])
def add_norm_backward(X, W, DSUM, DNORM, DX, DW, DB, PER_PROGRAM, ROWS: constexpr = 16):
    part = xetile.program_id(0)
    w = xetile.load_tile(xetile.init_tile(W, [0], (WIDTH,)))
    dw, db = xetile.zeros((WIDTH,), f32), xetile.zeros((WIDTH,), f32)
    for at in range(part * PER_PROGRAM, (part + 1) * PER_PROGRAM, ROWS):
        x = xetile.load_tile(rows_of(X, at, ROWS)).to(f32)
        dy = xetile.load_tile(rows_of(DNORM, at, ROWS)).to(f32)
        x = x - x.sum(1, keepdims=True) / WIDTH
        scale = xetile.rsqrt((x * x).sum(1, keepdims=True) / WIDTH + 1e-5)
        x = x * scale
        dw, db, g = dw + (dy * x).sum(0), db + dy.sum(0), dy * w
        along = (g * x).sum(1, keepdims=True) / WIDTH
        dx = (g - g.sum(1, keepdims=True) / WIDTH - x * along) * scale
        dx = dx + xetile.load_tile(rows_of(DSUM, at, ROWS)).to(f32)
        xetile.store_tile(dx.to(DX.dtype), rows_of(DX, at, ROWS))
    xetile.store_tile(dw, xetile.init_tile(DW[part], [0], (WIDTH,)))
    xetile.store_tile(db, xetile.init_tile(DB[part], [0], (WIDTH,)))


def flat(*arrays):
    return [each.reshape(-1, WIDTH) for each in arrays]


def add_norm_gradients(ctx, dsum, dnorm):
    _, _, w, _, total, _ = ctx.saved_tensors
    dx = torch.empty_like(total)
    per_program = cdiv(dx.numel() // WIDTH, 8 * 16) * 16
    parts = cdiv(dx.numel() // WIDTH, per_program)
    dw, db = torch.empty(2, parts, WIDTH)
    total, dsum, dnorm, to = flat(total, dsum.contiguous(), dnorm.contiguous(), dx)
    add_norm_backward(total, w, dsum, dnorm, to, dw, db, per_program)
    return dx, dx, ops.sum(dw, 0), ops.sum(db, 0)


@xetl.op("demo::add_norm", out=("x", "x"), backward=add_norm_gradients)
def add_norm(x, h, weight, bias, out):
    add_norm_forward(*flat(x, h), weight, bias, *flat(*out))


# %% [markdown]
# ## The model, for either library

# %%
WITH_XETL = SimpleNamespace(**{name: getattr(ops, name) for name in ops.__all__})
WITH_XETL.add_norm = add_norm
WITH_TORCH = SimpleNamespace(**vars(torch.nn.functional))


def torch_add_norm(x, h, weight, bias):
    x = x + h
    return x, torch.nn.functional.layer_norm(x, (WIDTH,), weight, bias)


def torch_rope(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


WITH_TORCH.add_norm, WITH_TORCH.rope = torch_add_norm, torch_rope


class GPT(torch.nn.Module):
    """Scores of each next byte; `f` has the functions that compute."""

    def __init__(self, f):
        super().__init__()
        generator = torch.Generator().manual_seed(0)

        def weights(*shape, scale=0.02):
            values = torch.randn(shape, generator=generator) * scale
            return torch.nn.Parameter(values)

        def zeros(*shape):
            return torch.nn.Parameter(torch.zeros(shape))

        self.f = f
        self.table = weights(128, WIDTH)
        speeds = 1000 ** -torch.linspace(0, 1, WIDTH // HEADS // 2)
        angles = torch.arange(LENGTH)[:, None] * speeds
        self.cos, self.sin = angles.cos(), angles.sin()
        self.norms = torch.nn.ParameterList()
        for _ in range(2 * BLOCKS + 1):
            self.norms += [torch.nn.Parameter(torch.ones(WIDTH)), zeros(WIDTH)]
        self.layers = torch.nn.ParameterList()
        for _ in range(BLOCKS):
            for n, k in ((3, 1), (1, 1), (4, 1), (1, 4)):
                scale = 0.02 if k == n == 1 or k == 4 else 0.05
                self.layers += [weights(n * WIDTH, k * WIDTH, scale=scale)]
                self.layers += [zeros(n * WIDTH)]
        self.head = weights(128, WIDTH)

    def linear(self, x, number):
        """A layer, with its parameters in the dtype of x."""
        weight, bias = self.layers[2 * number], self.layers[2 * number + 1]
        return self.f.linear(x, weight.to(x.dtype), bias.to(x.dtype))

    def attention(self, x, number):
        """Causal attention between two layers."""
        batch, length, _ = x.shape
        heads = self.linear(x, number).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        q, k = (self.f.rope(each, self.cos, self.sin) for each in (q, k))
        found = self.f.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.linear(found.transpose(1, 2).reshape(x.shape), number + 1)

    def forward(self, ids):
        """(batch, length) bytes to (batch, length, 128) scores."""
        f, norms = self.f, self.norms
        x = f.embedding(ids, self.table).to(torch.bfloat16)
        n = f.layer_norm(x, (WIDTH,), norms[0], norms[1])
        for block in range(BLOCKS):
            h = self.attention(n, 4 * block)
            at = 4 * block + 2
            x, n = f.add_norm(x, h, norms[at], norms[at + 1])
            h = self.linear(f.gelu(self.linear(n, 4 * block + 2)), 4 * block + 3)
            x, n = f.add_norm(x, h, norms[at + 2], norms[at + 3])
        return f.linear(n, self.head.to(n.dtype)).float()

    def loss(self, ids, wanted):
        """Cross-entropy of the next bytes, averaged."""
        scores = self(ids)
        return self.f.cross_entropy(scores.flatten(0, 1), wanted.flatten())


# %% [markdown]
# ## One step of training
# Forward, backward, and AdamW, which is a kernel as well.


# %%
class Training:
    """A model, its optimiser, and the loss and time of each step."""

    def __init__(self, f, compile=None):
        self.model, self.losses, self.seconds = GPT(f), [], []
        self.compute = compile(self.model.loss) if compile else self.model.loss
        self.parameters = list(self.model.parameters())
        self.state = [[torch.zeros_like(p) for p in self.parameters] for _ in range(2)]
        options = {"lr": RATE, "weight_decay": DECAY, "fused": True}
        self.torch_adamw = torch.optim.AdamW(self.parameters, **options)
        self.update = self.by_xetl if f is WITH_XETL else self.by_torch

    def by_xetl(self, number, rate):
        """Change the parameters by xetl's AdamW."""
        gradients = [p.grad for p in self.parameters]
        options = {"lr": rate, "weight_decay": DECAY}
        with torch.no_grad():
            ops.adamw(self.parameters, gradients, *self.state, number, **options)

    def by_torch(self, number, rate):
        """Change the parameters by torch's."""
        self.torch_adamw.param_groups[0]["lr"] = rate
        self.torch_adamw.step()

    def step(self, ids, wanted):
        """Learn from one batch."""
        start = perf_counter()
        loss = self.compute(ids, wanted)
        loss.backward()
        number = len(self.losses) + 1
        # The rate grows in the first 50 steps, and falls to a tenth until the last.
        self.update(number, RATE * min(1, number / 50) * (1 - 0.9 * number / STEPS))
        for p in self.parameters:
            p.grad = None
        self.losses.append(loss.item())
        self.seconds.append(perf_counter() - start)

    def ms(self):
        """The best of the compared steps, without the first ones, which compile."""
        return 1e3 * min(self.seconds[5:COMPARED])


# %% [markdown]
# ## The same losses, and how fast
# Both models start from the same numbers and see the same batches, in turns of five
# steps.  Both round to bf16, but not always at the same places, and training amplifies
# small differences.  The losses go from 4.8 to 2.6 and may differ by 0.03 at most.
#
# `torch.compile` fuses what torch alone runs operation by operation.  It needs a C++
# compiler and about a minute, so it takes part on request (`--compile`).

# %%
data = list(batches(seen, STEPS, seed=1))
ours, theirs = Training(WITH_XETL), Training(WITH_TORCH)
trainings = {"xetl": ours, "torch": theirs}
if "--compile" in sys.argv:
    trainings["torch.compile"] = Training(WITH_TORCH, compile=torch.compile)
for at in range(0, COMPARED, 5):
    for training in trainings.values():
        for batch in data[at : at + 5]:
            training.step(*batch)

difference = np.abs(np.subtract(ours.losses, theirs.losses)).max()
print(f"loss after {COMPARED} steps: {ours.losses[-1]:.3f}, ", end="")
print(f"torch {theirs.losses[-1]:.3f}")
print(f"the largest difference of {COMPARED} losses: {difference:.3f}")
assert difference < 0.03
for name, training in trainings.items():
    ratio = training.ms() / ours.ms()
    print(f"one step of {name}: {training.ms():.0f} ms, {ratio:.2f} of xetl's time")

# %% [markdown]
# ## Train to the end

# %%
for batch in data[COMPARED:]:
    ours.step(*batch)
with torch.no_grad():
    tests = [ours.model.loss(*each).item() for each in batches(unseen, 8, seed=2)]
test_loss = float(np.mean(tests))
print(f"{STEPS} steps in {sum(ours.seconds):.0f} s")
print(f"loss {np.mean(ours.losses[-20:]):.3f}, of unseen text {test_loss:.3f}")
assert QUICK or test_loss < 1.7

# %% [markdown]
# ## Generate
# The model predicts a byte, the byte is added to the text, and so on.  Dividing the
# scores by 0.7 makes likely bytes likelier.


# %%
def generate(prompt, count):
    """Add `count` bytes to a text."""
    ids = torch.tensor([list(prompt.encode())])
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for _ in range(count):
            scores = ours.model(ids[:, -LENGTH:])[0, -1]
            chances = ops.softmax(scores / 0.7)
            new = torch.multinomial(chances, 1, generator=generator)
            ids = torch.cat([ids, new[None]], 1)
    return bytes(ids[0].tolist()).decode()


for line in generate("Return the ", 40 if QUICK else 400).splitlines():
    print(textwrap.fill(line, 80))

# %% [markdown]
# ## A picture
# Left: the losses of all steps.  Right: those of the first 100 by time.

# %%
if __name__ == "__main__" and "--plot" in sys.argv:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4), layout="constrained", sharey=True
    )
    left.plot(ours.losses, label="xetl")
    left.plot(theirs.losses, "--", label="torch")
    left.axhline(test_loss, color="gray", linewidth=1, label="unseen text, at the end")
    left.set(xlabel="step", ylabel="loss (nats a byte)")
    for name, each, style in (("xetl", ours, "-"), ("torch", theirs, "--")):
        took = np.cumsum(each.seconds[5:COMPARED])
        right.plot(took, each.losses[5:COMPARED], style, label=name)
    right.set(xlabel="seconds, without the first five steps")
    for axes in (left, right):
        axes.legend()
        axes.grid(alpha=0.3)
    figure.savefig("demo_gpt.png", dpi=120)

# %% [markdown]
# **Try it:** more steps, wider blocks, or texts of your own in place of the docstrings.
