"""A neural network that reads handwriting, every kernel of it written in xetl.

Data: the 1797 digits of scikit-learn, 8 x 8 pixels each.  Network: 64 -> 256 -> 10 with
GELU, softmax cross-entropy and Adam.  `make demo` runs this in a few seconds on any CPU
and leaves a picture, demo_digits.png.  `--quick` trains less and measures less.
"""

import os

# We compare with NumPy at its best: these two variables, if set, restrict NumPy's
# OpenBLAS to code for an older CPU.  OpenBLAS reads them when NumPy is imported.
os.environ.pop("OPENBLAS_CORETYPE", None)
os.environ.pop("OPENBLAS_L2_SIZE", None)

import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from time import perf_counter, sleep

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32

# --- The kernels --------------------------------------------------------------------
# A program computes one tile of the result; the grid says how many programs there are.
# Tiles may hang over the edge of an array: elements outside read as zero and are never
# written.

BM, BN, BK = 64, 64, 64


def tiles_of(name: str) -> Callable:
    """The grid that covers the array argument `name` with BM x BN tiles."""

    def grid(args):
        rows, columns = getattr(args, name).shape
        return cdiv(rows, BM), cdiv(columns, BN)

    return grid


@xetile.function
def matmul_tile(A, B, m, n):
    """The BM x BN tile of A @ B whose corner is at (m, n)."""
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a, b, acc)
    return acc


@xetile.function
def gelu(z):
    return 0.5 * z * (1.0 + xetile.tanh(0.7978845608 * (z + 0.044715 * z * z * z)))


@xetile.function
def gelu_slope(z):
    t = xetile.tanh(0.7978845608 * (z + 0.044715 * z * z * z))
    inner = 0.7978845608 * (1.0 + 0.134145 * z * z)
    return 0.5 * (1.0 + t + z * (1.0 - t * t) * inner)


@xetile.kernel(grid=tiles_of("Y"))
def linear(X, W, bias, Y, Z=None, ACTIVATION: constexpr = None):
    """Y = ACTIVATION(X @ W + bias); Z, if given, keeps the input of ACTIVATION."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    y = matmul_tile(X, W, m, n)
    y = y + xetile.load_tile(xetile.init_tile(bias, [n], (BN,)))
    if Z is not None:  # decided when compiling
        xetile.store_tile(y, xetile.init_tile(Z, [m, n], (BM, BN)))
    if ACTIVATION is not None:
        y = ACTIVATION(y)
    xetile.store_tile(y, xetile.init_tile(Y, [m, n], (BM, BN)))


@xetile.kernel(grid=lambda args: args.X.shape[0])
def cross_entropy(X, labels, loss, dX, CLASSES: constexpr):
    """Compute -log(softmax(x)[label]) of each row x of X, and its gradient."""
    r = xetile.program_id(0)
    label = labels[r]
    x = xetile.load_tile(xetile.init_tile(X[r], [0], (CLASSES,)))
    top = x.max(0)
    e = xetile.exp(x - top)
    total = e.sum(0)
    lost = xetile.log(total) - (X[r, label] - top)
    xetile.store_tile(xetile.full((1,), lost, f32), xetile.init_tile(loss, [r], (1,)))
    hit = xetile.where(xetile.arange(CLASSES) == label, 1.0, 0.0)
    dx = (e / total - hit) / X.shape[0]
    xetile.store_tile(dx, xetile.init_tile(dX[r], [0], (CLASSES,)))


@xetile.kernel(grid=tiles_of("dW"))
def weight_gradient(X, dY, dW):
    """The gradient of the weights, X^T @ dY.  `X.T` is a view, not a copy."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    tile = matmul_tile(X.T, dY, m, n)
    xetile.store_tile(tile, xetile.init_tile(dW, [m, n], (BM, BN)))


