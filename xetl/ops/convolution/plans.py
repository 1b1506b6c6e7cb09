"""Plans of convolutions: the launches.

The input is copied with its channels last and zeros around it; the weight is copied
with its taps first. A row of the result is then a batch-reduce GEMM over the rows of
the kernel, as in Georganas et al., "Anatomy of high-performance deep learning
convolutions on SIMD architectures" (SC18). The gradient of the input consists of such
convolutions of the gradient of the result: one for each phase of the stride, with the
taps that meet it; or one with all taps, with zeros between the pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xetl.language.dtypes import DType
from xetl.language.ops import cdiv
from xetl.ops.activations import cleared, copied
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import Operand, Step, temporary
from xetl.ops.calling.operands import Numbers
from xetl.ops.calling.views import is_on_cpu, sums_of, vectors_of
from xetl.ops.convolution.costs import (
    cost_of_products,
    cost_of_scattering,
    cost_of_sums,
    multiplies_pairs,
    step_of_k,
)
from xetl.ops.convolution.depthwise import (
    by_channels,
    is_depthwise,
    room_of,
    tile_of_channels,
)
from xetl.ops.convolution.geometry import ALL, Geometry, Pair, divisors, evenly
from xetl.ops.convolution.kernels import convolution, direct
from xetl.ops.convolution.windows import (
    PART,
    STRIP,
    TILE,
    Windows,
    by_pixels,
    choose_taps,
    contiguous,
    copy_matrices,
    each_pixel,
    find_windows,
    is_channels_last,
    paired,
    turn,
)
from xetl.ops.products.host_tiles import ENOUGH
from xetl.ops.products.product_steps import Seen, each_row, multiply

MOST_PIXELS = 128
"""The most pixels of a tile of the result."""
_ROWS, _SUMS, MOST_ROWS = 8, 8, 32
"""`direct`: the most rows of a tile, channels of a sum, and rows of a program."""
_FEW_TAPS = 64
"""The most terms of a sum for which `direct` is chosen for any number of channels."""
_VECTOR = 16
"""Elements of the widest vectors of 32 bits, and lanes of a subgroup."""


def _taps_first(weight: Operand, to: Operand) -> list[Step]:
    """Return the steps that write (groups * o, c, kh, kw) as (groups, kh, kw, c, o).

    The steps go through (groups, c, kh, kw, o), so that whole rows are read and
    written.
    """
    groups, kh, kw, depth, outer = to.shape
    inner, taps = weight.shape[1], kh * kw
    between = to
    if taps > 1 or depth > inner:
        between = temporary((groups, inner * taps, outer), weight.dtype)
    flat: View = lambda a: a.reshape(groups, 1, outer, -1)
    to_flat: View = lambda a: a.reshape(groups, 1, -1, outer)
    first = turn(weight, flat, between, to_flat)
    if between is to:
        return [first]
    split: View = lambda a: a.reshape(groups, inner, taps, outer).swapaxes(1, 2)
    each_tap: View = lambda a: a.reshape(groups, taps, depth, outer)
    return [first, copy_matrices(between, split, to, each_tap)]


def taps_last(found: Operand, made: Operand) -> list[Step]:
    """Return the steps that write (groups, taps, c, o) as (groups * o, c, kh, kw).

    Channels that are not in ``made`` are left out. See `_taps_first`.
    """
    (groups, taps, depth, outer), inner = found.shape, made.shape[1]
    between, steps = found, list[Step]()
    if taps > 1 or depth > inner:
        between = temporary((groups, inner, taps, outer), found.dtype)
        steps.append(copy_matrices(found, itself, between, lambda a: a.swapaxes(1, 2)))
    flat: View = lambda a: a.reshape(groups, 1, -1, outer)
    to_flat: View = lambda a: a.reshape(groups, 1, outer, -1)
    return [*steps, turn(between, flat, made, to_flat)]


def _turned_around(weight: Operand, to: Operand) -> Step:
    """Return the step that writes all taps in reverse order.

    They are (groups * o, c, kh, kw) and become (groups, kh, kw, o, c).
    """
    groups, _, _, depth, inner = to.shape

    each_row: View = lambda a: a.reshape(groups, -1, inner, prod(a.shape[2:]))

    def to_each_row(array: Numbers) -> Numbers:
        return array.reshape(groups, -1, depth, inner)[:, ::-1].swapaxes(1, 2)

    return turn(weight, each_row, to, to_each_row)


def _chosen(turned_weight: Operand, g: Geometry) -> tuple[list[Step], Operand]:
    """The taps of a turned weight that a geometry has, one after the other."""
    if g.chosen == ALL:
        return [], turned_weight
    groups, _, _, depth, inner = turned_weight.shape
    found = temporary((groups, *g.taps, depth, inner), turned_weight.dtype)

    def chosen(array: Numbers) -> Numbers:
        around = array[:, ::-1, ::-1][:, g.chosen[0], g.chosen[1]]
        return each_tap(around[:, ::-1, ::-1])

    each_tap: View = lambda a: a.reshape(*a.shape[:3], depth * inner)
    return [copy_matrices(turned_weight, chosen, found, each_tap)], found


def convolve(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    g: Geometry,
    groups: int,
) -> list[Step]:
    """Return the launches of a convolution.

    Args:
        x: (batch, channels, rows, columns).
        weight: (channels of the result, channels / groups, *g.taps).
        bias: (channels of the result,) or None.
        made: the result.
        g: see `Geometry`.
        groups: the number of groups of channels.
    """
    if g.is_product and groups == 1:
        return multiply_pixels(x, weight, bias, made)
    is_last = groups > 1 and is_channels_last(made)
    suits = (is_last and is_channels_last(x)) or are_narrow(x, g)
    if suits and is_depthwise(x, weight, made) and tile_of_channels(x, g):
        return by_channels(x, weight, bias, made, g, False)
    if is_last:
        steps, x = contiguous(x, groups)
        found = temporary(made.shape, x.dtype)
        steps += convolve(x, weight, bias, found, g, groups)
        return [*steps, copied(found, made)]
    channels = weight.shape[1], weight.shape[0] // groups
    is_split = groups > 1 or adds_rows(x, made, [g], channels)
    if is_split and (part := part_of(x, g, channels)):
        return _directly(x, weight, bias, made, g, channels, part, False)
    return _of_windows(x, weight, bias, made, [g], groups, False)


def adds_rows(
    x: Operand, made: Operand, parts: Sequence[Geometry], channels: Pair
) -> bool:
    """Return whether `direct` costs less than products of windows.

    On a GPU it would have too few programs.

    Args:
        x: the image.
        made: the result.
        parts: the convolutions; the result consists of theirs.
        channels: channels of ``x`` and of the result.
    """
    seen = [g for g in parts if 0 not in g.taps]
    fits = is_on_cpu(x) and not is_channels_last(made)
    if not fits or not all(part_of(x, g, channels) for g in seen):
        return False
    is_short = all(_has_few_taps(x, g, channels[0]) for g in seen)
    products = cost_of_products(x, parts, channels)
    return is_short or cost_of_sums(x, parts, channels) < products


def scatters(
    grad: Operand, made: Operand, g: Geometry, parts: Sequence[Geometry], channels: Pair
) -> bool:
    """Return whether sums over windows cost least for the gradient of the input.

    ``g`` is the convolution; the other arguments are those of `adds_rows`.
    """
    if g.dilation != (1, 1) or g.stride == (1, 1):
        return False
    cost = cost_of_sums if adds_rows(grad, made, parts, channels) else cost_of_products
    size = made.shape[2], made.shape[3]
    return cost_of_scattering(grad, size, g, channels) < cost(grad, parts, channels)


def by_input(
    grad: Operand,
    weight: Operand,
    made: Operand,
    parts: list[Geometry],
    groups: int,
    is_apart: bool,
) -> list[Step]:
    """Return the launches of the gradient of the input.

    Args:
        grad: the gradient of the result.
        weight: the weight of the convolution.
        made: the gradient of the input, in the same order of dimensions.
        parts: see `phases`.
        groups: the number of groups of channels.
        is_apart: whether to put zeros between the pixels of ``grad``.
    """
    is_last = groups > 1 and is_channels_last(made)
    fits = all(0 in g.taps or tile_of_channels(grad, g) for g in parts)
    fits = fits and is_depthwise(grad, weight, made)
    is_turned = fits and len(parts) == 1 and are_narrow(grad, parts[0])
    if is_last and not (fits and is_channels_last(grad)):
        steps, grad = contiguous(grad, groups)
        found = temporary(made.shape, made.dtype)
        steps += by_input(grad, weight, found, parts, groups, is_apart)
        return [*steps, copied(found, made)]
    steps = [cleared(made)] if any(0 in g.taps for g in parts) else list[Step]()
    channels = weight.shape[0] // groups, weight.shape[1]
    is_split = groups > 1 or adds_rows(grad, made, parts, channels)
    by_windows = list[Geometry]()
    for g in parts:
        if g.is_product and groups == 1:
            steps += multiply_pixels(grad, weight, None, made, True)
        elif 0 in g.taps:
            continue
        elif is_last or (is_turned and not is_apart):
            steps += by_channels(grad, weight, None, made, g, True)
        elif is_split and (part := part_of(grad, g, channels)):
            how = g, channels, part, True, is_apart
            steps += _directly(grad, weight, None, made, *how)
        else:
            by_windows.append(g)
    if by_windows:
        steps += _of_windows(grad, weight, None, made, by_windows, groups, True)
    return steps


def _of_windows(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    parts: Sequence[Geometry],
    groups: int,
    is_by_input: bool,
) -> list[Step]:
    """Return the launches of a convolution by products of windows.

    With ``is_by_input`` it is a part of the gradient of the input; see `by_input`.
    """
    outer, inner = weight.shape[0] // groups, weight.shape[1]
    depth, channels = (outer, inner) if is_by_input else (inner, outer)
    taps = groups, *weight.shape[2:], paired(depth, x), channels
    turned_weight, turns = temporary(taps, weight.dtype), list[Step]()
    each_group: View = lambda a: a.reshape(groups, -1, channels)
    if is_by_input:
        turns = [_turned_around(weight, turned_weight)]
    elif is_channels_last(weight) and groups == 1 and taps[-2] == depth:
        # It is packed as it lies in memory: the transpose of (c, kh, kw, o).
        turned_weight = weight
        each_group = lambda a: by_pixels(a).reshape(1, channels, -1).swapaxes(1, 2)
    else:
        turns = _taps_first(weight, turned_weight)
    copies, padded, windows = find_windows(x, parts, groups)
    steps = [*copies, *turns]
    for g, seen in zip(parts, windows):
        chooses, right = _chosen(turned_weight, g)
        how = groups, sums_of(x.dtype), (step_of_k(x), room_of(x) // x.dtype.itemsize)
        product = _product_of_windows(seen, g, how, each_group, made)
        steps += [*chooses, Step(product, (padded, right, bias, made))]
    return steps


def _product_of_windows(
    windows: Windows,
    g: Geometry,
    how: tuple[int, DType, Pair],
    each_group: View,
    made: Operand,
) -> Launch:
    """Return the launch for one geometry.

    ``how`` is the groups, the dtype of sums, and the last arguments of `_copied`;
    ``each_group`` is the view of the weight.
    """
    groups, acc, copies = how
    batch, channels = made.shape[0], made.shape[1] // groups
    is_last = groups == 1 and is_channels_last(made)
    rows, pixels = g.result

    def each_row(array: Numbers) -> Numbers:
        if is_last:
            return by_pixels(array)[:, g.where[0], g.where[1]]
        split = array.reshape(batch * groups, channels, *array.shape[2:])
        return split[:, :, g.where[0], g.where[1]].swapaxes(1, 2)

    views = (windows.view, each_group, None, each_row)
    # With several groups, a program has all channels of one group.
    tile = channels if groups > 1 else min(TILE, channels)
    tiles = evenly(pixels, MOST_PIXELS), tile, windows.width
    part = min(rows, PART)
    programs = cdiv(rows, part) * groups * cdiv(channels, tile) * batch
    across = min(cdiv(pixels, tiles[0]), cdiv(ENOUGH, max(1, programs)))
    grid = (cdiv(rows, part) * across, groups * cdiv(channels, tile), batch)
    shared = groups, is_last, acc, part, across
    copied = _copied(tiles, g.taps[0] * windows.columns, *copies)
    constants = (*windows.constants, *windows.image, *shared, *tiles, copied)
    return Launch(convolution, views, (), grid, constants)


def _copied(tile: tuple[int, int, int], taps: int, step: int, room: int) -> Pair | int:
    """Return COPIED of `convolution`: rows and columns, or 0 for windows in place.

    Products on tiles of AMX copy windows that are no whole steps of k, for each tap.
    Sapphire Rapids: 8 images of 16 channels, 56 x 56, 3 x 3 taps 930 us, by copies of
    all taps 660; 1 of 3, 224 x 224, 64 of 7 x 7, stride 2 1,730, 1,140.

    Args:
        tile: BM, BN and BK of the kernel.
        taps: of a window.
        step: see `step_of_k`.
        room: the most elements of the copy.
    """
    rows, columns = cdiv(tile[0], STRIP) * STRIP, cdiv(taps * tile[2], step) * step
    return (rows, columns) if tile[2] % step and rows * columns <= room else 0


def multiply_pixels(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    is_turned: bool = False,
) -> list[Step]:
    """Return the launch of a convolution of one tap: weight @ pixels of each image.

    If the result has its channels last, it is pixels of all images @ weight.
    """
    batch, pixels = x.shape[0], prod(x.shape[2:])
    shape = (batch, made.shape[1], pixels)

    matrix: View = lambda a: a.reshape(a.shape[:2])
    each_image: View = lambda a: a.reshape(batch, -1, pixels)
    left = Seen(weight, matrix)
    left = left.turned() if is_turned else left
    if is_channels_last(made):
        bias_of_pixels = None if bias is None else Seen(bias)
        ends = Seen(x, each_pixel), left.turned(), Seen(made, each_pixel)
        return [multiply(*ends, bias_of_pixels)]
    added = each_row(bias, shape)
    return [multiply(left, Seen(x, each_image), Seen(made, each_image), added)]


def each_image(array: Numbers) -> Numbers:
    """View each channel of each image as an image."""
    return array.reshape(-1, *array.shape[2:])


def part_of(x: Operand, g: Geometry, channels: Pair) -> int:
    """Return the rows of a program of `direct`, or 0 if it should not be used.

    Products have the channels of the result in vectors. From two vectors on they are
    faster, from one on if they multiply 16 bits, if the sums have enough terms.

    ``channels`` are those of a group, of the input and of the result.
    """
    inner, outer = channels
    item = sums_of(x.dtype).bits // 8
    most = vectors_of(x)[1] - multiplies_pairs(x)
    if outer > most and not _has_few_taps(x, g, inner):
        return 0
    down = (g.taps[0] - 1) * g.dilation[0] // g.stride[0]
    planes = inner * g.stride[0] * g.stride[1] * item
    taps = inner * outer * prod(g.taps) * item
    room = (room_of(x) - taps) // (planes * widths_of(x, g)[1]) - down
    step, _ = tile_of(x, g, outer)
    rows = max(0, min(MOST_ROWS, room)) // step * step
    return rows and cdiv(evenly(g.result[0], rows), step) * step


def _has_few_taps(x: Operand, g: Geometry, inner: int) -> bool:
    """Return whether sums have so few terms that a product mostly moves its operands.

    [measured] 32 registers: `direct` is faster with 3 x 3 taps of 3 or 4 channels, and
    7 x 7 of one channel; products are faster with 5 x 5 of 3.
    """
    is_short = inner * g.taps[1] < _VECTOR and inner * prod(g.taps) <= _FEW_TAPS
    return is_short and vectors_of(x)[0] >= 32


def are_narrow(x: Operand, g: Geometry) -> bool:
    """Return whether rows of a result fill half of a vector, but channels fill one.

    Then turning the images around costs less than the lanes without use.
    """
    lanes = vectors_of(x)[1]
    return is_on_cpu(x) and 2 * g.result[1] < lanes <= x.shape[1]


def tile_of(x: Operand, g: Geometry, outer: int) -> Pair:
    """Return the rows of a tile of `direct`, and the channels that it sums at once.

    Their sums take half of the registers.
    """
    registers, lanes = vectors_of(x)
    vectors = cdiv(widths_of(x, g)[0], lanes)
    most = max(1, min(_SUMS, registers // 2 // vectors))
    sums = divisors(outer, most)[-1]
    rows = max(1, min(_ROWS, registers // 2 // (sums * vectors)))
    return evenly(g.result[0], rows), sums


def widths_of(x: Operand, g: Geometry) -> Pair:
    """Return the columns of a tile of `direct`, and of the planes that it copies.

    Tiles have the fewest vectors in all: 7 for 112 columns, where tiles of 64 have 8.
    """
    registers, lanes = vectors_of(x)
    width = evenly(cdiv(g.result[1], lanes), registers // 4) * lanes
    seen = width + (g.taps[1] - 1) * g.dilation[1] // g.stride[1]
    # Planes have whole vectors, which are deinterleaved and stored without masks.
    return width, cdiv(seen, lanes) * lanes


def _directly(
    x: Operand,
    weight: Operand,
    bias: Operand | None,
    made: Operand,
    g: Geometry,
    channels: Pair,
    part: int,
    is_by_input: bool,
    is_apart: bool = False,
) -> list[Step]:
    """Return the launches of a convolution by `direct`: sums of rows, no product."""
    (inner, outer), taps = channels, prod(g.taps)
    images, height = made.shape[0] * made.shape[1] // outer, g.result[0]
    steps, weight = choose_taps(weight, g)

    def each_group(array: Numbers) -> Numbers:
        if is_by_input:
            return array.reshape(-1, inner, outer, taps)
        return array.reshape(-1, 1, outer, inner * taps)

    to_image: View = lambda a: each_image(a)[:, g.where[0], g.where[1]]
    unrolled = divisors(g.taps[0], 8)[-1]
    rows, sums = tile_of(x, g, outer)
    tile = (sums_of(x.dtype), part, unrolled, sums, rows, *widths_of(x, g))
    how = g.stencil, channels, is_by_input, is_apart
    views = (each_image, each_group, None, to_image)
    grid = (cdiv(height, part), images, 1)
    launch = Launch(direct, views, (), grid, (*g.first, *how, *tile))
    return [*steps, Step(launch, (x, weight, bias, made))]
