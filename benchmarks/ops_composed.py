"""What `ops.py` measures of functions whose arguments are not one matrix.

Each entry makes, of a dtype, rows and columns: the arguments, and torch's function (or
what it is made of) where it is not the one of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from xetl import ops

_GROUP = 32
_HEADS, _SEQUENCES = 8, 4


class Pair(NamedTuple):
    """A call of ours and the one of torch.

    Attributes:
        args: of ours; the first one is counted as what is moved.
        theirs: torch's function; None: the one of the same name.
        their_args: None: the same.
        ours: None: the one of the same name.
    """

    args: tuple[Any, ...]
    theirs: Callable[..., Any] | None = None
    their_args: tuple[Any, ...] | None = None
    ours: Callable[..., Any] | None = None


def _normal(kind: Any, *shape: int) -> Any:
    return torch.randn(shape).to(kind)


def _matmul(kind: Any, m: int, n: int) -> Pair:
    return Pair((_normal(kind, m, n), _normal(kind, n, n)))


def _prepack(kind: Any, m: int, n: int) -> Pair:
    x, w = _matmul(kind, m, n).args
    return Pair((x, ops.prepack(w)), torch.matmul, (x, w), ops.matmul)


def _bmm(kind: Any, m: int, n: int) -> Pair:
    rows = max(1, m // 4)
    return Pair((_normal(kind, 4, rows, n), _normal(kind, 4, n, n)))


def _baddbmm(kind: Any, m: int, n: int) -> Pair:
    return Pair((_normal(kind, 4, max(1, m // 4), n), *_bmm(kind, m, n).args))


def _small_bmm(kind: Any, m: int, n: int) -> Pair:
    """Many products of 16 x 16."""
    count = max(1, m * n // 256)
    return Pair(
        (_normal(kind, count, 16, 16), _normal(kind, count, 16, 16)),
        torch.bmm,
        None,
        ops.bmm,
    )


def _narrow_sum(kind: Any, m: int, n: int) -> Pair:
    """Of columns of rows of 10."""
    return Pair((_normal(kind, m * n // 10, 10), 0), torch.sum, None, ops.sum)


def _sum_of_images(kind: Any, m: int, n: int) -> Pair:
    """Over images and rows of each channel and column, with others between."""
    images = _normal(kind, max(1, m // 64), 4, 16, max(1, n // 4))
    return Pair((images, (0, 2)), torch.sum, None, ops.sum)


def _narrow_embedding(kind: Any, m: int, n: int) -> Pair:
    """Rows of 8."""
    given = torch.randint(m, (m * n // 8,)), _normal(kind, m, 8)
    return Pair(given, functional.embedding, None, ops.embedding)


def _topk_of_long(kind: Any, m: int, n: int) -> Pair:
    """The best 50, or all of few; numbers of 64 bits in place of bf16."""
    x = _normal(torch.float32, m, n)
    if kind is not torch.float32:
        x = (1e9 * x).long()
    return Pair((x, min(n, 50)), torch.topk, None, ops.topk)


def _batch_norm_of_last(kind: Any, m: int, n: int) -> Pair:
    """Images of 8 x 8, or of 16 pixels, whose channels come last in memory."""
    side = 8 if n >= 64 else 4
    x = _normal(kind, max(1, m * n // (64 * side * side)), 64, side, side)
    x = x.to(memory_format=torch.channels_last)
    given = x, _normal(kind, 64), torch.rand(64).to(kind) + 1
    return Pair(given, functional.batch_norm, None, ops.batch_norm)


def _conv1d(kind: Any, m: int, n: int) -> Pair:
    channels = min(n, 64)
    x = _normal(kind, max(1, m // channels), channels, n)
    return Pair((x, _normal(kind, channels, channels, 3), None, 1, 1))


def _depthwise(kind: Any, m: int, n: int, stride: int = 1) -> Pair:
    """Images of 56 x 56 or smaller, 3 x 3 taps, one channel a group."""
    side, channels = min(n, 56), 96
    images = max(1, m * n // (channels * side * side))
    x, weight = _normal(kind, images, channels, side, side), (channels, 1, 3, 3)
    given = x, _normal(kind, *weight), None, stride, 1, 1, channels
    return Pair(given, functional.conv2d, None, ops.conv2d)


def _depthwise_strided(kind: Any, m: int, n: int) -> Pair:
    return _depthwise(kind, m, n, 2)


def _embedding(kind: Any, m: int, n: int) -> Pair:
    return Pair((torch.randint(m, (m,)), _normal(kind, m, n)))


def _grouped_mm(kind: Any, m: int, n: int) -> Pair:
    ends = torch.arange(1, 9, dtype=torch.int32) * m // 8
    starts = [0, *ends.tolist()]

    def each(a: Any, b: Any, offs: Any) -> Any:
        parts = zip(starts, starts[1:], b)
        return torch.cat([a[first:end] @ one for first, end, one in parts])

    args = _normal(kind, m, n), _normal(kind, 8, n, n), ends.int()
    return Pair(args, each)


def _scaled_mm(kind: Any, m: int, n: int) -> Pair:
    """Of bytes in place of f32, of 8-bit floats in place of bf16."""
    scales = torch.rand(m, 1), torch.rand(1, n)
    if kind is torch.float32:
        a, b = torch.randint(-99, 99, (2, max(m, n), n), dtype=torch.int8)
        return Pair(
            (a[:m], b[:n].T, *scales), lambda a, b, s, t: torch._int_mm(a, b) * s * t
        )
    a, b = _normal(torch.float32, 2, max(m, n), n).to(torch.float8_e4m3fn)
    their = a[:m], b[:n].T, *scales, None, None, torch.float32
    return Pair(their[:4], torch._scaled_mm, their)


def _linear_int4(kind: Any, m: int, n: int) -> Pair:
    groups, k = max(1, n // _GROUP), max(n, _GROUP)
    q = torch.randint(16, (k, k), dtype=torch.int32)
    parts = q.T.reshape(groups, 2, k // groups // 2, k)
    weight = (parts[:, 1] << 4 | parts[:, 0]).reshape(k // 2, k).to(torch.uint8)
    weight = weight.contiguous()
    scales, zeros = torch.rand(2, groups, k).to(kind)
    packed = torch._convert_weight_to_int4pack_for_cpu(q, 2)
    both = torch.stack([scales, zeros], -1)
    x = _normal(kind, m, k)
    their = x, packed, k // groups, both
    theirs = torch.ops.aten._weight_int4pack_mm_for_cpu
    return Pair((x, weight, scales, zeros), theirs, their)


def _one(q: Any, k: Any, v: Any) -> Any:
    """Attention of (tokens, heads, d)."""
    heads = (x.transpose(0, 1)[None] for x in (q, k, v))
    found = functional.scaled_dot_product_attention(*heads, is_causal=len(q) > 1)
    return found[0].transpose(0, 1)


def _varlen(kind: Any, m: int, n: int) -> Pair:
    tokens = max(min(m, 2048), _SEQUENCES)
    q, k, v = _normal(kind, 3, tokens, _HEADS, 64)
    ends = torch.arange(_SEQUENCES + 1) * tokens // _SEQUENCES
    most = tokens // _SEQUENCES + 1
    sizes = ends.diff().tolist()

    def each(*parts: Any) -> Any:
        return torch.cat([_one(*x) for x in zip(*(x.split(sizes) for x in parts))])

    args = q, k, v, ends.int(), ends.int(), most, most, None, True
    return Pair(args, each, (q, k, v))


def _kvcache(kind: Any, m: int, n: int) -> Pair:
    keys = min(m, 1024)
    q = _normal(kind, _SEQUENCES, 1, _HEADS, 64)
    k, v = _normal(kind, 2, _SEQUENCES, keys, _HEADS, 64)
    lengths = torch.arange(1, _SEQUENCES + 1) * keys // _SEQUENCES
    sizes = lengths.tolist()

    def each(q: Any, k: Any, v: Any) -> Any:
        rows = zip(q, k, v, sizes)
        return torch.stack([_one(a, b[:t], c[:t]) for a, b, c, t in rows])

    return Pair((q, k, v, lengths.int()), each, (q, k, v))


COMPOSED: dict[str, Callable[[Any, int, int], Pair]] = {
    "matmul": _matmul,
    "prepack": _prepack,
    "bmm": _bmm,
    "baddbmm": _baddbmm,
    "small_bmm": _small_bmm,
    "narrow_sum": _narrow_sum,
    "sum_of_images": _sum_of_images,
    "narrow_embedding": _narrow_embedding,
    "topk_of_long": _topk_of_long,
    "batch_norm_of_last": _batch_norm_of_last,
    "conv1d": _conv1d,
    "depthwise": _depthwise,
    "depthwise_strided": _depthwise_strided,
    "embedding": _embedding,
    "grouped_mm": _grouped_mm,
    "scaled_mm": _scaled_mm,
    "linear_int4": _linear_int4,
    "flash_attn_varlen_func": _varlen,
    "flash_attn_with_kvcache": _kvcache,
}


def find_pair(name: str, dtype: str, rows: int, columns: int) -> Pair:
    """The two calls, with both functions and both arguments."""
    torch.manual_seed(0)
    found = COMPOSED[name](getattr(torch, dtype), rows, columns)
    theirs = (
        found.theirs or getattr(functional, name, None) or getattr(torch, name, None)
    )
    assert theirs is not None
    ours = found.ours or getattr(ops, name)
    return Pair(found.args, theirs, found.their_args or found.args, ours)
