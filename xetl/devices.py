"""The instructions of Intel GPUs for blocks of memory and of matrices.

Each number stands here once, with its source:

[measured] compiled for pvc and bmg with ocloc 26.27 (2-D block and matrix builtins of
OpenCL C): what the compiler took without an error and without a call left over.
[RFC] XeTile RFC.  [Xe] Intel graphics architecture: registers of 64 bytes, 128 of them
a thread or 256 in the large mode; a 2-D block row has at most 64 bytes.
[Xe-HPC] Intel, "Ponte Vecchio", Hot Chips 34 (2022).  [Xe2] Intel, "Xe2 graphics", Tech
Tour (2024).  [ark] ark.intel.com, product specifications.  [PVC-SC24] Applencourt and
others, "Ponte Vecchio across the Atlantic: single-node benchmarking of two Intel GPU
systems", SC 2024 workshops.  Both as remembered: nobody could look them up where this
was written.  [assumed] not looked up or not said: no GPU was at hand to measure.  It
decides what is fast, never what is right.

Numbers are elements unless they say bytes.  Nothing of the IR is imported here: the
runtime and the front end may ask as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from xetl.errors import LaunchError, did_you_mean
from xetl.records import record

Access = Literal["load", "store", "prefetch", "transform", "transpose"]
"""``transform``: a load that pairs rows for the right side of a product (VNNI);
``transpose``: a load that swaps rows and columns."""

Block = tuple[int, int]

ROW_BYTES = 64
"""A row of all blocks of a message has at most so many [Xe]."""
LOAD_BYTES = 2048
"""The most that a load or a prefetch reads: 32 registers [Xe]."""
STORE_BYTES = 512
"""The most that a store writes: 8 registers [Xe]."""


@record(frozen=True)
class Messages:
    """The shapes of a message of one kind, for elements of one width.

    Attributes:
        rows: heights of a block.
        counts: for each width of a block, how many of them may stand side by side.
    """

    rows: tuple[int, ...]
    counts: Mapping[int, tuple[int, ...]]

    @property
    def widths(self) -> tuple[int, ...]:
        """Widths of a block."""
        return tuple(self.counts)

    def blocks(self) -> Iterator[Block]:
        """All blocks, rows and columns."""
        return ((rows, columns) for rows in self.rows for columns in self.counts)

    def allows(self, block: Block) -> bool:
        """Whether one message may move this block."""
        rows, columns = block
        return rows in self.rows and columns in self.counts


@record(frozen=True)
class SharedMessages:
    """How shared local memory is accessed: rows of whole units.

    Attributes:
        unit_bytes: the least that is accessed; a row of a block is some of them.
        most_elements: of one row of a block.
        rows: heights of a block; each row is a message.
    """

    unit_bytes: int
    most_elements: int
    rows: tuple[int, ...]

    def of(self, bits: int) -> Messages:
        """The shapes for elements of ``bits`` bits."""
        widths = [1 << n for n in range(self.most_elements.bit_length())]
        whole = [w for w in widths if w * bits // 8 % self.unit_bytes == 0]
        return Messages(self.rows, {width: (1,) for width in whole})


@record(frozen=True)
class MatrixUnit:
    """``C(m, n) += A(m, k) @ B(k, n)`` in one instruction.

    Attributes:
        rows: the values of m.
        columns: n, one for each lane of a subgroup.
        depth_bits: of one row of A: k is this by the bits of an element.
        results: for each type of A and B the types of C.
    """

    rows: tuple[int, ...]
    columns: int
    depth_bits: int
    results: Mapping[str, tuple[str, ...]]


@record(frozen=True)
class Speed:
    """Costs of operations; read by `xetl.transforms.propagate_wg_maps.choose`.

    Attributes:
        engines: of a core; each has a matrix unit.
        threads: subgroups in flight on an engine, with the small and with the large
            register file.
        row_cycles: of a matrix unit for a row of A, which any type fills.
        vector_products: multiply-adds of f32 that an engine begins in a cycle.
        cache_bytes: that an engine reads in a cycle from the first cache.
        cache2_bytes: that a core reads in a cycle from the second.
        memory_latency: cycles until memory has brought what no cache has; 0: it cannot
            be asked in advance.
    """

    engines: int
    threads: tuple[int, int]
    row_cycles: int
    vector_products: int
    cache_bytes: int
    cache2_bytes: int
    memory_latency: int


@record(frozen=True)
class Card:
    """A product with such a GPU: what its maker says that it does at most.

    Attributes:
        name: as it is sold.
        cores: that it has.
        gigahertz: the highest clock.
        gbytes: billions of bytes a second, of its memory.
        cache_bytes: of the second cache, which all cores share.
    """

    name: str
    cores: int
    gigahertz: float
    gbytes: float
    cache_bytes: int


@record(frozen=True)
class Sustained:
    """The part of each peak that a good kernel sustains."""

    matrix: float
    vector: float
    memory: float


@record(frozen=True)
class Device:
    """One kind of GPU.

    Attributes:
        name: as in ``target=``.
        subgroup_size: lanes that work in step.
        register_bytes: of one general register.
        registers: how many a thread has, in the small and in the large mode.
        core_memory_bytes: cache and shared local memory of one core together.
        shared_bytes: of shared local memory that a workgroup may have; a launch asks
            the driver as well.
        matrix: the matrix unit.
        speed: what the models of costs ask.
        shared: accesses to shared local memory.
        messages: accesses to global memory, by kind and bits of an element.
        cards: products, the one that is usually meant first.
        sustained: of what is said of them.
        emulated: no such device is built: the instructions are calls of functions, so
            that every OpenCL device runs the code that GPUs get.
        has_fp64: whether it computes in f64; if not, numbers of a kernel are f32.
    """

    name: str
    subgroup_size: int
    register_bytes: int
    registers: tuple[int, int]
    core_memory_bytes: int
    shared_bytes: int
    matrix: MatrixUnit
    speed: Speed
    shared: SharedMessages
    messages: Mapping[Access, Mapping[int, Messages]]
    cards: tuple[Card, ...] = ()
    sustained: Sustained = Sustained(1.0, 1.0, 1.0)
    emulated: bool = False
    has_fp64: bool = True

    def blocks_of(self, access: Access, bits: int, *, shared: bool = False) -> Messages:
        """Return the blocks a message may move; no shapes if there is no message."""
        if shared:
            return self.shared.of(bits)
        return self.messages[access].get(bits, Messages((), {}))

    @property
    def most_subgroups(self) -> int:
        """Subgroups of a core if each thread has the large register file."""
        return self.speed.engines * self.speed.threads[1]


_MATRIX = MatrixUnit(
    rows=(1, 2, 4, 8),  # [measured]; 3, 5, 6 and 7 exist, but not as builtins
    columns=16,
    depth_bits=8 * 32,  # eight steps of 32 bits [Xe]
    results={  # [measured]
        "f16": ("f32", "f16"),
        "bf16": ("f32", "bf16"),
        "tf32": ("f32",),
        "i8": ("i32",),
    },
)

# Rows of 32 or 64 bits, which lanes read side by side: 64 elements at most, as the
# released dialect had it (docs/xetile.md).

_UP_TO_32 = (1, 2, 4, 8, 16, 32)
_UP_TO_8 = (1, 2, 4, 8)

_LOAD = {  # [measured]
    8: Messages(_UP_TO_32, {16: (1,), 32: (1, 2), 64: (1,)}),
    16: Messages(_UP_TO_32, {16: (1, 2), 32: (1,)}),
    32: Messages(_UP_TO_32, {8: (1, 2), 16: (1,)}),
    64: Messages(_UP_TO_32, {4: (1,), 8: (1,)}),
}
_STORE = {  # [measured]
    8: Messages(_UP_TO_8, {16: (1,), 32: (1,), 64: (1,)}),
    16: Messages(_UP_TO_8, {16: (1,), 32: (1,)}),
    32: Messages(_UP_TO_8, {16: (1,)}),
    64: Messages(_UP_TO_8, {8: (1,)}),
}
_PREFETCH = {  # [measured]; 64 bits go as twice as many elements of 32
    8: Messages(_UP_TO_32, {16: (1,), 32: (1,), 64: (1,)}),
    16: Messages(_UP_TO_32, {16: (1, 2), 32: (1,)}),
    32: Messages(_UP_TO_32, {8: (1,), 16: (1,)}),
    64: Messages(_UP_TO_32, {4: (1,), 8: (1,)}),
}
_TRANSPOSE = {  # [measured]; narrower elements go as pairs of 32 bits
    32: Messages(_UP_TO_32, {4: (1,), 8: (1,)}),
    64: Messages((8,), {4: (1,)}),
}
_TRANSFORM_PVC = {  # [measured]
    8: Messages((4, 8, 16, 32), {16: (1, 2, 4)}),
    16: Messages((2, 4, 8, 16, 32), {16: (1, 2)}),
}
_TRANSFORM_BMG = {  # [measured]
    8: Messages((4, 8, 16, 32), {16: (1, 2, 4), 32: (1, 2), 64: (1,)}),
    16: Messages((2, 4, 8, 16, 32), {16: (1, 2), 32: (1,)}),
}


# [Xe-HPC]: a core has 8 engines of 16 lanes, with 8 threads or 4 with large files; in a
# cycle it does 4096 operations of bf16 and reads 512 bytes.  Latency [assumed]: 400 to
# 600 ns at 1.6 GHz; the least of it, as tiles of products are mostly in a second cache.
_PVC_SPEED = Speed(
    engines=8,
    threads=(8, 4),
    row_cycles=1,
    vector_products=16,
    cache_bytes=64,
    cache2_bytes=64,  # 13 TB/s [Xe-HPC]
    memory_latency=700,
)

_PVC = Device(
    name="pvc",
    subgroup_size=16,
    register_bytes=64,
    registers=(128, 256),
    core_memory_bytes=512 << 10,  # table of MLIR 22's XeGPU, `uArch`
    shared_bytes=128 << 10,  # oneAPI optimisation guide, "shared local memory"
    matrix=_MATRIX,
    speed=_PVC_SPEED,
    shared=SharedMessages(unit_bytes=4, most_elements=64, rows=(1, 2, 4, 8, 16, 32)),
    messages={
        "load": _LOAD,
        "store": _STORE,
        "prefetch": _PREFETCH,
        "transform": _TRANSFORM_PVC,
        "transpose": _TRANSPOSE,
    },
    # [ark]: "Intel Data Center GPU Max 1550", "Max 1100".
    cards=(
        Card("Max 1550", 128, 1.6, 3276.8, 408 << 20),
        Card("Max 1100", 56, 1.55, 1228.8, 108 << 20),
    ),
    # [PVC-SC24]: of a GPU with 112 cores at 1.6 GHz, bf16 GEMM by oneMKL 434 of 734
    # TFLOP/s, SGEMM 42 of 46, triad 2.0 of 3.28 TB/s.
    sustained=Sustained(matrix=0.59, vector=0.91, memory=0.61),
)

# [Xe2]: engines and threads as above; in a cycle a core does 2048 operations of f16.
# [assumed] half of the bytes, as the matrix units are half as wide; 300 ns at 2.7 GHz.
_BMG = replace(
    _PVC,
    name="bmg",
    core_memory_bytes=256 << 10,  # as above
    speed=replace(_PVC_SPEED, row_cycles=2, cache_bytes=32, memory_latency=800),
    messages={**_PVC.messages, "transform": _TRANSFORM_BMG},
    # [ark]: "Intel Arc B580"; 233 TOPS of i8 are 4096 a cycle and core.
    cards=(Card("Arc B580", 20, 2.85, 456.0, 18 << 20),),
    sustained=Sustained(matrix=0.8, vector=0.8, memory=0.85),  # [assumed]
)

# The tables of pvc, so that what runs is what a GPU would run.  [measured] a core under
# opencl:cpu, bf16: a row, 256 multiply-adds, takes about 60 cycles.  [assumed] 16 lanes
# are 4 instructions.  A prefetch is nothing there.
_OPENCL = replace(
    _PVC,
    name="opencl",
    emulated=True,
    speed=replace(_PVC_SPEED, row_cycles=60, vector_products=4, memory_latency=0),
    cards=(),
)

# Crescent Island [measured]: what is compiled for bmg is taken unchanged, and products
# of codes are one instruction (`dpas` of `hf8` and `bf8`).  Speed [assumed] as bmg's.
_CRI = replace(
    _BMG,
    name="cri",
    matrix=replace(_MATRIX, results={**_MATRIX.results, "f8": ("f32",)}),
    cards=(),
)

CODES = {"f8e4m3": "e4m3", "f8e5m2": "e5m2"}
"""Floats of eight bits, and what a product calls their formats."""

PRODUCTS_OF_CODES = tuple(f"{a}x{b}" for a in CODES.values() for b in CODES.values())
"""The precision of a product of i8 that are such codes: formats of A and of B."""

DEVICES: Mapping[str, Device] = {
    "pvc": _PVC,
    "bmg": _BMG,
    "cri": _CRI,
    "opencl": _OPENCL,
    # Alchemist, and the GPUs of processors before Lunar Lake, have no fp64.
    "opencl_fp32": replace(_OPENCL, name="opencl_fp32", has_fp64=False),
}

RUNS_AS: Mapping[str, str] = {
    **dict.fromkeys(("lnl", "ptl", "nvl"), "bmg"),
    **dict.fromkeys(("dg2", "mtl", "arl"), "opencl_fp32"),
}
"""Other GPUs, as Intel's compiler calls them, by the device whose code they run: Lunar
Lake and later; Alchemist, Meteor and Arrow Lake."""


def find_device(name: str) -> Device:
    """The device called ``name``; a LaunchError if there is none.

    What follows a ``+`` says which part of the code for it.
    """
    found = DEVICES.get(name.partition("+")[0])
    if found is not None:
        return found
    known = ", ".join(f"`{each}`" for each in DEVICES)
    help_ = did_you_mean(name, DEVICES) or f"there are {known}"
    raise LaunchError(f"there is no device called `{name}`", "X0811", help_)
