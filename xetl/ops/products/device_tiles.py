"""How products are cut on a GPU: the tile of a program, and parts of k (split-K).

A product of few tiles and a long k leaves cores idle. Then k is cut as well: each
program sums its part of k, and a second kernel adds the parts in order, so that results
are the same each time. A model chooses the cut, from the rates of `xetl.devices`, as in
`explain()` of a kernel. The time of a product is the longest of the times of the matrix
units (or vector units), the L2 cache, memory and its latency.
docs/design/0005-xegpu.md says what the model leaves out, and why there is no stream-K.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xetl.devices import Card, Device, find_device
from xetl.language.dtypes import DType
from xetl.language.ops import cdiv
from xetl.records import record

STEP = 32
"""Steps of k between two loads."""

_ROWS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256)
_COLUMNS = (16, 32, 64, 128, 256)
_LEAST_ROWS, _LEAST_COLUMNS = 64, 32
"""The least tile that is chosen in order to have more programs."""

_LEAST_PART = 256
"""The least steps of k of a part."""

_SUBGROUP = (32, 64)
"""Rows and columns of a subgroup of a large tile."""

_AHEAD = 4
"""Steps that are prefetched."""

_FILL = 2
"""Latencies of memory that a program waits for at its beginning and its end."""

_LAUNCH = 5e-6
"""Seconds that one more kernel takes. [assumed]"""

_ALIKE = 1.05
"""Times whose ratio is at most this count as equal."""

_FULL = 2
"""Programs for each core: one computes while another begins."""

_BYTES_OF_SUMS = 4


@record(frozen=True)
class Gpu:
    """The GPU of a product: the kind of device, a card with it, and its cores."""

    device: Device
    card: Card
    cores: int


class DeviceTiles(NamedTuple):
    """The tile of a program, and the steps of k that one program does.

    Attributes:
        rows: rows of the tile.
        columns: columns of the tile.
        part: steps of k of a program; k or more if k is not cut.
    """

    rows: int
    columns: int
    part: int


def find_gpu(target: str, cores: int) -> Gpu:
    """Return the GPU of a target. An emulated one counts as Data Center GPU Max.

    Args:
        target: its name in `xetl.devices`.
        cores: the number of its cores.
    """
    device = find_device(target)
    if not device.cards:
        device = find_device("pvc")
    return Gpu(device, device.cards[0], cores)


@record(frozen=True)
class Product:
    """``matrices`` products (m, k) by (k, n), of operands of a dtype."""

    m: int
    n: int
    k: int
    matrices: int
    dtype: DType

    def programs(self, tiles: DeviceTiles) -> int:
        """Return the number of programs: all tiles and parts of all matrices."""
        of_one = cdiv(self.m, tiles.rows) * cdiv(self.n, tiles.columns)
        return of_one * self.parts(tiles) * self.matrices

    def parts(self, tiles: DeviceTiles) -> int:
        """Return the number of parts of k: programs that share a tile."""
        return max(1, cdiv(self.k, tiles.part))


def choose_device_tiles(
    product: Product, gpu: Gpu, *, may_split: bool = True
) -> DeviceTiles:
    """Return the plan that takes the least time.

    Of plans with about the same time, prefer fewer parts of k, then up to two programs
    for each core, then the largest tile.

    Args:
        product: the product.
        gpu: the GPU that computes it.
        may_split: whether k may be cut.
    """
    plans = list(_plans(product, may_split=may_split))
    times = [seconds(product, plan, gpu) for plan in plans]
    best = min(times)
    alike = [p for p, t in zip(plans, times) if t <= best * _ALIKE]

    def rank(plan: DeviceTiles) -> tuple[int, int, int]:
        programs = min(product.programs(plan), _FULL * gpu.cores)
        return product.parts(plan), -programs, -plan.rows * plan.columns

    return min(alike, key=rank)


def _plans(product: Product, *, may_split: bool) -> Iterator[DeviceTiles]:
    parts = [max(product.k, 1)]
    part = _LEAST_PART
    while may_split and part < product.k:
        parts.append(part)
        part *= 2
    for rows in _sizes(_ROWS, product.m, _LEAST_ROWS):
        for columns in _sizes(_COLUMNS, product.n, _LEAST_COLUMNS):
            yield from (DeviceTiles(rows, columns, part) for part in parts)


def _sizes(sizes: tuple[int, ...], extent: int, least: int) -> list[int]:
    """Return the sizes from ``least`` to the first that holds the extent."""
    largest = next((size for size in sizes if size >= extent), sizes[-1])
    return [size for size in sizes if min(least, largest) <= size <= largest]


def seconds(product: Product, tiles: DeviceTiles, gpu: Gpu) -> float:
    """Return the least time of a product with a plan, in seconds."""
    speed, kept, size = gpu.device.speed, gpu.device.sustained, product.dtype.bits // 8
    clock = gpu.card.gigahertz * 1e9
    depth = min(product.k, tiles.part)
    programs, area = product.programs(tiles), tiles.rows * tiles.columns
    subgroups = max(1, area // (_SUBGROUP[0] * _SUBGROUP[1]))
    together = max(1, speed.engines * speed.threads[1] // subgroups)
    rounds = cdiv(programs, gpu.cores)
    engines = min(speed.engines, subgroups * min(together, rounds))
    cycles = rounds * area * depth / engines
    unit = gpu.device.matrix
    if product.dtype.name in unit.results:
        rate = unit.columns * unit.depth_bits / product.dtype.bits / speed.row_cycles
        busy = cycles / rate / kept.matrix
    else:
        rate = speed.vector_products * 32 / product.dtype.bits
        busy = cycles / rate / kept.vector
    cache2 = gpu.cores * speed.cache2_bytes * clock
    memory = gpu.card.gbytes * 1e9 * kept.memory * gpu.cores / gpu.card.cores
    operands = (product.m + product.n) * product.k * product.matrices * size
    sums = product.m * product.n * product.matrices * _BYTES_OF_SUMS
    blocks = programs * (tiles.rows + tiles.columns) * depth * size
    waits = cdiv(rounds, together) * (depth / STEP / _AHEAD + _FILL)
    longest = max(
        busy / clock,
        blocks / cache2,
        (operands + sums) / memory,
        waits * speed.memory_latency / clock,
    )
    parts = product.parts(tiles)
    if parts == 1:
        return longest
    # The parts are written once and read once.
    moved = 2 * parts * sums
    rate = cache2 if moved <= gpu.card.cache_bytes else memory
    return longest + _LAUNCH + moved / rate
