"""Whole kernels of the kind users bring: they compile, verify and print."""

import pytest
from building import build

from tests.example_kernels import (
    attention_of_heads,
    layer_norm,
    online_softmax,
    softmax,
    weight_gradient,
)
from xetl import xetile
from xetl.xetile import constexpr


def cross_entropy(L, T, OUT, G, N: constexpr = 10):
    i = xetile.program_id(0)
    tile = xetile.init_tile(L, [i, 0], (1, N))
    x = xetile.load_tile(tile, padding=-xetile.inf)
    hit = xetile.arange(N)[None, :] == T[i]
    m = xetile.max(x, 1, keepdims=True)
    lse = xetile.log(xetile.sum(xetile.exp(x - m), 1, keepdims=True)) + m
    loss = lse - xetile.where(hit, x, 0.0).sum()
    xetile.store_tile(loss, xetile.init_tile(OUT, [i, 0], (1, 1)))
    g = (xetile.exp(x - lse) - xetile.where(hit, 1.0, 0.0)) / L.shape[0]
    xetile.store_tile(g, xetile.init_tile(G, [i, 0], (1, N)))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_softmax(dtype):
    build(softmax, X=f"{dtype} 2", Y=f"{dtype} 2")


def test_online_softmax():
    build(online_softmax, X="f32 2", Y="f32 2")


def test_cross_entropy():
    build(cross_entropy, L="f32 2", T="i32 1", OUT="f32 2", G="f32 2")


def test_layer_norm():
    build(layer_norm, X="f32 2", W="f32 1", B="f32 1", Y="f32 2", eps="f64")


@pytest.mark.parametrize("layout", ["", "T", "S"])
def test_weight_gradient(layout):
    build(weight_gradient, X=f"f32 2 {layout}", DY="f32 2", DW="f32 2")


def test_attention():
    arrays = dict.fromkeys(["Q", "K", "V", "OUT"], "bf16 4")
    build(attention_of_heads, **arrays, scale="f64")
