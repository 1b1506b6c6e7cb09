"""The functions that kernels may call, and their names in SPIR-V modules.

Functions on blocks of memory and of matrices are Intel's extensions of OpenCL C; the
others belong to OpenCL C itself. Code that emits a call gets a `Builtin` here. This
module looks up the parts of a name in `xetl.devices`, and `spirv` refuses every
other symbol. So no module has a name that compilers do not know; they would not report
such a call, and leave it undefined.

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
from xetl_xegpu.emit.opencl_types import UNSIGNED, llvm_type, mangle
from xetl_xegpu.simt import SUBGROUP_SIZE, BlockShape
from xetl_xegpu.simt.block_ops import OPERAND_BITS, PIECE

EXTENSIONS = (
    "SPV_INTEL_subgroups",
    "SPV_INTEL_bfloat16_conversion",
    "SPV_EXT_shader_atomic_float_add",
    "SPV_INTEL_split_barrier",
    "SPV_INTEL_cache_controls",
    "SPV_INTEL_tensor_float32_conversion",
)
"""The extensions of SPIR-V that modules may use; all drivers of the devices have them.
"""


@dataclass(frozen=True)
class Product:
    """A matrix instruction: C(rows, 16) + A(rows, depth) @ B(depth, 16).

    The types ``a`` and ``b`` are f16, bf16, tf32, i8, u8, e4m3 or e5m2. The type
    ``acc`` of C is f32, f16, bf16 or i32.
    """

    a: str
    b: str
    acc: str
    rows: int
    depth: int

    @property
    def bits(self) -> int:
        """The bits of an element of A and B in a register."""
        return OPERAND_BITS[self.a]

    @property
    def lanes(self) -> int:
        """The number of lanes that hold a row of A."""
        return min(self.depth, SUBGROUP_SIZE)


_REGISTRY: dict[str, Builtin] = {}


@dataclass(frozen=True)
class Builtin:
    """A function that kernels can call; `find_builtin` knows each one that was made.

    Attributes:
        name: the name in OpenCL C.
        result: the type of the result, as OpenCL C writes it.
        parameters: the types of the parameters, as OpenCL C writes them.
        is_intel: whether only Intel's devices have it (`emulation` defines it for
            others).
        block: the block of memory that it moves, or None.
        access: whether it loads, stores or prefetches that block, or None.
        product: the matrix product that it computes, or None.
        extension: the extension of SPIR-V that it needs, or None.
        is_ours: whether no device has it (`emulation` defines it for all devices).
        has_step: whether a parameter gives the distance of columns in bytes.
        reports: whether its last parameters say where it writes a report (the log).
        is_mangled: whether its symbol contains its types.
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

    def __post_init__(self) -> None:
        _REGISTRY.setdefault(self.symbol, self)

    @property
    def symbol(self) -> str:
        """The name of the function in a module."""
        return mangle(self.name, self.parameters) if self.is_mangled else self.name

    @property
    def has_memory(self) -> bool:
        """Whether it moves data from or to private memory."""
        return any(each.startswith("private") for each in self.parameters)

    @property
    def gives_items(self) -> bool:
        """Whether it loads items of a block and returns them; see `by_value`."""
        return self.block is not None and self.result != "void"

    @property
    def type(self) -> ll.FunctionType:
        """The LLVM type."""
        types = [llvm_type(parameter) for parameter in self.parameters]
        return ll.FunctionType(llvm_type(self.result), types)


_SURFACE = ("global void*", "int", "int", "int", "int2")
_WIDE = ("global void*", "long", "long", "long", "long2")
_MODES: dict[str, Access] = {
    "plain": "load",
    "transform": "transform",
    "transpose": "transpose",
}


def _require(device: Device, access: Access, shape: BlockShape) -> None:
    """Refuse a block that the device cannot move by one message."""
    messages = device.blocks_of(access, shape.bits)
    counts = messages.counts.get(shape.columns, ())
    if shape.rows not in messages.rows or shape.count not in counts:
        raise InternalError(f"`{device.name}` has no {access} of {shape}")


