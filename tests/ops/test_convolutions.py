"""`ops.conv1d` and `ops.conv2d` against torch: values, derivatives, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from tests.ops.test_like_torch import BOUNDS, close
from xetl import ops
from xetl.errors import LaunchError
from xetl.language.dtypes import bf16, f32
from xetl.ops.calling.declarations import temporary
from xetl.ops.calling.views import array_of
from xetl.ops.convolution import kernels, plans
from xetl.ops.convolution.columns import has_few_pixels
from xetl.ops.convolution.geometry import Geometry
from xetl.ops.convolution.windows import LAST, find_windows

CASES = [
    # One channel, which is no group of several.
    ((2, 1, 15, 11), (1, 1, 3, 2), {"stride": 2}),
    ((1, 1, 9, 8), (1, 1, 1, 1), {"stride": 2}),
    ((2, 6, 9, 40), (8, 6, 3, 3), {"padding": 1}),
    ((2, 6, 9, 11), (8, 6, 3, 5), {"stride": 2, "padding": (1, 2)}),
    ((1, 6, 12, 75), (4, 6, 3, 3), {"stride": (2, 1), "dilation": 2, "padding": 3}),
    ((2, 6, 9, 11), (6, 2, 2, 3), {"groups": 3, "padding": 1, "stride": (1, 3)}),
    ((2, 6, 9, 50), (12, 1, 3, 3), {"groups": 6, "padding": "same"}),
    ((2, 6, 9, 11), (5, 6, 1, 1), {}),
    ((2, 6, 9, 11), (5, 6, 1, 1), {"stride": 2, "padding": 1}),
    # A row of windows sees every second or third row of the input.
    ((2, 6, 9, 11), (5, 6, 1, 1), {"stride": 2}),
    ((2, 6, 10, 11), (4, 3, 1, 3), {"stride": (3, 1), "padding": (0, 1), "groups": 2}),
    ((6, 9, 11), (5, 6, 2, 2), {"padding": "same", "dilation": (3, 1)}),
    ((2, 70, 5, 9), (70, 70, 3, 3), {"padding": "valid"}),
    ((2, 6, 40), (8, 6, 3), {"padding": 1, "stride": 2}),
    ((6, 20), (4, 3, 4), {"groups": 2, "padding": "same"}),
    ((2, 6, 12, 18), (6, 1, 5, 3), {"groups": 6, "stride": (3, 2), "padding": (2, 0)}),
    # Groups of few channels: sums of rows, no product.
    (
        (2, 12, 13, 30),
        (21, 4, 3, 3),
        {"groups": 3, "stride": (2, 1), "dilation": (1, 2), "padding": 2},
    ),
    ((1, 10, 9, 70), (30, 5, 2, 5), {"groups": 2, "padding": "same"}),
    ((1, 8, 9, 13), (32, 4, 3, 3), {"groups": 2, "padding": 1}),
    # A remainder by the stride has fewer pixels; more rows than a program makes.
    ((1, 2, 75, 67), (2, 1, 3, 11), {"groups": 2, "stride": 2, "dilation": (5, 1)}),
    # Fewer pixels than channels: what taps see is copied.
    ((2, 5, 3, 4), (24, 5, 3, 3), {"padding": 1}),
    ((1, 70, 9, 11), (40, 70, 3, 2), {"stride": 2, "padding": (1, 0), "dilation": 2}),
    ((3, 4, 6), (30, 4, 3), {"padding": 2}),
    ((2, 3, 18, 17), (612, 3, 1, 3), {"padding": (0, 1)}),
    # What a program would copy is too much.
    ((1, 2, 90, 80), (2, 1, 40, 36), {"groups": 2, "stride": 3, "dilation": 2}),
    # Patches: each pixel is in one window, or in none.
    ((2, 3, 12, 20), (7, 3, 4, 5), {"stride": (4, 5)}),
    ((2, 3, 13, 18), (5, 3, 2, 2), {"stride": 2}),
    # Rows shorter than half of a vector, with channels that fill one.
    ((3, 20, 5, 3), (20, 1, 3, 3), {"groups": 20, "padding": 1}),
    # Channels that fill a vector: a product for each phase of the stride.
    ((2, 18, 9, 11), (8, 18, 3, 5), {"stride": 2, "padding": (1, 2)}),
    ((2, 17, 10, 11), (4, 17, 1, 3), {"stride": (3, 1), "padding": (0, 1)}),
]

QUICK = 7
WIDE = [torch.float64, torch.float32]


def normal(*shape: int) -> Any:
    make = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=make, dtype=torch.float64)


def function_of(kernel: tuple[int, ...]) -> str:
    return "conv2d" if len(kernel) == 4 else "conv1d"


pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even")
slow = pytest.mark.slow  # a case compiles seven kernels


@pytest.mark.parametrize(
    "dtype", [*(pytest.param(each, marks=slow) for each in WIDE), torch.bfloat16]
)
@pytest.mark.parametrize(
    ("shape", "kernel", "options"),
    [*CASES[:QUICK], *(pytest.param(*each, marks=slow) for each in CASES[QUICK:])],
)
def test_values_and_derivatives(
    shape: Any, kernel: Any, options: Any, dtype: Any
) -> None:
    parts = [normal(*each).to(dtype) for each in (shape, kernel, kernel[:1])]
    ours, theirs = ([x.clone().requires_grad_() for x in parts] for _ in "12")
    name = function_of(kernel)
    found = getattr(ops, name)(*ours, **options)
    wanted = getattr(torch.nn.functional, name)(*theirs, **options)
    close(found, wanted, BOUNDS[dtype])
    weights = normal(*wanted.shape).to(dtype)
    found.backward(weights)
    wanted.backward(weights)
    for one, two in zip(ours, theirs):
        close(one.grad, two.grad, 8 * BOUNDS[dtype])


@pytest.mark.parametrize(("shape", "kernel", "options"), CASES[::4])
def test_strided_operands_numpy_and_out(shape: Any, kernel: Any, options: Any) -> None:
    x, w = normal(*shape).float(), normal(*kernel).float()
    name = function_of(kernel)
    wanted = getattr(torch.nn.functional, name)(x, w, **options)
    function = getattr(ops, name)
    channels = x.ndim + 1 - len(kernel)
    last = (*range(channels), *range(channels + 1, x.ndim), channels)
    back = np.argsort(last).tolist()
    close(
        function(x.permute(last).contiguous().permute(back), w, **options), wanted, 1e-5
    )
    close(torch.from_numpy(function(x.numpy(), w.numpy(), **options)), wanted, 1e-5)
    out = torch.empty(wanted.mT.shape).mT
    assert function(x, w, **options, out=out) is out
    close(out, wanted, 1e-5)


CHANNELS_LAST = [
    ((2, 6, 9, 40), (8, 6, 3, 3), {"padding": 1}),
    ((2, 5, 9, 11), (7, 5, 3, 5), {"stride": 2, "padding": (1, 2), "dilation": (1, 2)}),
    ((2, 6, 9, 11), (5, 6, 1, 1), {}),
    ((2, 6, 9, 11), (5, 6, 1, 1), {"stride": (2, 3)}),
    ((2, 6, 9, 11), (5, 6, 1, 1), {"stride": 2, "padding": 1}),
    ((2, 6, 9, 30), (70, 6, 3, 3), {"stride": (3, 1)}),
    ((2, 3, 9, 40), (8, 3, 3, 3), {"padding": 1}),  # of few terms
    # Fewer pixels than channels.
    ((1, 6, 9, 11), (130, 6, 3, 3), {"padding": 1}),
    ((2, 6, 3, 4), (30, 6, 1, 1), {}),
    # Patches: each pixel is in one window, or in none.
    ((2, 3, 12, 20), (7, 3, 4, 5), {"stride": (4, 5)}),
    ((1, 5, 6, 9), (4, 5, 1, 3), {"stride": (1, 3)}),
    ((2, 3, 13, 20), (7, 3, 4, 4), {"stride": 4}),
    # Groups: the images are copied.
    ((2, 6, 9, 11), (6, 3, 3, 3), {"groups": 2}),
    ((1, 4, 9, 11), (8, 1, 3, 3), {"groups": 4, "stride": 2}),
    # One channel a group: vectors are channels.
    ((2, 40, 9, 13), (40, 1, 3, 3), {"groups": 40, "padding": 1}),
    ((1, 3, 20, 70), (3, 1, 3, 5), {"groups": 3, "stride": 2, "padding": (1, 2)}),
    (
        (2, 33, 11, 9),
        (33, 1, 5, 3),
        {"groups": 33, "stride": (1, 2), "dilation": (2, 1), "padding": (0, 3)},
    ),
    ((1, 16, 40, 41), (16, 1, 3, 3), {"groups": 16, "stride": 3, "dilation": 2}),
    # Several tiles of rows and of columns.
    ((1, 3, 35, 40), (3, 1, 3, 3), {"groups": 3, "padding": 1}),
    # More zeros than a row that a tile reads.
    ((1, 6, 5, 4), (6, 1, 1, 3), {"groups": 6, "stride": (2, 3), "padding": (8, 11)}),
    # What a program would copy is too much.
    ((1, 2, 90, 80), (2, 1, 40, 36), {"groups": 2, "stride": 3, "dilation": 2}),
]


@pytest.mark.parametrize("weight_is_last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("shape", "kernel", "options"), CHANNELS_LAST)
def test_channels_last(
    shape: Any, kernel: Any, options: Any, dtype: Any, weight_is_last: bool
) -> None:
    last = {"memory_format": torch.channels_last}
    x, w, b = (normal(*each).to(dtype) for each in (shape, kernel, kernel[:1]))
    x = x.contiguous(**last)
    weight = w.contiguous(**last) if weight_is_last else w
    ours, theirs = (
        [each.clone().requires_grad_() for each in (x, weight, b)] for _ in "12"
    )
    found = ops.conv2d(*ours, **options)
    wanted = torch.nn.functional.conv2d(*theirs, **options)
    close(found, wanted, BOUNDS[dtype])
    assert found.is_contiguous(**last)
    grad = normal(*wanted.shape).to(dtype).contiguous(**last)
    found.backward(grad)
    wanted.backward(grad)
    for one, two in zip(ours, theirs):
        close(one.grad, two.grad, 8 * BOUNDS[dtype])
    assert ours[0].grad.is_contiguous(**last)
    for image in (x, x.contiguous()):
        for kind in (dtype, torch.float64):
            place = torch.empty_like(wanted, dtype=kind)
            swapped = place.transpose(0, 1).contiguous().transpose(0, 1)
            for out in (place.contiguous(), place.contiguous(**last), swapped):
                ops.conv2d(image, weight, b, **options, out=out)
                close(out.to(dtype), wanted, BOUNDS[dtype])


@slow
@pytest.mark.parametrize("groups", [1, 2])
def test_gradcheck_and_opcheck(groups: int) -> None:
    x, w, b = normal(2, 4, 5, 36), normal(4, 4 // groups, 3, 2), normal(4)
    given = tuple(each.requires_grad_() for each in (x, w, b))
    how = ((2, 1), (1, 0, 1, 2), (1, 2), groups)

    def called(*tensors: Any) -> Any:
        return ops.conv2d(*tensors, stride=(2, 1), dilation=(1, 2), groups=groups)

    assert torch.autograd.gradcheck(called, given, fast_mode=True)
    ops.conv2d(*given, groups=groups)
    torch.library.opcheck(torch.ops.xetl.convolution.default, (*given, *how))


@slow
@pytest.mark.parametrize(
    "how", [{"padding": "same"}, {"stride": 2}, {"stride": (1, 2), "groups": 2}]
)
def test_compiled(how: dict[str, Any]) -> None:
    x, w = normal(2, 4, 5, 36), normal(4, 4 // how.get("groups", 1), 3, 2)

    def gradients(call: Any) -> tuple[Any, ...]:
        given = [each.detach().requires_grad_() for each in (x, w)]
        made = call(*given)
        return (made, *torch.autograd.grad(made.square().sum(), given))

    def called(*tensors: Any) -> Any:
        return ops.conv2d(*tensors, **how)

    compiled = torch.compile(called, fullgraph=True, backend="aot_eager")
    for got, want in zip(gradients(compiled), gradients(called)):
        close(got, want, 1e-12)


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("X0827", lambda x, w: ops.conv2d(x, w[:, :3])),
        ("X0827", lambda x, w: ops.conv2d(x, w, groups=3)),
        ("X0827", lambda x, w: ops.conv2d(x, w, w[0])),
        ("X0827", lambda x, w: ops.conv2d(x, w, stride=0)),
        ("X0827", lambda x, w: ops.conv2d(x, w, padding="same", stride=2)),
        ("X0827", lambda x, w: ops.conv2d(x, w, padding="full")),
        ("X0827", lambda x, w: ops.conv2d(x[..., :2], w)),
        ("X0827", lambda x, w: ops.conv1d(x, w)),
        ("X0828", lambda x, w: ops.conv2d(x, w.double())),
    ],
)
def test_what_is_refused(code: str, call: Any) -> None:
    with pytest.raises(LaunchError) as caught:
        call(torch.ones(2, 4, 5, 5), torch.ones(4, 4, 3, 3))
    assert caught.value.code == code
    assert caught.value.file == __file__


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [4, 64])
def test_no_images(stride: int, channels: int) -> None:
    x, weight = np.ones((0, 3, 5, 5)), np.ones((channels, 3, 3, 3))
    assert ops.conv2d(x, weight).shape == (0, channels, 3, 3)
    given, kernel = (torch.from_numpy(each).requires_grad_() for each in (x, weight))
    ops.conv2d(given, kernel, stride=stride).sum().backward()
    assert given.grad.shape == given.shape
    assert (kernel.grad == 0).all()


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize(("rows", "columns"), [(5, 9), (36, 37)])
@pytest.mark.parametrize("axis", [2, 3])
def test_a_tap_does_not_see_what_is_behind_its_pixels(
    groups: int, rows: int, columns: int, axis: int
) -> None:
    x, taps = normal(2, 3, rows, columns), (2, 1) if axis == 2 else (1, 2)
    w = normal(6, 3 // groups, *taps).requires_grad_()
    seen = x.narrow(axis, 0, x.shape[axis] - 1).sum((0, 2, 3))
    x.select(axis, -1).fill_(torch.inf)  # which the second tap alone sees
    ops.conv2d(x, w, groups=groups).sum().backward()
    first, second = w.grad.flatten(2).unbind(2)
    of_group = seen.reshape(groups, 1, -1).expand(-1, 6 // groups, -1)
    torch.testing.assert_close(first, of_group.reshape(6, -1))
    assert second.isinf().all()


@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
@pytest.mark.parametrize("result", [(2, 7), (5, 28), (3, 64)])
def test_rows_of_windows_are_whole_tiles(stride: Any, result: Any) -> None:
    """Products on tiles read them in place, so all of them lie in their memory."""
    g = Geometry((3, 3), stride, (1, 1), (1, 1), result)
    other = Geometry((1, 2), stride, (1, 1), (-1, 0), result)
    x = temporary((2, 5, 9, 90), bf16)
    for parts in ([g], [other], [g, other], [other, g]):
        _, padded, windows = find_windows(x, parts, 1)
        memory = array_of(padded)
        first, end = np.lib.array_utils.byte_bounds(memory)
        for each in windows:
            seen = each.view(memory)
            assert seen.shape[2] % 32 == 0
            assert seen.shape[2] - result[1] < 32
            low, high = np.lib.array_utils.byte_bounds(seen)
            assert first <= low
            assert high <= end


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("how", [((1, 1), (1, 1)), ((0, 0), (1, 1)), ((2, 1), (1, 2))])
def test_layers_of_few_pixels(dtype: Any, stride: Any, how: Any) -> None:
    """What a tap sees is copied row by row, or all rows at once if they are alike.

    The gradient by the input is summed of what each tap gives.
    """
    parts = [normal(2, 17, 6, 9).to(dtype), normal(128, 17, 3, 3).to(dtype)]
    kinds = dtype, torch.float64
    ours, exact = (
        [x.detach().to(kind).requires_grad_() for x in parts] for kind in kinds
    )
    out = ops.conv2d(*ours, None, stride, *how)
    wanted = torch.conv2d(*exact, None, stride, *how)
    assert 2 * wanted[0, 0].numel() <= 128
    close(out, wanted.to(dtype), BOUNDS[dtype])
    given = normal(*out.shape).to(dtype)
    out.backward(given)
    wanted.backward(given.double())
    for x, y in zip(ours, exact):
        close(x.grad, y.grad.to(dtype), BOUNDS[dtype])


@pytest.mark.parametrize(
    ("size", "taps", "padding", "dilation"),
    [((9, 70), 3, 1, 1), ((8, 9), 2, 0, 1), ((33, 17), 5, 2, 2)],
)
def test_gradient_of_one_channel_a_group(
    size: Any, taps: int, padding: int, dilation: int
) -> None:
    """With a stride of 2 there are zeros between the pixels of what is given."""
    x = normal(2, 3, *size).float().requires_grad_()
    weight = normal(3, 1, taps, taps).float()
    how = weight, None, 2, padding, dilation, 3
    wanted = torch.nn.functional.conv2d(x, *how)
    grad = normal(*wanted.shape).float()
    (found,) = torch.autograd.grad(ops.conv2d(x, *how), x, grad)
    close(found, *torch.autograd.grad(wanted, x, grad), 1e-5)


@pytest.mark.parametrize("dtype", [f32, bf16])
@pytest.mark.parametrize("side", [14, 112])
def test_pixels_with_strides_are_not_gathered(dtype: Any, side: int) -> None:
    shapes = (4, side, side), (4, 1, 1, 9), (4, side // 2, side // 2)
    x, taps, out = (array_of(temporary(shape, dtype)) for shape in shapes)
    how = ((3, 3), (2, 2), (1, 1)), (1, 1), False, False, f32, 7, 3, 1, 7, 16, 32
    text = kernels.direct.ir("loops", x, taps, None, out, 1, 1, *how)
    assert "vector.shuffle" in text
    assert "vector.gather" not in text


def test_weights_are_read_without_tests() -> None:
    shapes = (64, 14, 14), (4, 1, 16, 144), (64, 14, 14)
    x, taps, out = (array_of(temporary(shape, f32)) for shape in shapes)
    stencil = (3, 3), (1, 1), (1, 1)
    how = stencil, (16, 16), False, False, f32, 14, 3, 8, 2, 16, 32
    text = kernels.direct.ir("loops", x, taps, None, out, 1, 1, *how)
    assert text.count("memref.load") >= 8 * 3
    assert "-> (f32)" not in text  # an `scf.if` that loads a number


@pytest.mark.parametrize("side", [7, 14, 28])
def test_tiles_have_the_rows_of_a_small_image(side: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(plans, "vectors_of", lambda _: (32, 16))
    x = temporary((1, 64, side, side), f32)
    g = Geometry((3, 3), (1, 1), (1, 1), (1, 1), (side, side))
    step, _ = plans.tile_of(x, g, 1)
    part = plans.part_of(x, g, (1, 1))
    assert side % part == part % step == 0


@pytest.mark.parametrize(
    ("channels", "taps", "registers", "is_direct"),
    [(3, 3, 32, True), (1, 7, 32, True), (3, 7, 32, False), (3, 3, 16, False)],
)
def test_sums_of_few_terms_are_no_products(
    channels: int, taps: int, registers: int, is_direct: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(plans, "vectors_of", lambda _: (registers, 16))
    x, made = temporary((2, channels, 20, 37), f32), temporary((2, 40, 20, 37), f32)
    weight, pad = temporary((40, channels, taps, taps), f32), (taps // 2,) * 2
    g = Geometry((taps, taps), (1, 1), (1, 1), pad, (20, 37))
    *_, last = plans.convolve(x, weight, None, made, g, 1)
    assert last is not None
    assert (last.launch.kernel is kernels.direct) == is_direct


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("stride", [1, (2, 3)])
def test_layers_of_few_taps(dtype: Any, stride: Any) -> None:
    x, w, bias = normal(2, 3, 23, 70), normal(40, 3, 3, 3), normal(40)
    x, w, bias = x.to(dtype), w.to(dtype), bias.to(dtype)
    out = ops.conv2d(x, w, bias, stride, 1)
    exact = torch.nn.functional.conv2d(*(v.double() for v in (x, w, bias)), stride, 1)
    close(out, exact.to(dtype), BOUNDS[dtype])


@pytest.mark.parametrize("padding", [(2, 0), (0, 2), (1, 1)])
def test_one_tap_of_padded_images(padding: tuple[int, int]) -> None:
    x, weight = torch.randn(2, 3, 11, 11), torch.randn(4, 3, 1, 1)
    found = ops.conv2d(x, weight, padding=padding)
    wanted = torch.nn.functional.conv2d(x, weight, padding=padding)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_weights_with_channels_last_are_not_copied_by_columns() -> None:
    """They would be copied first, which took longer than all windows."""
    g = Geometry((3, 3), (1, 1), (1, 1), (1, 1), (4, 4))
    weight = temporary((32, 8, 3, 3), f32)
    assert has_few_pixels(weight, 1, g, 1)
    weight = temporary((32, 8, 3, 3), f32, order=LAST)
    assert not has_few_pixels(weight, 1, g, 1)
