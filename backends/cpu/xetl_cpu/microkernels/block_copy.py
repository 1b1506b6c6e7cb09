"""Emit the function behind both packers: copy a strided 2-D block and convert it.

The block is ``major x minor`` elements.  ``group`` majors lie together in the result:

    dst[major / group][minor][group]        group rows ``ldd * group`` elements apart

and what is outside ``valid_major x valid_minor`` becomes zero.  Three roads:

* rows:       the minor stride is 1: vectors are copied (for two in a group, woven);
* columns:    the major stride is 1: squares are transposed in registers;
* any stride: element by element.

Edges are masked on AVX-512; elsewhere they take the element road.
"""

from dataclasses import dataclass, replace

from xetl_cpu.llvm import (
    I32,
    I64,
    PTR,
    VOID,
    Builder,
    Function,
    Module,
    Value,
    const,
    counted_loop,
    define,
    ir,
    lane_mask,
    load,
    masked_load,
    masked_store,
    minimum,
    offset,
    splat,
    store,
    vector,
)
from xetl_cpu.microkernels.elements import bits_of, convert
from xetl_cpu.microkernels.transpose import transpose_square
from xetl_cpu.targets import Target

__all__ = ["CopyKind", "emit_block_copy"]

_PARAMS = (
    ("src", PTR),
    ("stride_major", I64),
    ("stride_minor", I64),
    ("valid_major", I64),
    ("valid_minor", I64),
    ("major", I64),
    ("minor", I64),
    ("dst", PTR),
    ("ldd", I64),
)


@dataclass(frozen=True)
class CopyKind:
    """What is fixed when the copy is compiled.

    ``minor``: its number if known, then a multiple of the f32 lanes; else 0.
    """

    source: str
    result: str
    group: int
    minor: int

    @property
    def name(self) -> str:
        """Part of the names of the functions made for it."""
        return f"{self.source}_{self.result}_g{self.group}_n{self.minor}"


def emit_block_copy(module: Module, target: Target, kind: CopyKind) -> Function:
    """Get or create ``void(src, stride_major, ..., dst, ldd)``; see the module.

    Strides are in source elements and may be 0 or negative; ``ldd`` in groups.
    """
    name = f"xetl_copy_{target.name}_{kind.name}"
    known = module.globals.get(name)
    if known is not None:
        return known
    function = define(module, name, VOID, _PARAMS)
    # Inlining it into the packers would only compile it twice.
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    block = _Block(builder, target, kind, *function.args)
    is_rows = builder.icmp_signed("==", block.stride_minor, const(I64, 1))
    with builder.if_then(is_rows):
        _copy_rows(block)
        builder.ret_void()
    is_columns = builder.icmp_signed("==", block.stride_major, const(I64, 1))
    with builder.if_then(is_columns):
        _copy_columns(block)
        builder.ret_void()
    zero = const(I64, 0)
    block.copy_elements(zero, block.groups, zero, block.minor)
    builder.ret_void()
    return function


