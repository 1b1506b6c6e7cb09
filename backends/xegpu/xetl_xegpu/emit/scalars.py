"""Vectors of a lane as the numbers they are of, for OpenCL's driver for CPUs.

That driver runs 16 lanes at once: a number becomes a vector of 16, but a vector of 8
becomes one of 128, which it takes apart and puts together at each operation. A sum of
16 fragments of f16 took 3.3 s to build, 0.2 s number by number, with memory in words.

So arithmetic is written for each item. The vector itself is put together only where
somebody takes it as a whole: a call, a value that a loop carries. What comes whole is
taken apart only where its items are asked for. Both are written down at once, and what
nobody has asked for is left out at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from xetl.codegen.types import I32, Type, Value, element_of, ll
from xetl.worklist import Worklist

ValueT = TypeVar("ValueT", bound=Value)

_WORD = 32
_PARTS = (8, 16)
"""Bits of a word, and of what words are taken apart to."""

_PLAIN = ll.IRBuilder
"""What writes one operation, whatever it is of."""

_BINARY = (
    *("add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr"),
    *("and_", "or_", "xor", "fadd", "fsub", "fmul", "fdiv", "frem"),
)
_COMPARISONS = ("icmp_signed", "icmp_unsigned", "fcmp_ordered", "fcmp_unordered")
_CASTS = (
    *("trunc", "zext", "sext", "fptrunc", "fpext"),
    *("sitofp", "uitofp", "fptosi", "fptoui"),
)


class ScalarBuilder(ll.IRBuilder):
    """Writes the operations of a kernel item by item; call `finish` at the end."""

    def __init__(self, block: ll.Block) -> None:
        _PLAIN.__init__(self, block)
        self._known: dict[Value, list[Value]] = {}
        """The items of vectors, wherever the vector is."""
        self._taken: dict[tuple[Value, Value], list[Value]] = {}
        """The items of vectors that came whole, in a block."""
        self._spare: dict[Value, list[Value]] = {}
        """What is left out if nobody asks for it; the items of vectors made of such."""

    # Items and vectors --------------------------------------------------------------

    def items(self, value: Value) -> list[Value]:
        """The items of a vector, as numbers."""
        if isinstance(value, ll.Constant):
            return _constant_items(value)
        found = self._known.get(value) or self._taken.get((value, self.block))
        if found is None:
            numbers = map(I32, range(value.type.count))
            items = (_PLAIN.extract_element(self, value, n) for n in numbers)
            found = list(map(self._maybe, items))
            self._taken[value, self.block] = found
        return found

    def _maybe(self, value: ValueT) -> ValueT:
        """Note that an instruction may be left out."""
        self._spare[value] = []
        return value

    def together(self, items: Sequence[Value]) -> ll.Instruction:
        """A vector of numbers, which is put together if it is asked for."""
        type_ = ll.VectorType(items[0].type, len(items))
        undefined = ll.Constant(type_, ll.Undefined)
        # The others are put in at the end.
        last = _PLAIN.insert_element(self, undefined, items[-1], I32(len(items) - 1))
        self._spare[last] = list(items[:-1])
        self._known[last] = list(items)
        return last

    def taken_apart(self, value: ValueT) -> ValueT:
        """A value that comes whole: its items, wherever they are asked for."""
        if is_vector(value):
            self._known[value] = self.items(value)
        return value

    # Operations ---------------------------------------------------------------------

    def each(
        self, make: Callable[..., ll.Instruction], *given: Any, **options: Any
    ) -> ll.Instruction:
        """An operation on each item; what has no items is for all of them.

        Where a type is given, each item is of its element.
        """
        lists = [self.items(x) for x in given if _has_items(x)]
        others = [None if _has_items(x) else element_of(x) for x in given]
        made: list[Value] = []
        for items in zip(*lists):
            left = iter(items)
            operands = [next(left) if x is None else x for x in others]
            made.append(make(*operands, **options))
        return self.together(made)

    def extract_element(self, vector: Value, idx: Value, name: str = "") -> Value:
        """An item."""
        if isinstance(idx, ll.Constant):
            number: int = idx.constant
            return self.items(vector)[number]
        return _PLAIN.extract_element(self, vector, idx, name)

    def insert_element(
        self, vector: Value, value: Value, idx: Value, name: str = ""
    ) -> ll.Instruction:
        """A vector with another item."""
        if not isinstance(idx, ll.Constant):
            return _PLAIN.insert_element(self, vector, value, idx, name)
        items = [*self.items(vector)]
        items[idx.constant] = value
        return self.together(items)

    def shuffle_vector(
        self, vector1: Value, vector2: Value, mask: Value, name: str = ""
    ) -> ll.Instruction:
        """Items of two vectors."""
        both = [*self.items(vector1), *self.items(vector2)]
        assert isinstance(mask, ll.Constant)
        return self.together([_picked(both, each) for each in _constant_items(mask)])

    def bitcast(self, value: Value, typ: Type, name: str = "") -> Value:
        """The same bits; of items that are known, item by item."""
        if value.type == typ:
            return value
        items = self._recast(value, typ)
        if items is not None and not isinstance(typ, ll.VectorType):
            return items[0]
        whole = _PLAIN.bitcast(self, value, typ, name)
        if items is not None:
            self._known[self._maybe(whole)] = items
        return whole

    def _recast(self, value: Value, typ: Type) -> list[Value] | None:
        """The items of the result; of a word, which is no vector, the word.

        Words are taken apart and put together by shifts: the driver ends the process
        over some sums of the bytes of a word that is seen as a vector of four.
        """
        items = [value] if value.type == I32 else self._known.get(value)
        if items is None or not (is_vector(value) or isinstance(typ, ll.VectorType)):
            return None
        old, new = bits_of(value.type), bits_of(typ)
        if old == new:
            return [self._as(each, element_of(typ)) for each in items]
        if old == _WORD and new in _PARTS:
            parts = [part for each in items for part in self._parts(each, new)]
            return [self._as(part, element_of(typ)) for part in parts]
        if old in _PARTS and new == _WORD:
            count = _WORD // old
            groups = [items[at : at + count] for at in range(0, len(items), count)]
            words = [self._word(each, old) for each in groups]
            return [self._as(word, element_of(typ)) for word in words]
        return None

    def _as(self, item: Value, typ: Type) -> Value:
        """The bits of a number as another type."""
        return item if item.type == typ else self._maybe(self.bitcast(item, typ))

    def _parts(self, item: Value, bits: int) -> list[Value]:
        word = self._as(item, I32)
        shifted = [self._shifted(self.lshr, word, at) for at in range(0, _WORD, bits)]
        return [self._maybe(self.trunc(each, ll.IntType(bits))) for each in shifted]

    def _word(self, parts: Sequence[Value], bits: int) -> Value:
        numbers = [self._as(each, ll.IntType(bits)) for each in parts]
        word, *others = [self._maybe(self.zext(each, I32)) for each in numbers]
        for place, each in enumerate(others, 1):
            above = self._shifted(self.shl, each, place * bits)
            word = self._maybe(self.or_(word, above))
        return word

    def _shifted(self, shift: Callable[..., Value], word: Value, bits: int) -> Value:
        return self._maybe(shift(word, I32(bits))) if bits else word

    # Calls ---------------------------------------------------------------

    def call(
        self, fn: ll.Function, args: Iterable[Value], name: str = "", **options: Any
    ) -> ll.Instruction:
        """Call a function; one of LLVM's for each item."""
        make = partial(_PLAIN.call, self)
        arguments = list(args)
        if not any(map(is_vector, arguments)) or not fn.name.startswith("llvm."):
            return make(fn, arguments, name, **options)
        scalar = _of_numbers(fn)

        def one(*each: Value) -> ll.Instruction:
            return make(scalar, each, **options)

        return self.each(one, *arguments)

    # The end ------------------------------------------------------------------------

    def finish(self) -> None:
        """Leave out what nobody has asked for, and put together what somebody has."""
        blocks, spare = self.function.blocks, self._spare
        every = (each for block in blocks for each in block.instructions)
        needed = Worklist(each for each in every if each not in spare)
        for each in needed:
            needed += [o for o in _operands(each, spare) if o in spare]
        for block in blocks:
            kept: list[ll.Instruction] = []
            for each in block.instructions:
                if each in spare:
                    if each not in needed.seen:
                        continue
                    kept += _put_together(each, spare[each])
                kept.append(each)
            block.instructions[:] = kept


