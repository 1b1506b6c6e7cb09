"""What xetl uses of `llvmlite.ir`, which ships no types.

Attributes that only some types have (`count` of vectors, `width` of integers) are
declared at `Type`: llvmlite does not tell which type a value has.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

Undefined: Any

class Type:
    count: int
    element: Type
    width: int
    intrinsic_name: str
    elements: Sequence[Type]
    def __call__(self, constant: Any) -> Constant: ...
    def as_pointer(self, addrspace: int = ...) -> PointerType: ...
    @classmethod
    def _create_instance(cls) -> None: ...

class VoidType(Type): ...

class IntType(Type):
    def __init__(self, bits: int) -> None: ...

class HalfType(Type): ...
class FloatType(Type): ...
class DoubleType(Type): ...

class PointerType(Type):
    addrspace: int
    pointee: Type
    def __init__(self, pointee: Type | None = ..., addrspace: int = ...) -> None: ...

class VectorType(Type):
    def __init__(self, element: Type, count: int) -> None: ...

class ArrayType(Type):
    def __init__(self, element: Type, count: int) -> None: ...

class LiteralStructType(Type):
    def __init__(self, elems: Sequence[Type], packed: bool = ...) -> None: ...

class FunctionType(Type):
    args: Sequence[Type]
    return_type: Type
    def __init__(
        self, return_type: Type, args: Sequence[Type], var_arg: bool = ...
    ) -> None: ...

class Value:
    type: Type
    name: str

class Constant(Value):
    constant: Any
    def __init__(self, typ: Type, constant: Any) -> None: ...
    def inttoptr(self, typ: Type) -> Value: ...
    def bitcast(self, typ: Type) -> Value: ...
    def gep(self, indices: Sequence[Value]) -> Value: ...

class NamedValue(Value): ...

class Argument(NamedValue):
    attributes: set[str]
    def add_attribute(self, attr: str) -> None: ...

class Instruction(NamedValue):
    opname: str
    operands: list[Value]
    parent: Block
    align: int | None
    metadata: dict[str, Any]
    def set_metadata(self, name: str, node: Any) -> None: ...
    def __init__(
        self,
        parent: Block,
        typ: Type,
        opname: str,
        operands: Sequence[Value],
        name: str = ...,
        flags: Sequence[str] = ...,
    ) -> None: ...

class PhiInstr(Instruction):
    incomings: list[tuple[Value, Block]]
    def add_incoming(self, value: Value, block: Block) -> None: ...

class SelectInstr(Instruction):
    def __init__(
        self,
        parent: Block,
        cond: Value,
        lhs: Value,
        rhs: Value,
        name: str = ...,
        flags: Sequence[str] = ...,
    ) -> None: ...

class ICMPInstr(Instruction):
    op: str

class CastInstr(Instruction): ...

class Block(NamedValue):
    instructions: list[Instruction]
    is_terminated: bool
    function: Function
    terminator: Instruction | None

class Function(NamedValue):
    args: Sequence[Argument]
    attributes: Any
    blocks: list[Block]
    calling_convention: str
    linkage: str
    function_type: FunctionType
    ftype: FunctionType
    module: Module
    return_value: Any
    is_declaration: bool
    def __init__(self, module: Module, ftype: FunctionType, name: str) -> None: ...
    def append_basic_block(self, name: str = ...) -> Block: ...
    def set_metadata(self, name: str, node: Any) -> None: ...

class GlobalVariable(NamedValue):
    align: int | None
    addrspace: int
    global_constant: bool
    initializer: Any
    section: str
    value_type: Type
    linkage: str
    def __init__(
        self, module: Module, typ: Type, name: str, addrspace: int = ...
    ) -> None: ...

class Module:
    globals: dict[str, Any]
    functions: Sequence[Function]
    triple: str
    data_layout: str
    def __init__(self, name: str = ..., context: Any = ...) -> None: ...
    def get_unique_name(self, name: str = ...) -> str: ...
    def add_named_metadata(self, name: str, element: Any = ...) -> Any: ...
    def add_metadata(self, operands: Sequence[Any]) -> Any: ...

_Binary = Callable[..., Instruction]
_Folding = Callable[..., Value]
"""May give what is there already, as builders that fold and take vectors apart do."""

class IRBuilder:
    block: Block
    function: Function
    module: Module
    def __init__(self, block: Block | None = ...) -> None: ...
    def _insert(self, instr: Instruction) -> None: ...
    def append_basic_block(self, name: str = ...) -> Block: ...
    def position_at_end(self, block: Block) -> None: ...
    def position_at_start(self, block: Block) -> None: ...
    def position_before(self, instr: Instruction) -> None: ...
    def goto_block(self, block: Block) -> AbstractContextManager[None]: ...
    def goto_entry_block(self) -> AbstractContextManager[None]: ...
    def if_then(
        self, pred: Value, likely: bool | None = ...
    ) -> AbstractContextManager[Block]: ...
    def if_else(
        self, pred: Value, likely: bool | None = ...
    ) -> AbstractContextManager[
        tuple[AbstractContextManager[Block], AbstractContextManager[Block]]
    ]: ...
    add: _Folding
    sub: _Folding
    mul: _Folding
    udiv: _Folding
    sdiv: _Folding
    urem: _Folding
    srem: _Folding
    shl: _Folding
    ashr: _Folding
    lshr: _Folding
    and_: _Folding
    or_: _Folding
    xor: _Folding
    fadd: _Binary
    fsub: _Binary
    fmul: _Binary
    fdiv: _Binary
    frem: _Binary
    neg: _Binary
    not_: _Binary
    fneg: _Binary
    trunc: _Binary
    zext: _Binary
    sext: _Binary
    fptrunc: _Binary
    fpext: _Binary
    bitcast: _Folding
    addrspacecast: _Binary
    ptrtoint: _Binary
    inttoptr: _Binary
    uitofp: _Binary
    sitofp: _Binary
    fptoui: _Binary
    fptosi: _Binary
    select: _Folding
    icmp_signed: _Folding
    icmp_unsigned: _Folding
    fcmp_ordered: _Binary
    fcmp_unordered: _Binary
    extract_element: _Folding
    insert_element: _Binary
    shuffle_vector: _Binary
    extract_value: _Binary
    insert_value: _Binary
    def alloca(self, typ: Type, size: Any = ..., name: str = ...) -> Instruction: ...
    def load(
        self,
        ptr: Value,
        name: str = ...,
        align: int | None = ...,
        typ: Type | None = ...,
    ) -> Instruction: ...
    def store(
        self, value: Value, ptr: Value, align: int | None = ...
    ) -> Instruction: ...
    def gep(
        self,
        ptr: Value,
        indices: Sequence[Value],
        inbounds: bool = ...,
        name: str = ...,
        source_etype: Type | None = ...,
    ) -> Value: ...
    def phi(self, typ: Type, name: str = ...) -> PhiInstr: ...
    def call(self, *args: Any, **kwargs: Any) -> Instruction: ...
    def atomic_rmw(
        self, op: str, ptr: Value, val: Value, ordering: str, name: str = ...
    ) -> Instruction: ...
    def cmpxchg(
        self,
        ptr: Value,
        cmp: Value,
        val: Value,
        ordering: str,
        failordering: str | None = ...,
        name: str = ...,
    ) -> Instruction: ...
    def load_atomic(
        self,
        ptr: Value,
        ordering: str,
        align: int,
        name: str = ...,
        typ: Type | None = ...,
    ) -> Instruction: ...
    def store_atomic(
        self, value: Value, ptr: Value, ordering: str, align: int
    ) -> Instruction: ...
    def fence(self, ordering: str, targetscope: Any = ..., name: str = ...) -> Any: ...
    def branch(self, target: Block) -> Instruction: ...
    def cbranch(self, cond: Value, truebr: Block, falsebr: Block) -> Instruction: ...
    def switch(self, value: Value, default: Block) -> Any: ...
    def ret(self, value: Value) -> Instruction: ...
    def ret_void(self) -> Instruction: ...
    def unreachable(self) -> Instruction: ...
    def asm(self, *args: Any, **kwargs: Any) -> Instruction: ...
    def comment(self, text: str) -> Any: ...

def __getattr__(name: str) -> Any: ...
