"""What `bench_rows.py` measures: the same function in xetl, NumPy and torch.

Each function takes a matrix (for ``embedding`` the table it copies rows of, for
``histogram`` numbers below 256, for ``convolution`` the pixels of a square, which has
3 x 3 taps and as many channels behind it) and writes a result that exists beforehand,
where the library can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import row_kernels as kernels
from harness import Job
from operands import normal_rows
from scipy.special import erf

from xetl import ops

BINS, BEST, DROPPED = 256, 8, 0.25
Matrix = np.ndarray[Any, Any]
Function = Callable[[Matrix], Any]


def matrix(what: str, rows: int, columns: int) -> Matrix:
    """The input."""
    if what == "histogram":
        numbers = np.random.default_rng(0).integers(0, BINS, (rows, columns))
        return numbers.astype(np.int32)
    return normal_rows(rows, columns)


def places(x: Matrix) -> Matrix:
    """The rows that an embedding copies: as many as there are, in any order."""
    return np.random.default_rng(1).integers(0, len(x), len(x))


def width(x: Matrix) -> int:
    """Of a tile that holds a row."""
    return 1 << (x.shape[1] - 1).bit_length()


def taps(x: Matrix) -> Matrix:
    """The weights of the convolution."""
    return np.random.default_rng(2).standard_normal((9, *x.shape[1:] * 2), np.float32)


def _convolution(x: Matrix) -> Matrix:
    side = round(len(x) ** 0.5)
    wide = np.pad(x.reshape(side, side, -1), ((1, 1), (1, 1), (0, 0)))
    parts = [wide[i : i + side, j : j + side] for i in range(3) for j in range(3)]
    return sum(part.reshape(x.shape) @ w for part, w in zip(parts, taps(x)))


def _normalised(x: Matrix) -> Matrix:
    x = x - x.mean(1, keepdims=True)
    return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)


def _softmax(x: Matrix) -> Matrix:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


NUMPY: dict[str, Function] = {
    "softmax": _softmax,
    "layer norm": _normalised,
    "rms norm": lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5),
    "row sum": lambda x: x.sum(1),
    "column sum": lambda x: x.sum(0),
    "sum": lambda x: x.sum(),
    "transpose": lambda x: np.ascontiguousarray(x.T),
    "cumsum": lambda x: x.cumsum(1),
    "add": lambda x: x + x,
    "gelu": lambda x: 0.5 * x * (1 + erf(x * np.float32(0.5**0.5))),
    "sort": lambda x: np.sort(x, 1),
    "histogram": lambda x: np.bincount(x.ravel(), minlength=BINS),
    "embedding": lambda x: x[places(x)],
    "convolution": _convolution,
}
"""Also what xetl's results are compared with, in f64."""


def in_numpy(what: str, rows: int, columns: int) -> Job | None:
    """As one writes it; a result that is made anew is the library's way."""
    x = matrix(what, rows, columns)
    if what == "embedding":
        chosen, out = places(x), np.empty_like(x)
        return Job([lambda: np.take(x, chosen, 0, out=out)], _work(x))
    function = NUMPY.get(what)
    return None if function is None else Job([lambda: function(x)], _work(x))


def in_torch(what: str, rows: int, columns: int) -> Job:
    """With ``out=`` where there is one."""
    import torch  # noqa: PLC0415 - only this contestant needs it
    from torch.nn import functional  # noqa: PLC0415

    array = matrix(what, rows, columns)
    x, out = torch.from_numpy(array), torch.empty(rows, columns)
    sums, chosen = torch.empty(rows), torch.from_numpy(places(array))
    column_sums, flipped = torch.empty(columns), torch.empty(columns, rows)
    calls: dict[str, Callable[[], object]] = {
        "softmax": lambda: torch.softmax(x, 1, out=out),
        "layer norm": lambda: functional.layer_norm(x, (columns,)),
        "rms norm": lambda: functional.rms_norm(x, (columns,), eps=1e-5),
        "row sum": lambda: torch.sum(x, 1, out=sums),
        "column sum": lambda: torch.sum(x, 0, out=column_sums),
        "sum": lambda: torch.sum(x),
        "transpose": lambda: flipped.copy_(x.T),
        "cumsum": lambda: torch.cumsum(x, 1, out=out),
        "add": lambda: torch.add(x, x, out=out),
        "gelu": lambda: functional.gelu(x),
        "topk": lambda: torch.topk(x, BEST),
        "sort": lambda: torch.sort(x, 1),
        "dropout": lambda: functional.dropout(x, DROPPED),
        "histogram": lambda: torch.bincount(x.ravel(), minlength=BINS),
        "embedding": lambda: torch.index_select(x, 0, chosen, out=out),
    }
    if what == "convolution":
        side = round(rows**0.5)
        picture = x.reshape(1, side, side, columns).permute(0, 3, 1, 2)
        w = torch.from_numpy(taps(array)).reshape(3, 3, columns, columns)
        w = w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        calls[what] = lambda: functional.conv2d(picture, w, padding=1)
    return Job([calls[what]], _work(array))


