"""Random functions of random tensors, like torch's: shapes, strides, dtypes, forms.

Some calls come again, with the same tensors, other elements, `out=`, or a derivative:
they are repeated by native code.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from xetl import ops  # noqa: E402

F32, BF16, F16, F64 = torch.float32, torch.bfloat16, torch.float16, torch.float64
DTYPES = (F32, F32, F32, BF16, F16, F64)
EXTENTS = (1, 2, 3, 5, 8, 16, 17, 31, 33, 64, 65, 100)
MOST = 1 << 24
"""Elements of a tensor: some are larger than caches."""

BOUNDS = {F64: 1e-9, F32: 2e-4, F16: 2e-2, BF16: 8e-2}
FORMS = ("as it is", "again", "changed", "out", "recorded", "NumPy")


class Drawn(NamedTuple):
    """A call: tensors, and both functions of them."""

    name: str
    tensors: Sequence[Any]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]


class Draw(random.Random):
    """Draws calls."""

    def shape(self, least: int = 1, most: int = 3) -> list[int]:
        """Some extents."""
        found = [self.choice(EXTENTS) for _ in range(self.randint(least, most))]
        return found if prod(found) <= MOST else found[1:]

    def tensor(self, shape: Sequence[int], dtype: Any) -> Any:
        """Normal numbers in some layout."""
        layout = self.choice(("plain", "plain", "turned", "part", "steps", "repeated"))
        dim = self.randrange(len(shape))
        wider, cut = list(shape), [slice(None)] * len(shape)
        if layout == "turned":
            wider = wider[::-1]
        elif layout == "part":
            wider[dim], cut[dim] = wider[dim] + 3, slice(1, wider[dim] + 1)
        elif layout == "steps":
            wider[dim], cut[dim] = wider[dim] * 2, slice(None, None, 2)
        elif layout == "repeated":
            wider[dim] = 1
        made = torch.randn(wider, dtype=F64).to(dtype)
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

    def call(self) -> Drawn:
        """Any of them."""
        often = self.elementwise, self.along, self.reduction, self.norm, self.product
        seldom = self.attention, self.convolution, self.indexed
        return self.choice((*often, *often, *seldom))()


def check(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    bound = BOUNDS[wanted.dtype]
    most = max(1.0, float(wanted.abs().max()))
    torch.testing.assert_close(found, wanted, atol=bound * most, rtol=bound)


def run(draw: Draw, drawn: Drawn, form: str) -> None:
    """Compute both, in a form, and compare."""
    _, tensors, ours, theirs = drawn
    if form == "changed":
        for each in tensors:
            if 0 not in each.stride():
                each.mul_(0.5)
    if form == "recorded" and not drawn.name.startswith("am"):  # equal ones share
        leaves = [[x.detach().clone().requires_grad_() for x in tensors] for _ in "ab"]
        found, wanted = ours(*leaves[0]), theirs(*leaves[1])
        slopes = torch.randn(wanted.shape, dtype=F64).to(wanted.dtype)
        for each in (found, wanted):
            each.backward(slopes)
        for one, two in zip(*leaves):
            check(one.grad, two.grad)
    elif form == "NumPy" and all(x.dtype is not BF16 for x in tensors):
        found = ours(*[x.numpy() for x in tensors])
        check(torch.from_numpy(np.array(found)), theirs(*tensors))
    elif form == "out":
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
