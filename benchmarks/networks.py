"""Parts of known networks by `xetl.ops` and by torch, with the same code.

``forward`` is one batch without gradients, ``training`` the loss and all gradients.
Rates are batches/s. The xetl process checks its first result against torch's.

Sources: Touvron et al., arXiv 2302.13971 (LLaMA); Dosovitskiy et al., arXiv 2010.11929
(ViT); Liu et al., arXiv 2103.14030 (Swin); LeCun et al., 1998 (LeNet); He et al.,
arXiv 1512.03385 (ResNet); Howard et al., arXiv 1704.04861
(MobileNet); Naumov et al., arXiv 1906.00091 (DLRM); Kipf and Welling, arXiv 1609.02907
(graph convolution); Hochreiter and Schmidhuber, 1997 (LSTM).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from harness import Contest, Contestant, Job, parse_options, write_csv
from torch.nn import functional

from xetl import ops

CLASSES = 10
Loss = Callable[[Any], Any]
CONTEST = Contest(
    "batches/s",
    [Contestant("xetl", "networks:in_xetl")],
    [Contestant("torch", "networks:in_torch")],
)


def _rope(x: Any, cos: Any, sin: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


TORCH = SimpleNamespace(
    **{
        **{name: getattr(torch, name, None) for name in ops.__all__},
        **{name: getattr(functional, name, None) for name in ops.__all__},
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "swiglu": lambda a, b: functional.silu(a) * b,
        "rope": _rope,
    }
)
for name in ("sum", "mean", "amax", "bmm", "index_select", "scatter_add", "matmul"):
    setattr(TORCH, name, getattr(torch, name))


class Parameters:
    """Makes parameters of one dtype, and keeps them."""

    def __init__(self, dtype: str) -> None:
        torch.manual_seed(0)
        self.kind = getattr(torch, dtype)
        self.all: list[Any] = []

    def normal(self, *shape: int) -> Any:
        """Numbers that do not change: inputs of a network."""
        return torch.randn(shape).to(self.kind)

    def weight(self, *shape: int) -> Any:
        """A matrix, or the taps of a convolution."""
        inner = torch.Size(shape[1:]).numel()
        return self._kept(torch.randn(shape) * inner**-0.5)

    def scale(self, size: int, number: float = 1.0) -> Any:
        """The factors, or with 0 the shifts, of a norm."""
        return self._kept(torch.full((size,), number))

    def _kept(self, x: Any) -> Any:
        self.all.append(x.to(self.kind).requires_grad_())
        return self.all[-1]


def _classes(f: Any, scores: Any) -> Any:
    return f.cross_entropy(scores, torch.arange(len(scores)) % CLASSES)


def llama(p: Parameters, tokens: int = 256, width: int = 512) -> Loss:
    """A layer with rotary positions, grouped heads and SwiGLU, and its vocabulary."""
    heads, shared, words = 8, 2, 1000
    d = width // heads
    table = p.weight(words, width)
    wide, narrow = (width, width), (shared * d, width)
    to_q, to_k, to_v, back = (p.weight(*s) for s in (wide, narrow, narrow, wide))
    gate, up, down = (
        p.weight(*s) for s in ((3 * width, width),) * 2 + ((width, 3 * width),)
    )
    norms = [p.scale(width) for _ in range(2)]
    angles = torch.outer(
        torch.arange(tokens), 10_000.0 ** -(torch.arange(d // 2) * 2 / d)
    )
    cos, sin = angles.cos().to(p.kind), angles.sin().to(p.kind)
    text = torch.randint(words, (1, tokens))

    def loss(f: Any) -> Any:
        x = f.embedding(text, table)
        y = f.rms_norm(x, (width,), norms[0])
        q, k, v = (
            f.linear(y, w).view(1, tokens, -1, d).transpose(1, 2)
            for w in (to_q, to_k, to_v)
        )
        q, k = f.rope(q, cos, sin), f.rope(k, cos, sin)
        seen = f.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + f.linear(seen.transpose(1, 2).reshape(x.shape), back)
        y = f.rms_norm(x, (width,), norms[1])
        x = x + f.linear(f.swiglu(f.linear(y, gate), f.linear(y, up)), down)
        return f.cross_entropy(f.linear(x, table)[0], text[0].roll(-1))

    return loss


def vit(p: Parameters, images: int = 2, side: int = 112, width: int = 192) -> Loss:
    """Patches by a convolution, then a layer of attention and of GELU."""
    heads, tokens = 3, (side // 16) ** 2
    x, patches = p.normal(images, 3, side, side), p.weight(width, 3, 16, 16)
    norms = [(p.scale(width), p.scale(width, 0)) for _ in range(2)]
    together, back = p.weight(3 * width, width), p.weight(width, width)
    up, down = p.weight(4 * width, width), p.weight(width, 4 * width)
    last = p.weight(CLASSES, width)

    def loss(f: Any) -> Any:
        y = f.conv2d(x, patches, stride=16).flatten(2).transpose(1, 2)
        h = f.linear(f.layer_norm(y, (width,), *norms[0]), together)
        q, k, v = h.view(images, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)
        seen = f.scaled_dot_product_attention(q, k, v)
        y = y + f.linear(seen.transpose(1, 2).reshape(y.shape), back)
        h = f.gelu(f.linear(f.layer_norm(y, (width,), *norms[1]), up))
        return _classes(f, f.linear(f.mean(y + f.linear(h, down), 1), last))

    return loss


def swin(p: Parameters, side: int = 56, width: int = 96, window: int = 7) -> Loss:
    """Attention within windows, with a bias of positions that is learned."""
    heads, count, tokens = 3, side // window, window**2
    x, last = p.normal(1, side, side, width), p.weight(CLASSES, width)
    norms = [(p.scale(width), p.scale(width, 0)) for _ in range(2)]
    together, back = p.weight(3 * width, width), p.weight(width, width)
    bias = p.weight(heads, tokens, tokens)
    up, down = p.weight(4 * width, width), p.weight(width, 4 * width)

    def loss(f: Any) -> Any:
        y = f.layer_norm(x, (width,), *norms[0]).view(1, *(count, window) * 2, width)
        h = f.linear(y.transpose(2, 3).reshape(-1, tokens, width), together)
        q, k, v = h.view(-1, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        seen = f.scaled_dot_product_attention(q, k, v, attn_mask=bias[None])
        h = f.linear(seen.transpose(1, 2).reshape(-1, tokens, width), back)
        h = h.view(1, count, count, window, window, width).transpose(2, 3)
        y = x + h.reshape(x.shape)
        h = f.gelu(f.linear(f.layer_norm(y, (width,), *norms[1]), up))
        return _classes(f, f.linear(f.mean(y + f.linear(h, down), (1, 2)), last))

    return loss


def lenet(p: Parameters, images: int = 64) -> Loss:
    """Digits of 28 x 28: two convolutions of few channels, and a layer."""
    x, first = p.normal(images, 1, 28, 28), p.weight(6, 1, 5, 5)
    second, end = p.weight(16, 6, 5, 5), p.weight(CLASSES, 16 * 5 * 5)

    def loss(f: Any) -> Any:
        y = f.amax(f.relu(f.conv2d(x, first, None, 1, 2)).view(-1, 6, 14, 2, 14, 2), 3)
        y = f.relu(f.conv2d(f.amax(y, 4), second)).view(-1, 16, 5, 2, 5, 2)
        return _classes(f, f.linear(f.amax(f.amax(y, 3), 4).flatten(1), end))

    return loss


def resnet(p: Parameters, images: int = 2, side: int = 112, last: bool = False) -> Loss:
    """A stem and two blocks of 3 x 3, with group norms."""
    x = p.normal(images, 3, side, side)
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    sizes = (3, 64, 7), (64, 64, 3), (64, 64, 3), (64, 128, 3), (128, 128, 3)
    taps = [p.weight(o, i, n, n) for i, o, n in sizes]
    norms = [(p.scale(o), p.scale(o, 0)) for _, o, _ in sizes]
    short, end = p.weight(128, 64, 1, 1), p.weight(CLASSES, 128)

    def loss(f: Any) -> Any:
        def step(y: Any, i: int, stride: int = 1) -> Any:
            y = f.conv2d(y, taps[i], None, stride, sizes[i][2] // 2)
            return f.group_norm(y, 8, *norms[i])

        y = f.relu(step(x, 0, 2))
        y = f.relu(y + step(f.relu(step(y, 1)), 2))
        other = f.conv2d(y, short, None, 2)
        y = f.relu(other + step(f.relu(step(y, 3, 2)), 4))
        return _classes(f, f.linear(f.mean(y, (2, 3)), end))

    return loss


def resnet_last(p: Parameters) -> Loss:
    """`resnet` of images whose channels lie last in memory."""
    return resnet(p, last=True)


def mobilenet(p: Parameters, images: int = 1, side: int = 112) -> Loss:
    """Convolutions with one channel a group, and of one tap."""
    x, stem = p.normal(images, 3, side, side), p.weight(32, 3, 3, 3)
    sizes = (32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2)
    layers = [(p.weight(i, 1, 3, 3), p.weight(o, i, 1, 1), s) for i, o, s in sizes]
    end = p.weight(CLASSES, 256)

    def loss(f: Any) -> Any:
        y = f.relu(f.conv2d(x, stem, None, 2, 1))
        for taps, point, stride in layers:
            y = f.relu(f.conv2d(y, taps, None, stride, 1, 1, len(taps)))
            y = f.relu(f.conv2d(y, point))
        return _classes(f, f.linear(f.mean(y, (2, 3)), end))

    return loss


def dlrm(p: Parameters, batch: int = 256, width: int = 16, tables: int = 8) -> Loss:
    """Sums of embeddings, their products with one another, and a layer."""
    known, first = p.normal(batch, 13), p.weight(width, 13)
    rows = [p.weight(5000, width) for _ in range(tables)]
    chosen = [torch.randint(5000, (batch, 4)) for _ in range(tables)]
    end = p.weight(CLASSES, width + (tables + 1) ** 2)

    def loss(f: Any) -> Any:
        x = f.relu(f.linear(known, first))
        parts = [f.sum(f.embedding(i, table), 1) for i, table in zip(chosen, rows)]
        z = torch.stack([x, *parts], 1)
        both = f.bmm(z, z.transpose(1, 2)).flatten(1)
        return _classes(f, f.linear(torch.cat([x, both], 1), end))

    return loss


def graph(
    p: Parameters, nodes: int = 2000, edges: int = 10_000, width: int = 32
) -> Loss:
    """Two layers that sum over the neighbours of each node."""
    x = p.normal(nodes, width)
    layers = [(p.weight(width, width), p.weight(width, width)) for _ in range(2)]
    begin, end = torch.randint(nodes, (2, edges))
    places = end[:, None].expand(-1, width)

    def loss(f: Any) -> Any:
        y = x
        for own, other in layers:
            seen = f.index_select(y, 0, begin)
            near = f.scatter_add(torch.zeros_like(y), 0, places, seen)
            y = f.silu(f.linear(y, own) + f.linear(near, other))
        return _classes(f, y)

    return loss


def lstm(p: Parameters, batch: int = 16, steps: int = 20, width: int = 128) -> Loss:
    """A cell, step by step."""
    text, by_input = p.normal(steps, batch, width), p.weight(4 * width, width)
    by_state, end = p.weight(4 * width, width), p.weight(CLASSES, width)

    def loss(f: Any) -> Any:
        h = cell = torch.zeros(batch, width, dtype=p.kind)
        for x in f.linear(text, by_input):
            i, forget, o, new = (x + f.linear(h, by_state)).chunk(4, 1)
            cell = f.sigmoid(forget) * cell + f.sigmoid(i) * f.tanh(new)
            h = f.sigmoid(o) * f.tanh(cell)
        return _classes(f, f.linear(h, end))

    return loss


NETWORKS: dict[str, Callable[[Parameters], Loss]] = {
    made.__name__: made
    for made in (
        *(llama, vit, swin, lenet, resnet, resnet_last, mobilenet),
        *(dlrm, graph, lstm),
    )
}


def in_xetl(what: str, kind: str, dtype: str) -> Job:
    """With `xetl.ops`."""
    parameters = Parameters(dtype)
    loss = NETWORKS[what](parameters)
    torch.testing.assert_close(loss(ops), loss(TORCH), rtol=0.05, atol=0.05)
    return _job(loss, ops, parameters, kind)


def in_torch(what: str, kind: str, dtype: str) -> Job:
    """With torch."""
    parameters = Parameters(dtype)
    return _job(NETWORKS[what](parameters), TORCH, parameters, kind)


def _job(loss: Loss, f: Any, parameters: Parameters, kind: str) -> Job:
    def forward() -> None:
        with torch.no_grad():
            loss(f)

    def training() -> None:
        torch.autograd.grad(loss(f), parameters.all)

    return Job([training if kind == "training" else forward], 1.0)


if __name__ == "__main__":
    options = parse_options(argparse.ArgumentParser(description=__doc__))
    cases = [
        {"what": w, "kind": k, "dtype": d}
        for w in NETWORKS
        for k in ("forward", "training")
        for d in ("float32", "bfloat16")
    ]
    write_csv("networks", CONTEST.run(cases, options))