@dataclass(frozen=True)
class _Block:
    """The function's arguments and the address arithmetic all roads share."""

    builder: Builder
    target: Target
    kind: CopyKind
    src: Value
    stride_major: Value
    stride_minor: Value
    valid_major: Value
    valid_minor: Value
    major: Value
    minor: Value
    dst: Value
    ldd: Value

    @property
    def lanes(self) -> int:
        """Minors (rows) or majors / group (columns) handled at a time."""
        return self.target.lanes("f32")

    @property
    def groups(self) -> Value:
        """Rows of the result: majors / group, rounded up."""
        return _groups(self.builder, self.major, self.kind.group)

    def source_at(self, major: Value, minor: Value) -> Value:
        """Address of an element of the source."""
        builder = self.builder
        element = bits_of(self.kind.source)
        at = builder.mul(major, self.stride_major)
        at = builder.add(at, builder.mul(minor, self.stride_minor))
        return offset(builder, self.src, element, at)

    def result_at(self, group: Value, minor: Value) -> Value:
        """Address of an element (or of the first of a group) of the result."""
        builder = self.builder
        at = builder.add(builder.mul(group, self.ldd), minor)
        at = builder.mul(at, const(I64, self.kind.group))
        return offset(builder, self.dst, bits_of(self.kind.result), at)

    def load(self, pointer: Value, lanes: int, mask: Value | None) -> Value:
        """Load and convert ``lanes`` source elements."""
        element = bits_of(self.kind.source)
        wide = vector(element, lanes)
        if mask is None:
            bits = load(self.builder, pointer, wide, element.width // 8)
        else:
            bits = masked_load(self.builder, pointer, wide, mask)
        return convert(self.builder, bits, self.kind.source, self.kind.result)

    def store(self, value: Value, pointer: Value, mask: Value | None = None) -> None:
        """Store result elements, or whole groups as wider elements."""
        if mask is None:
            store(self.builder, value, pointer, bits_of(self.kind.result).width // 8)
        else:
            masked_store(self.builder, value, pointer, mask)

    def copy_elements(
        self, group: Value, group_stop: Value, minor: Value, minor_stop: Value
    ) -> None:
        """Do the part from (group, minor) up to the stops element by element."""
        function = _emit_element_copy(self)
        given = [self.src, self.stride_major, self.stride_minor]
        given += [self.valid_major, self.valid_minor, self.dst, self.ldd]
        given += [group, group_stop, minor, minor_stop]
        self.builder.call(function, given)


def _groups(builder: Builder, majors: Value, group: int) -> Value:
    if group == 1:
        return majors
    return builder.ashr(builder.add(majors, const(I64, 1)), const(I64, 1))


# --- any stride --------------------------------------------------------------------


def _emit_element_copy(block: _Block) -> Function:
    """Get or create the element-by-element road as a function of its own."""
    module, kind = block.builder.module, replace(block.kind, minor=0)
    name = f"xetl_copy_elements_{block.target.name}_{kind.name}"
    known = module.globals.get(name)
    if known is not None:
        return known
    params = [*_PARAMS[:5], ("dst", PTR), ("ldd", I64)]
    params += [(label, I64) for label in ("group", "group_stop", "minor", "minor_stop")]
    function = define(module, name, VOID, params)
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    none = const(I64, 0)
    values: list[Value] = list(function.args)
    given = [*values[:5], none, none, *values[5:7]]
    group0, group_stop, minor0, minor_stop = values[7:]
    inner = _Block(builder, block.target, kind, *given)
    with (
        counted_loop(builder, group_stop, start=group0) as group,
        counted_loop(builder, minor_stop, start=minor0) as minor,
    ):
        for part in range(kind.group):
            _copy_element(inner, group.index, minor.index, part)
    builder.ret_void()
    return function


def _copy_element(block: _Block, group: Value, minor: Value, part: int) -> None:
    builder, kind = block.builder, block.kind
    major = builder.mul(group, const(I64, kind.group))
    major = builder.add(major, const(I64, part))
    is_valid = builder.and_(
        builder.icmp_signed("<", major, block.valid_major),
        builder.icmp_signed("<", minor, block.valid_minor),
    )
    before = builder.block
    with builder.if_then(is_valid):
        value = block.load(block.source_at(major, minor), 1, None)
        inside = builder.block
    phi = builder.phi(value.type)
    phi.add_incoming(const(value.type, 0), before)
    phi.add_incoming(value, inside)
    to = offset(builder, block.result_at(group, minor), value.type, part)
    block.store(phi, to)


# --- rows ----------------------------------------------------------------------------


def _copy_rows(block: _Block) -> None:
    """The minor stride is 1."""
    builder = block.builder
    groups = block.groups
    touched = _groups(builder, block.valid_major, block.kind.group)
    touched = minimum(builder, touched, groups)
    if block.target.has_masks:
        _copy_rows_masked(block, touched)
        _zero_rows(block, touched, groups)
    else:
        _copy_rows_whole(block, touched)
        block.copy_elements(touched, groups, const(I64, 0), block.minor)


def _copy_rows_masked(block: _Block, groups: Value) -> None:
    builder, lanes = block.builder, block.lanes
    columns = range(0, block.kind.minor, lanes)
    masks = [_mask_from(block, const(I64, column)) for column in columns]
    with counted_loop(builder, groups, name="row") as row:
        for column, mask in zip(columns, masks, strict=True):
            _copy_vector(block, row.index, const(I64, column), mask)
        if not block.kind.minor:
            whole = minimum(builder, block.minor, block.valid_minor)
            whole = builder.and_(whole, const(I64, -lanes))
            with counted_loop(builder, whole, step=lanes) as column:
                _copy_vector(block, row.index, column.index, None)
            # Nothing is whole if nothing is valid; a negative count counts as none.
            with counted_loop(
                builder, block.minor, start=_not_below_0(builder, whole), step=lanes
            ) as column:
                mask = _mask_from(block, column.index)
                left = builder.sub(block.minor, column.index)
                inside = lane_mask(builder, left, lanes)
                _copy_vector(block, row.index, column.index, mask, inside)


def _not_below_0(builder: Builder, value: Value) -> Value:
    is_negative = builder.icmp_signed("<", value, const(I64, 0))
    return builder.select(is_negative, const(I64, 0), value)


def _mask_from(block: _Block, minor: Value) -> Value:
    """Which of the lanes from ``minor`` on are valid."""
    left = block.builder.sub(block.valid_minor, minor)
    return lane_mask(block.builder, left, block.lanes)


def _copy_vector(
    block: _Block,
    group: Value,
    minor: Value,
    mask: Value | None,
    inside: Value | None = None,
) -> None:
    """Copy ``lanes`` minors of one group; ``mask``: are valid, ``inside``: exist."""
    builder, lanes = block.builder, block.lanes
    major = builder.mul(group, const(I64, block.kind.group))
    first = block.load(block.source_at(major, minor), lanes, mask)
    if block.kind.group == 2:
        major = builder.add(major, const(I64, 1))
        exists = builder.icmp_signed("<", major, block.valid_major)
        also = _all_if(builder, exists, lanes if mask is None else mask)
        second = block.load(block.source_at(major, minor), lanes, also)
        wide = vector(I32, lanes)
        second = builder.shl(builder.zext(second, wide), const(wide, 16))
        first = builder.or_(builder.zext(first, wide), second)
    block.store(first, block.result_at(group, minor), inside)


def _all_if(builder: Builder, condition: Value, mask: Value | int) -> Value:
    """``mask`` (or that many true lanes) if ``condition``, else no lane."""
    if isinstance(mask, int):
        return splat(builder, condition, mask)
    return builder.select(condition, mask, const(mask.type, 0))


def _zero_rows(block: _Block, start: Value, stop: Value) -> None:
    """Clear the groups start to stop; the target has masks."""
    builder, lanes = block.builder, block.lanes
    element = I32 if block.kind.group == 2 else bits_of(block.kind.result)
    zeros = const(vector(element, lanes), 0)
    with (
        counted_loop(builder, stop, start=start, name="zero") as row,
        counted_loop(builder, block.minor, step=lanes) as column,
    ):
        left = builder.sub(block.minor, column.index)
        inside = lane_mask(builder, left, lanes)
        block.store(zeros, block.result_at(row.index, column.index), inside)


def _copy_rows_whole(block: _Block, groups: Value) -> None:
    """Without masks: whole vectors, and what is left of the rows by elements."""
    builder, lanes = block.builder, block.lanes
    whole = minimum(builder, block.minor, block.valid_minor)
    whole = _not_below_0(builder, builder.and_(whole, const(I64, -lanes)))
    with (
        counted_loop(builder, groups, name="row") as row,
        counted_loop(builder, whole, step=lanes) as column,
    ):
        _copy_vector(block, row.index, column.index, None)
    block.copy_elements(const(I64, 0), groups, whole, block.minor)


# --- columns -------------------------------------------------------------------------


def _copy_columns(block: _Block) -> None:
    """The major stride is 1: squares of ``lanes`` minors by ``lanes`` groups."""
    builder, lanes = block.builder, block.lanes
    with (
        counted_loop(builder, block.minor, step=lanes, name="square") as minor,
        counted_loop(builder, block.groups, step=lanes, name="square") as group,
    ):
        square = _Square(block, group.index, minor.index)
        if block.target.has_masks:
            square.copy_masked()
        else:
            square.copy_or_leave()


@dataclass(frozen=True)
class _Square:
    """One square of the column road, from (group, minor) on."""

    block: _Block
    group: Value
    minor: Value

    def copy_masked(self) -> None:
        """Any square: loads are masked; stores are too if it sticks out."""
        block, builder, lanes = self.block, self.block.builder, self.block.lanes
        elements = lanes * block.kind.group
        left = builder.sub(block.valid_major, self._major())
        in_column = lane_mask(builder, left, elements)
        loaded: list[Value] = []
        for number in range(lanes):
            minor = builder.add(self.minor, const(I64, number))
            exists = builder.icmp_signed("<", minor, block.valid_minor)
            mask = _all_if(builder, exists, in_column)
            loaded.append(self._load(minor, mask))
        rows = self._transpose(loaded)
        with builder.if_else(self._is_inside(block.groups, block.minor)) as (yes, no):
            with yes:
                self._store_all(rows)
            with no:
                self._store_some(rows)

    def copy_or_leave(self) -> None:
        """A square wholly valid; any other goes element by element."""
        block, builder, lanes = self.block, self.block.builder, self.block.lanes
        assert block.kind.group == 1, "groups need a target with masks"
        size = const(I64, lanes)
        is_whole = builder.and_(
            self._is_inside(block.groups, block.minor),
            self._is_inside(block.valid_major, block.valid_minor),
        )
        with builder.if_else(is_whole) as (yes, no):
            with yes:
                minors = [
                    builder.add(self.minor, const(I64, number))
                    for number in range(lanes)
                ]
                loaded = [self._load(minor, None) for minor in minors]
                self._store_all(self._transpose(loaded))
            with no:
                group_stop = builder.add(self.group, size)
                minor_stop = builder.add(self.minor, size)
                block.copy_elements(
                    self.group,
                    minimum(builder, group_stop, block.groups),
                    self.minor,
                    minimum(builder, minor_stop, block.minor),
                )

    def _major(self) -> Value:
        group = const(I64, self.block.kind.group)
        return self.block.builder.mul(self.group, group)

    def _is_inside(self, groups: Value, minors: Value) -> Value:
        """Whether the square ends before both bounds."""
        builder, size = self.block.builder, const(I64, self.block.lanes)
        return builder.and_(
            builder.icmp_signed("<=", builder.add(self.group, size), groups),
            builder.icmp_signed("<=", builder.add(self.minor, size), minors),
        )

    def _load(self, minor: Value, mask: Value | None) -> Value:
        """The majors of one minor as 32-bit lanes: pairs, or one element each."""
        block, builder, lanes = self.block, self.block.builder, self.block.lanes
        pointer = block.source_at(self._major(), minor)
        value = block.load(pointer, lanes * block.kind.group, mask)
        wide = vector(I32, lanes)
        if block.kind.group == 2:
            return builder.bitcast(value, wide)
        return value if value.type.element is I32 else builder.zext(value, wide)

    def _transpose(self, columns: list[Value]) -> list[Value]:
        block, builder = self.block, self.block.builder
        rows = transpose_square(builder, columns)
        if block.kind.group == 2 or block.kind.result == "f32":
            return rows
        narrow = vector(bits_of(block.kind.result), block.lanes)
        return [builder.trunc(row, narrow) for row in rows]

    def _store_all(self, rows: list[Value]) -> None:
        for number, row in enumerate(rows):
            group = self.block.builder.add(self.group, const(I64, number))
            self.block.store(row, self.block.result_at(group, self.minor))

    def _store_some(self, rows: list[Value]) -> None:
        """Store the groups and minors that exist."""
        block, builder, lanes = self.block, self.block.builder, self.block.lanes
        left = builder.sub(block.minor, self.minor)
        in_row = lane_mask(builder, left, lanes)
        for number, row in enumerate(rows):
            group = builder.add(self.group, const(I64, number))
            exists = builder.icmp_signed("<", group, block.groups)
            mask = _all_if(builder, exists, in_row)
            block.store(row, block.result_at(group, self.minor), mask)