def _lanes_are_known(shape: BlockShape) -> bool:
    """Whether the documentation says which lane holds which elements of a block.

    Rows have one item for each lane, or several narrow rows of one block fill the
    subgroup evenly. Two bytes make an item. A transposed block has 16 rows, which
    become 16 columns.
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
    """Return the builtin ``intel_sub_group_2d_block_...`` for a block.

    It moves data from or to private memory; a prefetch has no such parameter.

    Args:
        access: load, store or prefetch. The mode of the shape says whether a load
            transforms or transposes the block.

    Raises:
        InternalError: the device has no such message, or the distribution of the
            elements over the lanes is not known.
    """
    if access == "load":
        access = _MODES[shape.mode]
    _require(device, access, shape)
    parameters = _SURFACE
    if access != "prefetch":
        if not _lanes_are_known(shape):
            raise InternalError(f"which lane holds what of {shape} is not known")
        parameters = (*parameters, f"private {UNSIGNED[shape.item_bits]}*")
    size = f"{shape.bits}b_{shape.rows}r{shape.columns}x{shape.count}c"
    name = f"intel_sub_group_2d_block_{_KINDS[access]}_{size}"
    return Builtin(name, "void", parameters, True, block=shape, access=access)


_PAYLOAD = "private int*"
"""Address payload: the register that holds base, sizes, position and shape of a block.
"""


def new_payload() -> Builtin:
    """Return the builtin ``createBlock2DAddressPayload``.

    Parameters: base; width in bytes, height, and pitch in bytes, each minus 1; x and y;
    columns, rows and number of blocks.
    """
    parameters = ("long", *["int"] * 8)
    return _of_payloads("createBlock2DAddressPayload", _PAYLOAD, parameters)


def payload_mover(verb: Literal["set", "add"], axis: str) -> Builtin:
    """Return the builtin that sets the ``X`` or ``Y`` of a payload, or adds to it."""
    name = f"{verb}Block2DAddressPayloadBlock{axis}"
    return _of_payloads(name, "void", (_PAYLOAD, "int"))


def payload_message(device: Device, access: Access, shape: BlockShape) -> Builtin:
    """Return the builtin that does the same as `block_message`, by a payload.

    Parameters: the payload, offsets in columns and rows, the items to store (a store
    only), the cache hints.
    """
    block_message(device, access, shape)  # raises if the device has no such message
    items = _vector(UNSIGNED[shape.item_bits], shape.items)
    stored, result = ((items,), "void") if access == "store" else ((), items)
    kind = "block_write_ap_" if access == "store" else "block_read_ap_"
    if access == "prefetch":
        kind, result = f"{kind}prefetch_", "void"
    mode = "" if shape.mode == "plain" else f"{shape.mode}_"
    size = f"u{shape.bits}_m{shape.rows}k{shape.columns}v{shape.count}"
    parameters = (_PAYLOAD, "int", "int", *stored, "int")
    return _of_payloads(f"{kind}{mode}{size}", result, parameters)


def _of_payloads(name: str, result: str, parameters: tuple[str, ...]) -> Builtin:
    name = f"__builtin_IB_subgroup_{name}"
    return Builtin(name, result, parameters, True, is_mangled=False)


def by_lanes(message: Builtin, *, has_step: bool = False) -> Builtin:
    """Return our function that loads or stores as a message does, for any surface.

    Its numbers have 64 bits; base and pitch need no alignment. With ``has_step`` a
    parameter behind the position of the block gives the distance of two columns in
    bytes. Without it, compilers can see that columns are contiguous.
    """
    ours = "xetl_by_lanes_strided" if has_step else "xetl_by_lanes"
    name = message.name.replace("intel_sub_group", ours)
    parameters = (*_WIDE, *["long"] * has_step, *message.parameters[len(_SURFACE) :])
    facts = {"is_intel": False, "is_ours": True, "has_step": has_step}
    return replace(message, name=name, parameters=parameters, **facts)


def checked(message: Builtin) -> Builtin:
    """Return a function that emulates a message and checks what hardware requires.

    It writes a record to the log if hardware would refuse the message. Its numbers have
    64 bits. Its last two parameters are the address of the status words, and the number
    of the message among the operations that write records.
    """
    name = message.name.replace("intel_sub_group", "xetl_checked")
    parameters = (*_WIDE, *message.parameters[len(_SURFACE) :], "ulong", "uint")
    return replace(message, name=name, parameters=parameters, reports=True)


def by_value(message: Builtin) -> Builtin:
    """Return a form of our load or store that passes values instead of private memory.

    Items narrower than 32 bits are passed as words if they fill words evenly. A load
    returns one piece of the block; its last parameter is the number of the piece's
    first item.

    [measured] OpenCL's driver for CPUs (2026.2) inlines a function that gets private
    memory, in spite of `noinline`, and reads that memory lane by lane. A GEMM took
    4.0 s to build, now 1.1 s.
    """
    assert message.block is not None
    bits, count = message.block.item_bits, min(message.block.items, PIECE)
    if bits < 32 and bits * count % 32 == 0:
        bits, count = 32, bits * count // 32
    value, others = _vector(UNSIGNED[bits], count), list(message.parameters)
    place = next(i for i, each in enumerate(others) if each.startswith("private"))
    if message.access == "store":
        others[place] = value
        return replace(message, parameters=tuple(others))
    others = [*others[:place], *others[place + 1 :], "uint"]
    return replace(message, result=value, parameters=tuple(others))


def subgroup_check() -> Builtin:
    """Return the function that reports subgroups of an unexpected number of lanes.

    Parameters: the last two of `checked`.
    """
    parameters = ("ulong", "uint")
    return Builtin("xetl_checked_lanes", "void", parameters, reports=True)


def shared_check(size: int) -> Builtin:
    """Return the function that checks an address of shared memory.

    It returns the address, or writes a report and returns 0 if no element begins there.

    Parameters: the address of an element of ``size`` bytes, the address of the last
    element, and the parameters of `subgroup_check`.
    """
    name, parameters = f"xetl_checked_{size}_shared", ("ulong",) * 3
    return Builtin(name, "ulong", (*parameters, "uint"), reports=True)


_OPERANDS = {  # the types of an item of A and of B
    "f16": ("short", "int"),
    "bf16": ("short", "int"),
    "i8": ("short", "int"),
    "u8": ("ushort", "uint"),
    "tf32": ("float", "float"),
    "e4m3": ("short", "int"),
    "e5m2": ("short", "int"),
}
_SUMS = {"f32": "float", "f16": "half", "bf16": "short", "i32": "int"}
_PAIRS = {"i8": {"i8", "u8"}, "f8": set(CODES.values())}
"""The names in `xetl.devices` of products of 8-bit types: A and B may have different
types of one set."""


def matrix_mad(device: Device, a: str, b: str, acc: str, rows: int) -> Builtin:
    """Return ``intel_sub_group_..._matrix_mad...``: C + A @ B in one instruction.

    Args:
        a: the element type of A: f16, bf16, tf32, i8, u8, e4m3 or e5m2.
        b: the element type of B, one of the same.
        acc: the element type of C and of the result: f32, f16, bf16 or i32.
        rows: the rows of A and C.

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
    depth = unit.depth_bits // OPERAND_BITS[a]
    item_bits = 32 if a == "tf32" else 16
    items = max(1, rows * depth * OPERAND_BITS[a] // (SUBGROUP_SIZE * item_bits))
    sums = _vector(_SUMS[acc], rows)
    parameters = (_vector(_OPERANDS[a][0], items), _OPERANDS[b][1] + "8", sums)
    name = f"intel_sub_group_{a}_{b}_matrix_mad_k{depth}"
    product = Product(a, b, acc, rows, depth)
    return Builtin(name, sums, parameters, True, product=product)


def lane_product(element: str, rows: int) -> Builtin:
    """Return our function for ``C + A @ B`` by lanes, in f32 or f64.

    B is 16x16. Parameters: A, the upper and the lower half of B, C; see
    `simt.LaneProductOp`.
    """
    scalar = {"f32": "float", "f64": "double"}[element]
    half, sums = _vector(scalar, 8), _vector(scalar, rows)
    name = f"xetl_by_lanes_{element}_matrix_mad_k{SUBGROUP_SIZE}"
    product = Product(element, element, element, rows, SUBGROUP_SIZE)
    parameters = (sums, half, half, sums)
    return Builtin(name, sums, parameters, product=product, is_ours=True)


def _vector(scalar: str, count: int) -> str:
    return scalar if count == 1 else f"{scalar}{count}"


def function(name: str, *signature: str) -> Builtin:
    """Return a function of OpenCL C; by default with its only signature.

    Raises:
        InternalError: there is no such function.
    """
    if name not in _OPENCL:
        raise InternalError(f"OpenCL C has no function `{name}`")
    result, *parameters = signature or _SIGNATURES[name]
    return Builtin(name, result, tuple(parameters), extension=_OPENCL[name])


def of_numbers(builtin: Builtin) -> Builtin:
    """Return the scalar form of an elementary function of vectors."""
    signature = builtin.result, *builtin.parameters
    return function(builtin.name, *(each.rstrip("0123456789") for each in signature))


def to_bf16(lanes: int) -> Builtin:
    """Return what rounds ``lanes`` f32 to the bits of bf16, to nearest even."""
    source, result = _vector("float", lanes), _vector("ushort", lanes)
    count = "" if lanes == 1 else lanes
    name = f"intel_convert_bfloat16{count}_as_ushort{count}"
    extension = "SPV_INTEL_bfloat16_conversion"
    return Builtin(name, result, (source,), True, extension=extension)


def to_tf32(lanes: int) -> Builtin:
    """Return what rounds ``lanes`` f32 to the precision of tf32, to nearest even."""
    type_ = _vector("float", lanes)
    extension = "SPV_INTEL_tensor_float32_conversion"
    name = "__spirv_RoundFToTF32INTEL"
    return Builtin(name, type_, (type_,), True, extension=extension)


MATH = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos"),
        *("cosh", "erf", "erfc", "exp", "exp2", "expm1", "fmax", "fmin", "fmod"),
        *("log", "log10", "log1p", "log2", "pow", "rsqrt", "sin", "sinh", "sqrt"),
        *("tan", "tanh"),
    }
)
"""Elementary functions of f32 and f64, for scalars and vectors."""

