"""Random functions of random tensors, like torch's: shapes, strides, dtypes, forms.

Some calls come again, with the same tensors, other elements, tensors that lie
otherwise, `out=`, or a derivative: they are repeated by native code. Tensors are in
NumPy's memory, so that ``XETL_TESTS_FENCED=1`` puts them between guard pages.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from torch.nn import functional as F

from xetl import ops

F32, BF16, F16, F64 = torch.float32, torch.bfloat16, torch.float16, torch.float64
DTYPES = (F32, F32, F32, BF16, F16, F64)
EXTENTS = (1, 2, 3, 5, 8, 16, 17, 31, 33, 64, 65, 100, 257, 777, 1024, 2049)
MOST = 1 << 22
"""Elements of a tensor: some are larger than caches."""

BOUNDS = {F64: 1e-9, F32: 2e-4, F16: 2e-2, BF16: 8e-2}
FORMS = ("as it is", "again", "changed", "relaid", "out", "recorded", "NumPy")
LAYOUTS = ("plain", "plain", "turned", "part", "steps", "repeated", "later")


class Drawn(NamedTuple):
    """A call: tensors, and both functions of them."""

    name: str
    tensors: Sequence[Any]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]


class Draw(random.Random):
    """Draws calls."""

    def shape(self, least: int = 1, most: int = 3, others: int = 1) -> list[int]:
        """Some extents; ``others`` is the product of those in front of them."""
        found = [self.choice(EXTENTS) for _ in range(self.randint(least, most))]
        while others * prod(found) > MOST:
            found[found.index(max(found))] //= 3
        return found

    def tensor(self, shape: Sequence[int], dtype: Any) -> Any:
        """Normal numbers in some layout."""
        layout, dim = self.choice(LAYOUTS), self.randrange(len(shape))
        wider, cut = list(shape), [slice(None)] * len(shape)
        if layout == "turned":
            wider = wider[::-1]
        elif layout == "part":
            wider[dim], cut[dim] = wider[dim] + 3, slice(1, wider[dim] + 1)
        elif layout == "steps":
            wider[dim], cut[dim] = wider[dim] * 2, slice(None, None, 2)
        elif layout == "repeated":
            wider[dim] = 1
        first = self.choice((1, 2, 3, 8)) if layout == "later" else 0
        bytes_each = torch.empty((), dtype=dtype).element_size()
        memory = np.empty((first + prod(wider)) * bytes_each, np.uint8)
        made = torch.from_numpy(memory).view(dtype)[first:].view(wider)
        made.copy_(torch.randn(wider, dtype=F64))
        if layout == "turned":
            return made.permute(tuple(reversed(range(len(shape)))))
        return made.expand(shape) if layout == "repeated" else made[tuple(cut)]

    def elementwise(self) -> Drawn:
        """An activation."""
        name = self.choice(("relu", "silu", "sigmoid", "tanh", "gelu"))
        like = getattr(F, name, None) or getattr(torch, name)
        x = self.tensor(self.shape(1, 4), self.choice(DTYPES))
        return Drawn(name, (x,), getattr(ops, name), like)

    def along(self) -> Drawn:
        """A function of a dimension."""
        name = self.choice(("softmax", "log_softmax", "cumsum"))
        x = self.tensor(self.shape(1, 4), self.choice(DTYPES))
        dim = self.randrange(-x.ndim, x.ndim)
        ours, theirs = getattr(ops, name), getattr(torch, name)
        return Drawn(
            name, (x,), lambda x, **out: ours(x, dim, **out), lambda x: theirs(x, dim)
        )

    def reduction(self) -> Drawn:
        """A function of dimensions, which may stay."""
        name = self.choice(("sum", "mean", "amax", "amin"))
        x = self.tensor(self.shape(1, 4), self.choice(DTYPES))
        dims = self.sample(range(x.ndim), self.randint(1, x.ndim)), self.random() < 0.5
        ours, theirs = getattr(ops, name), getattr(torch, name)
        return Drawn(
            f"{name} {dims}",
            (x,),
            lambda x, **out: ours(x, *dims, **out),
            lambda x: theirs(x, *dims),
        )

    def norm(self) -> Drawn:
        """A norm of the last dimensions."""
        shape, dtype = self.shape(), self.choice(DTYPES)
        inner = tuple(shape[-self.randint(1, len(shape)) :])
        tensors = [self.tensor(s, dtype) for s in (shape, inner, inner)]
        tensors = tensors[: self.randint(1, 3)]
        return Drawn(
            f"layer_norm of {inner}",
            tensors,
            lambda x, *w, **out: ops.layer_norm(x, inner, *w, **out),
            lambda x, *w: F.layer_norm(x, inner, *w),
        )

    def product(self) -> Drawn:
        """A product of matrices."""
        (m, k, n), dtype = self.shape(3, 3), self.choice(DTYPES)
        batch = self.choice(([], [], [2], [3, 1]))
        name = self.choice(("matmul", "linear", "addmm"))
        if name == "matmul":
            a, b = [*batch, m, k], [*self.choice((batch, [])), k, n]
            return Drawn(
                name,
                (self.tensor(a, dtype), self.tensor(b, dtype)),
                ops.matmul,
                torch.matmul,
            )
        if name == "linear":
            shapes = ([*batch, m, k], [n, k], [n])[: self.randint(2, 3)]
            tensors = [self.tensor(s, dtype) for s in shapes]
            return Drawn(name, tensors, ops.linear, F.linear)
        shapes = (self.choice(([m, n], [n], [1, n], [m, 1])), [m, k], [k, n])
        tensors = [self.tensor(s, dtype) for s in shapes]
        return Drawn(name, tensors, ops.addmm, torch.addmm)

    def attention(self) -> Drawn:
        """Attention of a few heads."""
        (s, t), dtype = self.shape(2, 2), self.choice((F32, F32, BF16, F16))
        d, e = self.choice((8, 40, 64)), self.choice((8, 16, 64))
        shapes = ([2, 3, s, d], [2, 3, t, d], [2, 3, t, e])
        tensors = [self.tensor(shape, dtype) for shape in shapes]
        name = "scaled_dot_product_attention"
        return Drawn(name, tensors, getattr(ops, name), getattr(F, name))

    def convolution(self) -> Drawn:
        """A convolution of images."""
        groups = self.choice((1, 1, 2))
        channels, results = (groups * self.choice((1, 3, 8)) for _ in range(2))
        shapes = [2, channels, 15, 11], [results, channels // groups, 3, 2], [results]
        tensors = [self.tensor(s, self.choice((F32, BF16))) for s in shapes[:1]]
        tensors += [self.tensor(s, tensors[0].dtype) for s in shapes[1:]]
        options = (self.choice((1, 2)), self.choice((0, 1)), 1, groups)
        return Drawn(
            f"conv2d {options}",
            tensors,
            lambda *x, **out: ops.conv2d(*x, *options, **out),
            lambda *x: F.conv2d(*x, *options),
        )

    def indexed(self) -> Drawn:
        """Elements by numbers."""
        x = self.tensor(self.shape(), self.choice(DTYPES))
        dim, name = self.randrange(x.ndim), self.choice(("gather", "index_select"))
        shape = [*x.shape[:dim], 9, *x.shape[dim + 1 :]] if name == "gather" else [9]
        numbers = torch.randint(0, x.shape[dim], shape)
        ours, theirs = getattr(ops, name), getattr(torch, name)
        return Drawn(
            name,
            (x,),
            lambda x, **out: ours(x, dim, numbers, **out),
            lambda x: theirs(x, dim, numbers),
        )

    def loss(self) -> Drawn:
        """A loss, of classes or of numbers."""
        name = self.choice(("cross_entropy", "nll_loss", "mse_loss", "kl_div"))
        ours, theirs = getattr(ops, name), getattr(F, name)
        shape, dtype = self.shape(1, 4), self.choice(DTYPES)
        how: dict[str, Any] = {"reduction": self.choice(("mean", "sum", "none"))}
        if name == "kl_div":
            how["log_target"] = True
        if name in ("mse_loss", "kl_div"):
            tensors = self.tensor(shape, dtype), self.tensor(shape, dtype)
            return Drawn(f"{name} {how}", tensors, *_with(ours, theirs, how))
        shape = shape if len(shape) > 1 else [*shape, 7]
        x = self.tensor(shape, dtype)
        target = torch.randint(0, shape[1], (shape[0], *shape[2:]))
        if self.random() < 0.5:
            target[torch.rand(target.shape) < 0.3] = how["ignore_index"] = -100
            target.view(-1)[0] = 0  # else the mean is of nothing
        if name == "cross_entropy" and self.random() < 0.5:
            how["label_smoothing"] = 0.2
        if name == "cross_entropy" and self.random() < 0.3:
            how.pop("ignore_index", None)
            tensors = x, self.tensor(shape, dtype)
            return Drawn(f"{name} {how}", tensors, *_with(ours, theirs, how))
        pair = _with(
            lambda x, **most: ours(x, target, **most),
            lambda x, **most: theirs(x, target, **most),
            how,
        )
        return Drawn(f"{name} {how}", (x,), *pair)

    def channels(self) -> Drawn:
        """A norm over channels."""
        dtype, groups = self.choice((F32, BF16, F64)), self.choice((1, 2, 3))
        first = [self.choice((1, 2, 5)), groups * self.choice((1, 2, 8))]
        shape = [*first, *self.shape(others=prod(first))]
        x = self.tensor(shape, dtype)
        row, shift = (self.tensor(shape[1:2], dtype) for _ in "ab")
        if self.random() < 0.5:
            affine = self.choice(((), (row,), (row, shift)))
            return Drawn(
                f"group_norm {groups}",
                (x, *affine),
                lambda x, *most, **out: ops.group_norm(x, groups, *most, **out),
                lambda x, *most: F.group_norm(x, groups, *most),
            )
        if prod(shape) > shape[1] and self.random() < 0.5:
            return Drawn(
                "batch_norm of a batch",
                (x, row, shift),
                lambda x, *most, **out: ops.batch_norm(
                    x, None, None, *most, training=True, **out
                ),
                lambda x, *most: F.batch_norm(x, None, None, *most, training=True),
            )
        mean, variance = torch.randn(shape[1]), torch.rand(shape[1]) + 0.1
        seen = mean.to(dtype), variance.to(dtype)
        return Drawn(
            "batch_norm",
            (x, row, shift),
            lambda x, *most, **out: ops.batch_norm(x, *seen, *most, **out),
            lambda x, *most: F.batch_norm(x, *seen, *most),
        )

    def gated(self) -> Drawn:
        """Two tensors, one through an activation; or a norm by mean squares."""
        shape, dtype = self.shape(1, 4), self.choice(DTYPES)
        name = self.choice(("swiglu", "geglu", "rms_norm"))
        if name == "rms_norm":
            tensors = [self.tensor(s, dtype) for s in (shape, shape[-1:])]
            return Drawn(
                name,
                tensors[: self.randint(1, 2)],
                lambda x, w=None, **out: ops.rms_norm(x, shape[-1:], w, 1e-3, **out),
                lambda x, w=None: F.rms_norm(x, shape[-1:], w, 1e-3),
            )
        by = F.silu if name == "swiglu" else F.gelu
        tensors = self.tensor(shape, dtype), self.tensor(shape, dtype)
        return Drawn(name, tensors, getattr(ops, name), lambda x, y: by(x) * y)

    def variance(self) -> Drawn:
        """The variance of dimensions."""
        x = self.tensor(self.shape(1, 4), self.choice((F32, F32, F64, BF16)))
        dims = self.sample(range(x.ndim), self.randint(1, x.ndim)), self.choice((0, 1))
        if prod(x.shape[i] for i in dims[0]) <= 1:
            dims = dims[0], 0
        return Drawn(
            f"var {dims}",
            (x,),
            lambda x, **out: ops.var(x, *dims, **out),
            lambda x: torch.var(x, dims[0], correction=dims[1]),
        )

    def picked(self) -> Drawn:
        """Rows of a table, or the largest numbers."""
        x = self.tensor(self.shape(2, 2), self.choice((F32, BF16, F16)))
        name = self.choice(("embedding", "topk", "sort", "scatter_add"))
        dim = self.randrange(x.ndim)
        if name == "embedding":
            numbers = torch.randint(0, len(x), self.shape(1, 2))
            ours, theirs = (
                lambda w, f=f, **o: f(numbers, w, **o)
                for f in (ops.embedding, F.embedding)
            )
            return Drawn(name, (x,), ours, theirs)
        if name == "scatter_add":
            source = self.tensor(list(x.shape), x.dtype)
            numbers = torch.randint(0, x.shape[dim], x.shape)
            ours, theirs = (
                lambda x, s, f=f, **o: f(x, dim, numbers, s, **o)
                for f in (ops.scatter_add, torch.scatter_add)
            )
            return Drawn(name, (x, source), ours, theirs)
        count = self.randint(1, x.shape[dim])
        options = (count, dim) if name == "topk" else (dim, self.random() < 0.5)
        ours, theirs = (
            lambda x, f=f: f(x, *options)[0]
            for f in (getattr(ops, name), getattr(torch, name))
        )
        return Drawn(f"{name} {options}", (x,), ours, theirs)

    def masked_attention(self) -> Drawn:
        """Attention with masks, groups of heads, or a causal one."""
        (s, t), dtype = self.shape(2, 2), self.choice((F32, F32, BF16, F16))
        heads, d = self.choice((1, 2)), self.choice((8, 40, 64))
        grouped = self.choice((1, 3))
        how: dict[str, Any] = {"enable_gqa": grouped > 1}
        kind = self.choice(("causal", "bool", "floats", "none"))
        how["is_causal"] = kind == "causal"
        if kind == "bool":
            how["attn_mask"] = torch.rand(s, t) < 0.7
            how["attn_mask"][:, 0] = True
        elif kind == "floats":
            how["attn_mask"] = torch.randn(2, 1, s, t).to(dtype)
        if self.random() < 0.3:
            how["scale"] = 0.3
        shapes = [2, heads * grouped, s, d], [2, heads, t, d], [2, heads, t, d]
        name = "scaled_dot_product_attention"
        pair = _with(getattr(ops, name), getattr(F, name), how)
        return Drawn(
            f"{name} {kind} {grouped}", [self.tensor(x, dtype) for x in shapes], *pair
        )

    def call(self) -> Drawn:
        """Any of them."""
        often = self.elementwise, self.along, self.reduction, self.norm, self.product
        seldom = self.attention, self.convolution, self.indexed, self.masked_attention
        later = self.loss, self.channels, self.gated, self.variance, self.picked
        return self.choice((*often, *seldom, *later))()


def _with(ours: Any, theirs: Any, how: dict[str, Any]) -> tuple[Any, Any]:
    """Both with the same further arguments."""
    return (
        lambda *tensors, **out: ours(*tensors, **how, **out),
        lambda *tensors: theirs(*tensors, **how),
    )


def check(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    bound = BOUNDS[wanted.dtype]
    most = max(1.0, float(wanted.abs().max()))
    torch.testing.assert_close(found, wanted, atol=bound * most, rtol=bound)


def run(draw: Draw, drawn: Drawn, form: str) -> None:
    """Compute both, in a form, and compare."""
    _, tensors, ours, theirs = drawn
    if form == "relaid":
        tensors = [draw.tensor(list(x.shape), x.dtype) for x in tensors]
    if form == "changed":
        for each in tensors:
            if 0 not in each.stride():
                each.mul_(0.5)
    # Equal ones share, or the first of them has all.
    if form == "recorded" and not drawn.name.startswith(("am", "topk", "sort")):
        leaves = [[x.detach().clone().requires_grad_() for x in tensors] for _ in "ab"]
        found, wanted = ours(*leaves[0]), theirs(*leaves[1])
        slopes = torch.randn(wanted.shape, dtype=F64).to(wanted.dtype)
        for each in (found, wanted):
            each.backward(slopes)
        for one, two in zip(*leaves):
            check(one.grad, two.grad)
    elif form == "NumPy" and all(x.dtype is not BF16 for x in tensors):
        found = ours(*[x.numpy() for x in tensors])
        check(torch.as_tensor(found), theirs(*tensors))
    elif form == "out" and not drawn.name.startswith(("topk", "sort")):  # two results
        wanted = theirs(*tensors)
        turned = tuple(reversed(range(wanted.ndim))) if draw.random() < 0.5 else None
        place = torch.full_like(wanted, torch.nan)
        place = place if turned is None else place.permute(turned).contiguous()
        place = place if turned is None else place.permute(turned)
        assert ours(*tensors, out=place) is place
        check(place, wanted)
    else:
        check(ours(*tensors), theirs(*tensors))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides the total loss")
@pytest.mark.parametrize("seed", range(4))
def test_random_calls(seed: int) -> None:
    draw = Draw(seed)
    torch.manual_seed(seed)
    recent: list[Drawn] = []
    for _ in range(120):
        drawn = draw.choice(recent) if draw.random() < 0.6 and recent else draw.call()
        recent = [*recent, drawn][-12:]
        form = draw.choice(FORMS)
        try:
            run(draw, drawn, form)
        except Exception as error:
            shapes = [(*x.shape, x.stride(), x.dtype) for x in drawn.tensors]
            raise AssertionError(f"{drawn.name}, {form}: {shapes}") from error
