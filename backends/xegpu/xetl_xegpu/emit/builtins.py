"""The functions that kernels call: which there are, and what they are called.

Blocks of memory and of matrices are Intel's extensions of OpenCL C; the rest is OpenCL
C itself. Whoever emits a call asks here for a `Builtin`, so a name that compilers do
not know (they would leave a call of nothing) cannot come up: its parts are looked up in
`xetl.devices`, and `spirv_limits` refuses every other symbol.

Sources: cl_intel_subgroup_2d_block_io, cl_intel_subgroup_matrix_multiply_accumulate
(and its tf32 and bf16 forms as MLIR 22's XeVM emits them), cl_intel_subgroups,
cl_intel_bfloat16_conversions, OpenCL C 3.0; SPV_INTEL_split_barrier;
cl_khr_subgroup_named_barrier as Intel's compiler has it (ocloc 26.27).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from xetl.codegen.types import ll
from xetl.devices import CODES, Access, Device
from xetl.errors import InternalError
from xetl_xegpu.emit.opencl_types import llvm_type, mangle
from xetl_xegpu.simt import SUBGROUP_SIZE, BlockShape
from xetl_xegpu.simt.block_ops import PIECE

EXTENSIONS = (
    "SPV_INTEL_subgroups",
    "SPV_INTEL_bfloat16_conversion",
    "SPV_EXT_shader_atomic_float_add",
    "SPV_INTEL_split_barrier",
    "SPV_INTEL_cache_controls",
    "SPV_INTEL_tensor_float32_conversion",
)
"""What modules may use beyond SPIR-V itself; all drivers of the devices have it."""


@dataclass(frozen=True)
class Product:
    """What a matrix instruction does: C(rows, 16) + A(rows, depth) @ B(depth, 16).

    ``a`` and ``b`` are f16, bf16, tf32, i8, u8, e4m3 or e5m2; ``acc`` is f32, f16,
    bf16 or i32.
    """

    a: str
    b: str
    acc: str
    rows: int
    depth: int

    @property
    def bits(self) -> int:
        """Of an element of A and B, as it lies in a register."""
        return _BITS[self.a]

    @property
    def lanes(self) -> int:
        """How many hold a row of A."""
        return min(self.depth, SUBGROUP_SIZE)


@dataclass(frozen=True)
class Builtin:
    """A function of OpenCL C.

    Attributes:
        name: as OpenCL C has it.
        result: its type, as OpenCL C writes it.
        parameters: likewise.
        is_intel: whether devices of others lack it (`emulation` defines it).
        block: the block that it moves, if it moves one.
        access: how.
        product: what it multiplies, if it is a product.
        extension: of SPIR-V, what it becomes there if not a call.
        is_ours: whether no device has it (`emulation` defines it for all).
        has_step: whether it is told how far columns are apart.
        reports: whether it is told where to write that hardware would refuse it.
        is_mangled: whether a module names it with its types.
    """

    name: str
    result: str
    parameters: tuple[str, ...]
    is_intel: bool = False
    block: BlockShape | None = None
    access: Access | None = None
    product: Product | None = None
    extension: str | None = None
    is_ours: bool = False
    has_step: bool = False
    reports: bool = False
    is_mangled: bool = True

    @property
    def symbol(self) -> str:
        """The name in a module."""
        return mangle(self.name, self.parameters) if self.is_mangled else self.name

    @property
    def has_memory(self) -> bool:
        """Whether what it moves lies in private memory."""
        return any(each.startswith("private") for each in self.parameters)

    @property
    def gives_items(self) -> bool:
        """Whether it loads items of a block and gives them; see `by_value`."""
        return self.block is not None and self.result != "void"

    @property
    def type(self) -> ll.FunctionType:
        """The LLVM type."""
        types = [llvm_type(parameter) for parameter in self.parameters]
        return ll.FunctionType(llvm_type(self.result), types)


_UNSIGNED = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}
_SURFACE = ("global void*", "int", "int", "int", "int2")
_WIDE = ("global void*", "long", "long", "long", "long2")
_MODES: dict[str, Access] = {
    "plain": "load",
    "transform": "transform",
    "transpose": "transpose",
}


def _require(device: Device, access: Access, shape: BlockShape) -> None:
    """Refuse a block that the device cannot move at once."""
    messages = device.blocks_of(access, shape.bits)
    if shape.rows in messages.rows and shape.count in messages.counts.get(
        shape.columns, ()
    ):
        return
    raise InternalError(f"`{device.name}` has no {access} of {shape}")


def _lanes_are_known(shape: BlockShape) -> bool:
    """Whether it is written anywhere which lane holds what.

    Rows are as wide as the subgroup, or narrower ones fill it evenly, each
    block by itself; of bytes two make an item. Transposed, 16 rows become 16 columns.
    """
    if shape.mode == "transpose":
        return shape.rows == SUBGROUP_SIZE
    if shape.mode == "transform":
        return shape.columns == SUBGROUP_SIZE
    widest = 2 * SUBGROUP_SIZE if shape.bits == 8 else SUBGROUP_SIZE
    return shape.columns <= widest and replace(shape, count=1).items > 0


_KINDS: dict[Access, str] = {
    **{"load": "read", "transform": "read_transform", "transpose": "read_transpose"},
    **{"store": "write", "prefetch": "prefetch"},
}


def block_message(device: Device, access: Access, shape: BlockShape) -> Builtin:
    """``intel_sub_group_2d_block_...``, of private memory; a prefetch has none.

    Args:
        access: load, store or prefetch; how a load changes a block its shape says.

    Raises:
        InternalError: the device has no such message, or its lanes are not known.
    """
    if access == "load":
        access = _MODES[shape.mode]
    _require(device, access, shape)
    parameters = _SURFACE
    if access != "prefetch":
        if not _lanes_are_known(shape):
            raise InternalError(f"which lane holds what of {shape} is not known")
        parameters = (*parameters, f"private {_UNSIGNED[shape.item_bits]}*")
    size = f"{shape.bits}b_{shape.rows}r{shape.columns}x{shape.count}c"
    name = f"intel_sub_group_2d_block_{_KINDS[access]}_{size}"
    return _known(Builtin(name, "void", parameters, True, block=shape, access=access))


_PAYLOAD = "private int*"
"""Address payload: the register that says base, sizes, place and shape of a block."""


def new_payload() -> Builtin:
    """``createBlock2DAddressPayload``.

    Parameters: base; width in bytes, height and pitch in bytes, each less 1; x, y;
    columns, rows and number of blocks.
    """
    parameters = ("long", *["int"] * 8)
    return _of_payloads("createBlock2DAddressPayload", _PAYLOAD, parameters)


def payload_mover(verb: Literal["set", "add"], axis: str) -> Builtin:
    """Puts the block of a payload to another ``X`` or ``Y``, or so much further."""
    name = f"{verb}Block2DAddressPayloadBlock{axis}"
    return _of_payloads(name, "void", (_PAYLOAD, "int"))


def payload_message(device: Device, access: Access, shape: BlockShape) -> Builtin:
    """As `block_message`, by a payload.

    Parameters: payload, columns and rows from there, items to store, caches.
    """
    block_message(device, access, shape)  # whether there is such a message
    items = _vector(_UNSIGNED[shape.item_bits], shape.items)
    given, result = ((items,), "void") if access == "store" else ((), items)
    kind = "block_write_ap_" if access == "store" else "block_read_ap_"
    if access == "prefetch":
        kind, result = f"{kind}prefetch_", "void"
    mode = "" if shape.mode == "plain" else f"{shape.mode}_"
    size = f"u{shape.bits}_m{shape.rows}k{shape.columns}v{shape.count}"
    parameters = (_PAYLOAD, "int", "int", *given, "int")
    return _of_payloads(f"{kind}{mode}{size}", result, parameters)


def _of_payloads(name: str, result: str, parameters: tuple[str, ...]) -> Builtin:
    name = f"__builtin_IB_subgroup_{name}"
    return _known(Builtin(name, result, parameters, True, is_mangled=False))


def by_lanes(message: Builtin, *, has_step: bool = False) -> Builtin:
    """What does the same as a message that loads or stores, for any surface.

    Its numbers have 64 bits; base and pitch need no alignment. With ``has_step`` the
    distance of two columns in bytes follows the place of the block; without, compilers
    may see that columns lie side by side.
    """
    ours = "xetl_by_lanes_strided" if has_step else "xetl_by_lanes"
    name = message.name.replace("intel_sub_group", ours)
    parameters = (*_WIDE, *["long"] * has_step, *message.parameters[len(_SURFACE) :])
    return _known(
        replace(
            message,
            name=name,
            parameters=parameters,
            is_intel=False,
            is_ours=True,
            has_step=has_step,
        )
    )


def checked(message: Builtin) -> Builtin:
    """What emulates a message, and writes a record if hardware would refuse it.

    Its numbers have 64 bits; behind its parameters stand the address of the status
    words and the number of the message among what writes records.
    """
    name = message.name.replace("intel_sub_group", "xetl_checked")
    parameters = (*_WIDE, *message.parameters[len(_SURFACE) :], "ulong", "uint")
    return _known(replace(message, name=name, parameters=parameters, reports=True))


def by_value(message: Builtin) -> Builtin:
    """A load or store of ours that gives or takes values, in words, and no memory.

    A load gives one piece of the block: its last parameter is the first item of it.

    [measured] OpenCL's driver for CPUs (2026.2): a function that is given what was
    stored in private memory is inlined, whatever it says; where 16 lanes read what one
    wrote there, each is read by itself. A GEMM took 4.0 s to build, now 1.1 s.
    """
    assert message.block is not None
    bits, count = message.block.item_bits, min(message.block.items, PIECE)
    if bits < 32 and bits * count % 32 == 0:
        bits, count = 32, bits * count // 32
    value, others = _vector(_UNSIGNED[bits], count), list(message.parameters)
    place = next(i for i, each in enumerate(others) if each.startswith("private"))
    if message.access == "store":
        others[place] = value
        return _known(replace(message, parameters=tuple(others)))
    others = [*others[:place], *others[place + 1 :], "uint"]
    return _known(replace(message, result=value, parameters=tuple(others)))


def subgroup_check() -> Builtin:
    """What reports that subgroups have not the lanes that kernels count on.

    Parameters: as `checked` has them behind those of a message.
    """
    parameters = ("ulong", "uint")
    return _known(Builtin("xetl_checked_lanes", "void", parameters, reports=True))


def shared_check(size: int) -> Builtin:
    """What gives an address of shared memory; 0 and a report if none begins there.

    Parameters: the address of an element of so many bytes, the last one there is, and
    as `subgroup_check`.
    """
    name, parameters = f"xetl_checked_{size}_shared", ("ulong",) * 3
    return _known(Builtin(name, "ulong", (*parameters, "uint"), reports=True))


_OPERANDS = {  # an item of A, of B
    "f16": ("short", "int"),
    "bf16": ("short", "int"),
    "i8": ("short", "int"),
    "u8": ("ushort", "uint"),
    "tf32": ("float", "float"),
    "e4m3": ("short", "int"),
    "e5m2": ("short", "int"),
}
_SUMS = {"f32": "float", "f16": "half", "bf16": "short", "i32": "int"}
_BITS = {"f16": 16, "bf16": 16, "i8": 8, "u8": 8, "tf32": 32, "e4m3": 8, "e5m2": 8}
_PAIRS = {"i8": {"i8", "u8"}, "f8": set(CODES.values())}
"""What `xetl.devices` calls products of types of eight bits, which may differ."""


def matrix_mad(device: Device, a: str, b: str, acc: str, rows: int) -> Builtin:
    """``intel_sub_group_..._matrix_mad...``: C + A @ B, one instruction.

    Args:
        a: type of an element of A: f16, bf16, tf32, i8, u8, e4m3 or e5m2.
        b: of B.
        acc: of C and the result: f32, f16, bf16 or i32.
        rows: of A and C.

    Raises:
        InternalError: the device has no such instruction.
    """
    unit = device.matrix
    same = a if a == b else ""
    name_of_pair = next((key for key, of in _PAIRS.items() if {a, b} <= of), same)
    if acc not in unit.results.get(name_of_pair, ()) or rows not in unit.rows:
        raise InternalError(
            f"`{device.name}` has no product of {rows} rows of {a} by {b} in {acc}"
        )
    depth = unit.depth_bits // _BITS[a]
    item_bits = 32 if a == "tf32" else 16
    items = max(1, rows * depth * _BITS[a] // (SUBGROUP_SIZE * item_bits))
    sums = _vector(_SUMS[acc], rows)
    parameters = (_vector(_OPERANDS[a][0], items), _OPERANDS[b][1] + "8", sums)
    name = f"intel_sub_group_{a}_{b}_matrix_mad_k{depth}"
    product = Product(a, b, acc, rows, depth)
    return _known(Builtin(name, sums, parameters, True, product=product))


def lane_product(element: str, rows: int) -> Builtin:
    """``C + A @ B`` of 16 columns and steps by lanes, in f32 or f64; one of ours.

    Parameters: A, the upper and the lower half of B, C; see `simt.LaneProductOp`.
    """
    scalar = {"f32": "float", "f64": "double"}[element]
    half, sums = _vector(scalar, 8), _vector(scalar, rows)
    name = f"xetl_by_lanes_{element}_matrix_mad_k{SUBGROUP_SIZE}"
    product = Product(element, element, element, rows, SUBGROUP_SIZE)
    parameters = (sums, half, half, sums)
    return _known(Builtin(name, sums, parameters, product=product, is_ours=True))


def _vector(scalar: str, count: int) -> str:
    return scalar if count == 1 else f"{scalar}{count}"


def function(name: str, result: str, *parameters: str) -> Builtin:
    """A function of OpenCL C that every device has.

    Raises:
        InternalError: there is no such function.
    """
    if name not in _OPENCL:
        raise InternalError(f"OpenCL C has no function `{name}`")
    return _known(Builtin(name, result, parameters, extension=_OPENCL[name]))


def of_numbers(builtin: Builtin) -> Builtin:
    """The elementary function of numbers, of that for vectors of them."""
    result, *parameters = (
        each.rstrip("0123456789") for each in (builtin.result, *builtin.parameters)
    )
    return function(builtin.name, result, *parameters)


def to_bf16(lanes: int) -> Builtin:
    """f32 rounded to nearest even as the bits of a bf16, of a number or a vector."""
    source, result = _vector("float", lanes), _vector("ushort", lanes)
    count = "" if lanes == 1 else lanes
    name = f"intel_convert_bfloat16{count}_as_ushort{count}"
    extension = "SPV_INTEL_bfloat16_conversion"
    return _known(Builtin(name, result, (source,), True, extension=extension))


def to_tf32(lanes: int) -> Builtin:
    """f32 rounded to nearest even to what tf32 holds, of a number or a vector."""
    type_ = _vector("float", lanes)
    extension = "SPV_INTEL_tensor_float32_conversion"
    name = "__spirv_RoundFToTF32INTEL"
    return _known(Builtin(name, type_, (type_,), True, extension=extension))


MATH = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos"),
        *("cosh", "erf", "erfc", "exp", "exp2", "expm1", "fmax", "fmin", "fmod"),
        *("log", "log10", "log1p", "log2", "pow", "rsqrt", "sin", "sinh", "sqrt"),
        *("tan", "tanh"),
    }
)
"""Elementary functions, of f32 and f64, numbers and vectors."""

_OPENCL: dict[str, str | None] = {
    **dict.fromkeys(MATH),
    "get_group_id": None,
    "get_num_groups": None,
    "get_sub_group_id": None,
    "get_sub_group_local_id": None,
    "get_sub_group_size": None,
    "barrier": None,
    "sub_group_barrier": None,
    "sub_group_any": None,
    "sub_group_broadcast": None,
    "sub_group_reduce_add": None,
    "sub_group_reduce_max": None,
    "sub_group_reduce_min": None,
    "sub_group_shuffle_xor": None,
    "intel_sub_group_shuffle": "SPV_INTEL_subgroups",
    "__spirv_MemoryBarrier": None,
}
"""Functions that every device has, and the extension of SPIR-V that they need."""


def halves_of_words(first: int) -> Builtin:
    """Lower (0) or upper (1) halves of the words of a lane; see `emit.assembly`."""
    name = f"xetl_halves_of_words_{first}"
    return _known(Builtin(name, "short8", ("int8",), True, is_mangled=False))


def split_barrier(half: str) -> Builtin:
    """``__spirv_ControlBarrierArriveINTEL`` or ``...Wait...``: half a barrier.

    Parameters: who meets, who sees what was written, which memory in which order.
    """
    name = f"__spirv_ControlBarrier{half}INTEL"
    parameters = ("int", "int", "int")
    extension = "SPV_INTEL_split_barrier"
    return _known(Builtin(name, "void", parameters, extension=extension))


def named_barrier_init() -> Builtin:
    """``named_barrier_init``: a barrier for a number of subgroups."""
    return _known(Builtin("named_barrier_init", "local named_barrier*", ("int",)))


def named_barrier() -> Builtin:
    """``work_group_named_barrier``: all of its subgroups meet.

    Parameters: the barrier, which memory (1: local, 2: global).
    """
    parameters = ("local named_barrier*", "uint")
    return _known(Builtin("work_group_named_barrier", "void", parameters))


_REGISTRY: dict[str, Builtin] = {}


def _known(builtin: Builtin) -> Builtin:
    return _REGISTRY.setdefault(builtin.symbol, builtin)


def find_builtin(symbol: str) -> Builtin | None:
    """The builtin of a symbol, if it was asked for before."""
    return _REGISTRY.get(symbol)