_NAMED_BARRIER = "local named_barrier*"
_SIGNATURES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("get_group_id", "get_num_groups"), ("ulong", "uint")),
    **{f"get_sub_group_{each}": ("uint",) for each in ("id", "local_id", "size")},
    "sub_group_any": ("int", "int"),
    "sub_group_broadcast": ("uint", "uint", "uint"),
    **dict.fromkeys(("barrier", "sub_group_barrier"), ("void", "uint")),
    "named_barrier_init": (_NAMED_BARRIER, "int"),
    "work_group_named_barrier": ("void", _NAMED_BARRIER, "uint"),
    "__spirv_MemoryBarrier": ("void", "int", "int"),
    "__spirv_ControlBarrierArriveINTEL": ("void", "int", "int", "int"),
    "__spirv_ControlBarrierWaitINTEL": ("void", "int", "int", "int"),
}
"""Result and parameters of the functions that are called with one signature only."""

_OPENCL: dict[str, str | None] = {
    **dict.fromkeys((*MATH, *_SIGNATURES, "sub_group_shuffle_xor")),
    **dict.fromkeys(f"sub_group_reduce_{each}" for each in ("add", "max", "min")),
    "intel_sub_group_shuffle": "SPV_INTEL_subgroups",
    "__spirv_ControlBarrierArriveINTEL": "SPV_INTEL_split_barrier",
    "__spirv_ControlBarrierWaitINTEL": "SPV_INTEL_split_barrier",
}
"""Functions of drivers, and the extension of SPIR-V that they need. Those of GPUs have
named and split barriers; all others are everywhere."""


def halves_of_words(first: int) -> Builtin:
    """Return what takes the lower (0) or upper (1) halves of words; see `assembly`."""
    name = f"xetl_halves_of_words_{first}"
    return Builtin(name, "short8", ("int8",), True, is_mangled=False)


def combined_rows(name: str) -> Builtin:
    """Return what combines eight rows by an instruction; see `assembly`."""
    symbol = f"xetl_rows_{name}"
    return Builtin(symbol, "float", ("float2",) * 4, True, is_mangled=False)


def find_builtin(symbol: str) -> Builtin | None:
    """Return the builtin with a symbol, or None if no builtin made so far has it."""
    return _REGISTRY.get(symbol)