@xetile.kernel(grid=tiles_of("dZ"))
def hidden_gradient(dY, W, Z, dZ):
    """The gradient of the input of GELU, (dY @ W^T) * gelu'(Z)."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    z = xetile.load_tile(xetile.init_tile(Z, [m, n], (BM, BN)))
    dz = matmul_tile(dY, W.T, m, n) * gelu_slope(z)
    xetile.store_tile(dz, xetile.init_tile(dZ, [m, n], (BM, BN)))


@xetile.kernel(grid=lambda args: cdiv(args.db.shape[0], BN))
def bias_gradient(dY, db):
    """The gradient of the bias: the sum of each column of dY."""
    n = xetile.program_id(0) * BN
    total = xetile.zeros((BN,), f32)
    for m in range(0, dY.shape[0], BM):
        tile = xetile.load_tile(xetile.init_tile(dY, [m, n], (BM, BN)))
        total = total + tile.sum(0)
    xetile.store_tile(total, xetile.init_tile(db, [n], (BN,)))


@xetile.kernel(grid=lambda args: cdiv(args.P.shape[0], args.SIZE))
def adam(P, G, M, V, rate, SIZE: constexpr = 4096):
    """One step of Adam; `rate` includes the bias correction of the step."""
    i = xetile.program_id(0) * SIZE
    p, g = xetile.init_tile(P, [i], (SIZE,)), xetile.init_tile(G, [i], (SIZE,))
    m, v = xetile.init_tile(M, [i], (SIZE,)), xetile.init_tile(V, [i], (SIZE,))
    grad = xetile.load_tile(g)
    mean = 0.9 * xetile.load_tile(m) + 0.1 * grad
    square = 0.999 * xetile.load_tile(v) + 0.001 * grad * grad
    step = rate * mean / (xetile.sqrt(square) + 1e-7)
    xetile.store_tile(xetile.load_tile(p) - step, p)
    xetile.store_tile(mean, m)
    xetile.store_tile(square, v)


# --- The network --------------------------------------------------------------------

SHAPES = [(64, 256), (256,), (256, 10), (10,)]  # W1, b1, W2, b2
SIZES = [int(np.prod(shape)) for shape in SHAPES]
BATCH = 128


def views(flat: np.ndarray) -> list[np.ndarray]:
    """W1, b1, W2, b2 inside one flat array, so that one launch updates them all."""
    parts = np.split(flat, np.cumsum(SIZES)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, SHAPES)]


def empty(rows: int, columns: int) -> np.ndarray:
    return np.empty((rows, columns), np.float32)


def forward(x, parameters, z=None):
    """The hidden layer and the logits; `z` keeps what the backward pass needs."""
    W1, b1, W2, b2 = parameters
    h, logits = empty(len(x), 256), empty(len(x), 10)
    linear(x, W1, b1, h, z, ACTIVATION=gelu)
    linear(h, W2, b2, logits)
    return h, logits


def backward(x, labels, parameters, gradients):
    """Fill `gradients`; the result is the loss of each row."""
    dW1, db1, dW2, db2 = gradients
    z, dz, dlogits = empty(len(x), 256), empty(len(x), 256), empty(len(x), 10)
    loss = np.empty(len(x), np.float32)
    h, logits = forward(x, parameters, z)
    cross_entropy(logits, labels, loss, dlogits, CLASSES=10)
    weight_gradient(h, dlogits, dW2)
    bias_gradient(dlogits, db2)
    hidden_gradient(dlogits, parameters[2], z, dz)
    weight_gradient(x, dz, dW1)
    bias_gradient(dz, db1)
    return loss


def adam_rate(step: int) -> float:
    return 0.003 * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)


# --- The same in NumPy: judge of the gradients, yardstick of the speed ---------------


def numpy_gelu(z):
    """GELU and the tanh in it; few passes over memory and few new arrays."""
    t = z * z
    t *= 0.044715
    t += 1
    t *= z
    t *= 0.7978845608
    np.tanh(t, out=t)
    h = t + 1
    h *= z
    h *= 0.5
    return h, t


def numpy_cross_entropy(x, labels, out=None):
    x = np.subtract(x, x.max(1, keepdims=True), out=out)
    rows = np.arange(len(x))
    picked = x[rows, labels]
    e = np.exp(x, out=x)
    total = e.sum(1, keepdims=True)
    loss = np.log(total[:, 0]) - picked
    e /= total * len(x)
    e[rows, labels] -= 1 / len(x)
    return loss, e


def numpy_backward(x, labels, parameters, gradients):
    W1, b1, W2, b2 = parameters
    dW1, db1, dW2, db2 = gradients
    z = x @ W1
    z += b1
    h, t = numpy_gelu(z)
    loss, dlogits = numpy_cross_entropy(h @ W2 + b2, labels)
    np.matmul(h.T, dlogits, out=dW2)
    np.sum(dlogits, 0, out=db2)
    inner = 0.7978845608 * (1 + 0.134145 * z * z)
    dz = dlogits @ W2.T
    dz *= 0.5 * (1 + t + z * (1 - t * t) * inner)
    np.matmul(x.T, dz, out=dW1)
    np.sum(dz, 0, out=db1)
    return loss


def numpy_adam(p, g, m, v, rate):
    m *= 0.9
    m += 0.1 * g
    v *= 0.999
    v += 0.001 * g * g
    p -= rate * m / (np.sqrt(v) + 1e-7)


# --- The demo: train the network, compare and draw -----------------------------------


class State:
    """Parameters (He's initialisation), their gradients, and Adam's two averages."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.flat = np.zeros(sum(SIZES), np.float32)
        for weights in views(self.flat)[::2]:
            weights[:] = rng.standard_normal(weights.shape) * (2 / len(weights)) ** 0.5
        self.gradient, self.mean, self.square = (self.flat * 0 for _ in range(3))

    def step(self, x, labels, rate, backward=backward, adam=adam):
        """Move all parameters a little; the result is the loss before that."""
        loss = backward(x, labels, views(self.flat), views(self.gradient))
        adam(self.flat, self.gradient, self.mean, self.square, rate)
        return float(loss.mean())


def check_gradients(x, labels, state: State) -> float:
    """The largest error against NumPy in double precision; asserted to be small.

    The longest sum has 256 terms, so rounding to float32 stays below 256 * 2**-24, or
    1.5e-5, of what is summed.
    """
    exact, doubles = np.zeros(sum(SIZES)), state.flat.astype(float)
    numpy_backward(x.astype(float), labels, views(doubles), views(exact))
    backward(x, labels, views(state.flat), views(state.gradient))
    error = abs(state.gradient - exact).max() / abs(exact).max()
    assert error < 1.5e-5, f"gradients are off by {error:.1e}"
    return error


def batches(rng, count: int) -> Iterator[np.ndarray]:
    order = rng.permutation(count)
    return (order[i : i + BATCH] for i in range(0, count, BATCH))


def accuracy(x, labels, state: State) -> float:
    return float((forward(x, views(state.flat))[1].argmax(1) == labels).mean())


def show_road(console: Console, x, state: State) -> None:
    """One kernel on its way from Python to machine code."""
    W1, b1, _, _ = views(state.flat)

    def lines(stage: str, activation=gelu) -> list[str]:
        text = linear.ir(stage, x, W1, b1, empty(len(x), 256), ACTIVATION=activation)
        return text.replace("\t", " ").splitlines()

    def show(code: list[str]) -> None:
        for line in textwrap.dedent("\n".join(code)).splitlines():
            short = re.split(" : | <{| ->", line)[0]
            console.print("   ", short, style="cyan", highlight=False)

    console.rule("[bold]1  From Python to the machine")
    console.print(
        "The loop over k in [b]linear[/b] as XeTile IR (its types left out). Tiles are "
        "loaded, multiplied and summed; threads, vectors and caches are not mentioned."
    )
    program = lines("xetile")
    loop = next(i for i, line in enumerate(program) if "scf.for" in line)
    show(program[loop : loop + 7])
    console.print(
        "xetl recognises a matrix product and makes the whole loop one operation, a "
        "batch-reduce GEMM: the sum of many small products, kept close in cache until "
        "bias and GELU have been applied to it."
    )
    show([line for line in lines("raise-to-brgemm") if "xsmm.brgemm" in line])
    machine = [line for line in lines("asm", None) if re.search("fmadd231|fmla", line)]
    console.print(
        "The operation is then cut to fit the registers of this CPU. Instructions like "
        "these do nearly all the work; each multiplies and adds a whole vector."
    )
    show(machine[:3])


def train(console: Console, data, state: State, rng, epochs: int) -> list[float]:
    """Print a line now and then; the result is the loss of every step."""
    x, labels, x_test, labels_test = data
    losses: list[float] = []
    start = perf_counter()
    for epoch in range(1, epochs + 1):
        for rows in batches(rng, len(x)):
            rate = adam_rate(len(losses) + 1)
            losses.append(state.step(x[rows], labels[rows], rate))
        if epoch % max(1, epochs // 5) == 0:
            right = accuracy(x_test, labels_test, state)
            bar = f"[green]{'━' * round(40 * right):<40}[/]"
            text = f"epoch {epoch:3}   loss {losses[-1]:.4f}   {bar} {right:.1%}"
            console.print(text, highlight=False)
    seconds = perf_counter() - start
    console.print(f"{len(losses)} steps in {seconds:.2f} s, {9 * len(losses)} launches")
    return losses


def best_ms(*functions: Callable[[], object], seconds: float) -> list[float]:
    """The best time of each.

    They take turns of 50 ms, so a noisy moment hits all alike. Before each is a rest:
    the threads of a library spin for about 0.1 s until they go to sleep.
    """
    for function in functions:
        function()  # compile, and touch the memory
    best = [float("inf")] * len(functions)
    end = perf_counter() + seconds
    while perf_counter() < end:
        for i, function in enumerate(functions):
            sleep(0.15)
            turn = perf_counter() + 0.05
            while (start := perf_counter()) < turn:
                function()
                best[i] = min(best[i], (perf_counter() - start) * 1e3)
    return best


def measure(data, state: State, rng, seconds: float) -> Table:
    """Ours and NumPy's times, side by side."""
    x, labels, n = data[0][:BATCH], data[1][:BATCH], 1024
    A, W = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
    bias, out = rng.random(n, np.float32), empty(n, n)
    X, dX = rng.random((8 * n, n), np.float32), empty(8 * n, n)
    targets, loss = rng.integers(0, n, 8 * n), np.empty(8 * n, np.float32)

    def numpy_linear():
        return numpy_gelu(np.add(np.matmul(A, W, out=out), bias, out=out))

    jobs = {
        f"training step, {BATCH} digits": (
            lambda: state.step(x, labels, 0.0),
            lambda: state.step(x, labels, 0.0, numpy_backward, numpy_adam),
        ),
        f"linear + bias + GELU, {n}³": (
            lambda: linear(A, W, bias, out, ACTIVATION=gelu),
            numpy_linear,
        ),
        f"softmax cross-entropy, {8 * n} x {n}": (
            lambda: cross_entropy(X, targets, loss, dX, CLASSES=n),
            lambda: numpy_cross_entropy(X, targets, out=dX),
        ),
    }
    table = Table(box=SIMPLE)
    table.add_column("best of many runs, taken in turns", no_wrap=True)
    for title in ("xetl", "NumPy", "NumPy / xetl"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, pair in jobs.items():
        ours, theirs = best_ms(*pair, seconds=seconds)
        ratio = f"[bold]{theirs / ours:.2f}[/]"
        table.add_row(name, f"{ours:.3f} ms", f"{theirs:.3f} ms", ratio)
    return table


def draw(path: str, x, labels, state: State, losses: list[float]) -> None:
    """24 test digits, the wrong ones first, and the loss."""
    guess = forward(x, views(state.flat))[1].argmax(1)
    chosen = np.argsort(guess == labels, kind="stable")[:24]
    mpl.use("Agg")
    figure = plt.figure(figsize=(10, 6), layout="constrained")
    digits, curve = figure.subfigures(2, 1, height_ratios=[3, 2])
    wrong = int((guess != labels).sum())
    digits.suptitle(f"24 of {len(x)} unseen digits; all {wrong} mistakes come first")
    for i, axes in zip(chosen, digits.subplots(3, 8).flat):
        axes.imshow(x[i].reshape(8, 8), cmap="gray_r")
        axes.set(xticks=[], yticks=[])
        if guess[i] == labels[i]:
            axes.set_title(f"{guess[i]}", fontsize=10)
        else:
            axes.set_title(f"{guess[i]}, is {labels[i]}", fontsize=10, color="crimson")
            axes.spines[:].set(color="crimson", linewidth=2.5)
    axes = curve.subplots()
    axes.semilogy(losses)
    axes.set(xlabel="step", ylabel="cross-entropy")
    figure.savefig(path, dpi=120)


def main(quick: bool) -> None:
    console = Console(width=80)
    rng = np.random.default_rng(0)
    images, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(images))
    x, labels = (images[order] / 16).astype(np.float32), labels[order]
    data = x[:1437], labels[:1437], x[1437:], labels[1437:]
    state = State(rng)

    show_road(console, x[:BATCH], state)

    console.rule("[bold]2  Learning to read")
    error = check_gradients(x[:BATCH], labels[:BATCH], state)
    console.print(f"gradients agree with NumPy in double precision to {error:.0e}")
    losses = train(console, data, state, rng, epochs=10 if quick else 40)
    right = accuracy(data[2], data[3], state)
    console.print(f"[bold]test accuracy {right:.2%}[/] on {len(data[2])} unseen digits")
    assert right > 0.95

    console.rule("[bold]3  How fast")
    console.print(measure(data, state, rng, seconds=0.2 if quick else 1.5))

    draw("demo_digits.png", data[2], data[3], state, losses)
    console.print("[bold]demo_digits.png[/] shows what it read, right and wrong.")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