def _operands(
    instruction: ll.Instruction, spare: dict[Value, list[Value]]
) -> list[ll.Instruction]:
    """Instructions that one reads."""
    incoming = [value for value, _ in getattr(instruction, "incomings", ())]
    found = (*instruction.operands, *incoming, *spare.get(instruction, ()))
    return [each for each in found if isinstance(each, ll.Instruction)]


def _put_together(last: ll.Instruction, items: Sequence[Value]) -> list[ll.Instruction]:
    """The instructions before the one that puts in the last item."""
    made: list[ll.Instruction] = []
    for number, item in enumerate(items):
        vector = made[-1] if made else last.operands[0]
        insert = ll.instructions.InsertElement(last.parent, vector, item, I32(number))
        made.append(insert)
    if made:
        last.operands[0] = made[-1]
    return made


def is_vector(value: Value) -> bool:
    """Whether a value has items."""
    return isinstance(value.type, ll.VectorType)


def _has_items(given: object) -> bool:
    return isinstance(given, Value) and is_vector(given)


def bits_of(type_: Type) -> int:
    """Bits of a number, or of an item of a vector; 0 of what is no number."""
    element = element_of(type_)
    widths = {"half": 16, "float": 32, "double": 64}
    return widths.get(str(element)) or getattr(element, "width", 0)


def _constant_items(value: ll.Constant) -> list[Value]:
    element, content = value.type.element, value.constant
    if content is ll.Undefined:
        return [ll.Constant(element, ll.Undefined)] * value.type.count
    if content is None:
        return [ll.Constant(element, 0)] * value.type.count
    return [
        each if isinstance(each, ll.Constant) else ll.Constant(element, each)
        for each in content
    ]


def _picked(items: Sequence[Value], place: Value) -> Value:
    assert isinstance(place, ll.Constant)
    number: int | object = place.constant
    if isinstance(number, int):
        return items[number]
    return ll.Constant(items[0].type, ll.Undefined)


def _of_numbers(function: ll.Function) -> ll.Function:
    """LLVM's function for numbers, of that for vectors of them."""
    head, _, tail = function.name.rpartition(".v")
    name = f"{head}.{tail.lstrip('0123456789')}"
    known = function.module.globals.get(name)
    if known is not None:
        return known
    old = function.function_type
    type_ = ll.FunctionType(old.return_type.element, [*map(element_of, old.args)])
    return ll.Function(function.module, type_, name)


def _item_by_item(name: str) -> Callable[..., ll.Instruction]:
    make = getattr(_PLAIN, name)

    def method(self: ScalarBuilder, *given: Any, **options: Any) -> ll.Instruction:
        if not any(map(_has_items, given)):
            return make(self, *given, **options)
        return self.each(partial(make, self), *given, **options)

    return method


for _name in (*_BINARY, *_COMPARISONS, *_CASTS, "select", "fneg"):
    setattr(ScalarBuilder, _name, _item_by_item(_name))
