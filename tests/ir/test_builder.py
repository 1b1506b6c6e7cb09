"""The builder: arithmetic that folds, insertion points, locations, `once`."""

from __future__ import annotations

import random

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnknownLoc, f32
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.dialects.base import Index
from xetl.dialects.upstream import arith, scf
from xetl.ir.builder import Builder

HERE = FileLineColLoc(StringAttr("k.py"), IntAttr(3), IntAttr(1))
OPERATIONS = {
    "plus": lambda a, b: a + b,
    "minus": lambda a, b: a - b,
    "times": lambda a, b: a * b,
    "divided": lambda a, b: a // b,
    "ceil_divided": lambda a, b: -(-a // b),
    "remainder": lambda a, b: a % b,
    "rounded_up": lambda a, b: -(-a // b) * b,
    "minimum": min,
    "maximum": max,
}
COMPUTED = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivuiOp: lambda a, b: a // b,
    arith.RemuiOp: lambda a, b: a % b,
    arith.MinsiOp: min,
    arith.MaxsiOp: max,
}


def number(index: Index, known: dict[SSAValue, int]) -> int:
    if isinstance(index, int):
        return index
    if index in known:
        return known[index]
    op = index.owner
    if isinstance(op, arith.ConstantOp):
        return op.value.value.data
    return COMPUTED[type(op)](*(number(each, known) for each in op.operands))


def test_arithmetic_gives_the_same_number_folded_or_not() -> None:
    rng = random.Random(0)
    for _ in range(300):
        block = Block()
        build = Builder.at_end(block)
        name = rng.choice(list(OPERATIONS))
        pair = rng.randint(0, 3), rng.randint(1, 3)
        values = build.index(7), build.index(7)
        known = dict(zip(values, pair))
        takes_values = name not in ("ceil_divided", "rounded_up")
        given: tuple[Index, Index] = (
            rng.choice((pair[0], values[0])),
            rng.choice((pair[1], values[1])) if takes_values else pair[1],
        )
        found = getattr(build, name)(*given)
        assert number(found, known) == OPERATIONS[name](*pair)
        if given == pair:
            assert isinstance(found, int)


def test_neutral_operands_insert_nothing() -> None:
    block = Block()
    build = Builder.at_end(block)
    value = build.index(5)
    assert build.plus(value, 0) is build.plus(0, value) is value
    assert build.times(value, 1) is build.times(1, value) is value
    assert build.times(value, 0) == build.remainder(value, 1) == 0
    assert build.minus(value, 0) is build.divided(value, 1) is value
    assert len(list(block.ops)) == 1


def test_points_and_locations() -> None:
    block = Block()
    last = Builder.at_end(block, HERE).add(arith.ConstantOp.index(1))
    assert last.location == HERE
    first = Builder.before(last).insert(arith.ConstantOp.index(0))
    between = Builder.after(first)
    middle = [between.index(10), between.index(11)]
    assert [op.results[0] for op in block.ops] == [first, *middle, last.result]
    assert all(op.location == HERE for op in block.ops)
    plain = Builder(InsertPoint.at_end(block)).add(arith.ConstantOp.index(2))
    assert isinstance(plain.location, UnknownLoc)


def test_inside_returns_to_the_point_before() -> None:
    outer, inner = Block(), Block()
    build = Builder.at_end(outer)
    with build.inside(inner):
        build.index(1)
    build.constant(1.5, f32)
    assert len(list(inner.ops)) == len(list(outer.ops)) == 1


def test_once_makes_each_key_once() -> None:
    block = Block()
    build = Builder.at_end(block)
    one = build.once("one", lambda b: b.index(1))
    assert build.once("one", lambda b: b.index(1)) is one
    assert build.once("two", lambda b: b.index(2)) is not one
    assert len(list(block.ops)) == 2


def test_loops_and_conditionals() -> None:
    block = Block()
    build = Builder.at_end(block, HERE)
    loop = build.for_loop(0, 8, 1)
    inside = Builder.at_end(loop.body.block, HERE)
    counter = loop.body.block.args[0]
    then = inside.when(inside.compare("ult", counter, 4))
    then.index(3)
    inside.add(scf.YieldOp())
    loop.verify()
    assert all(op.location == HERE for op in loop.walk())