def copied(what: str, rows: int, columns: int) -> Job:
    """No function moves its data faster than a copy does."""
    x = matrix(what, rows, columns)
    y = np.empty_like(x)
    return Job([lambda: np.copyto(y, x)], _work(x))


def in_xetl(what: str, rows: int, columns: int) -> Job:
    """The kernels of `row_kernels.py`, and `xetl.ops` where it has the function."""
    x = matrix(what, rows, columns)
    y = np.empty_like(x)
    sums, bins = np.empty(rows, np.float32), np.zeros(BINS, np.int32)
    best = np.empty((rows, BEST), np.float32), np.empty((rows, BEST), np.int32)
    chosen, wide, flat, result = places(x), width(x), x.ravel(), y.ravel()

    def histogram() -> Matrix:
        bins[:] = 0
        kernels.histogram[x.size // 4096](flat, bins, 4096, BINS)
        return bins

    def returning(function: Callable[..., object], *args: object) -> Any:
        return lambda: (function(*args), y)[1]

    grid = -(-rows // 64), -(-columns // 64)
    blocks = -(-rows // 32), -(-columns // 32)
    down, parts = np.empty((1, columns), np.float32), np.empty(blocks[0], np.float32)
    flipped, strips = np.empty((columns, rows), np.float32), -(-columns // 256)
    calls: dict[str, Callable[[], Any]] = {
        "softmax": lambda: ops.softmax(x, out=y),
        "layer norm": lambda: ops.layer_norm(x, out=y),
        "rms norm": returning(kernels.rms_norm[rows], x, y, wide),
        "row sum": lambda: (kernels.row_sum[rows](x, sums, wide), sums)[1],
        "column sum": lambda: (kernels.column_sum[strips](x, down, 64, 256), down[0])[
            1
        ],
        "sum": lambda: (kernels.part_sum[len(parts)](x, parts, 32, wide), parts.sum())[
            1
        ],
        "transpose": lambda: (kernels.transpose[blocks](x, flipped, 32), flipped)[1],
        "cumsum": returning(kernels.cumsum[rows], x, y, wide),
        "add": returning(kernels.add[grid], x, x, y, 64),
        "gelu": returning(kernels.gelu[grid], x, y, 64),
        "topk": lambda: (kernels.topk[rows](x, *best, wide, BEST), best)[1],
        "sort": returning(kernels.sort[rows], x, y, wide),
        "dropout": returning(
            kernels.dropout[-(-x.size // 4096)], flat, result, 7, DROPPED, 1024
        ),
        "histogram": histogram,
        "embedding": returning(kernels.embedding[rows], x, chosen, y, wide),
    }
    if what == "convolution":
        convolve = kernels.convolution[-(-rows // 64)]
        calls[what] = returning(convolve, x, taps(x), y, round(rows**0.5), 64, columns)
    call = calls[what]
    if what in NUMPY:
        exact = x if what == "histogram" else x.astype(np.float64)
        most = 0.1 if what in ("sum", "column sum") else 5e-3
        np.testing.assert_allclose(call(), NUMPY[what](exact), rtol=1e-4, atol=most)
    return Job([call], _work(x))


def _work(x: Matrix) -> float:
    return 2e-9 * x.nbytes
