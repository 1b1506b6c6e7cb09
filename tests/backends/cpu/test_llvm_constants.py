"""Constants are made once, and told apart even where Python says they are equal."""

from __future__ import annotations

from xetl_cpu.llvm import (
    F64,
    I1,
    I32,
    I64,
    PTR,
    VOID,
    Builder,
    const,
    define,
    iota,
    ir,
    vector,
)


def test_whole_numbers_are_made_once() -> None:
    assert const(I64, 5) is const(I64, 5)
    assert const(vector(I32, 4), 0) is const(vector(I32, 4), 0)
    assert iota(4) is iota(4)


def test_equal_numbers_of_other_types_are_others() -> None:
    assert str(const(I64, 1)) == "i64 1"
    assert str(const(I32, 1)) == "i32 1"
    assert str(const(I1, 1)) == "i1 1"
    assert str(const(I1, True)) == "i1 true"
    assert str(const(vector(I32, 2), 1)) == "<2 x i32> splat (i32 1)"
    assert str(const(vector(I32, 3), 1)) == "<3 x i32> splat (i32 1)"
    assert str(iota(2)) != str(iota(2, I64))


def test_zeros_keep_their_signs() -> None:
    assert str(const(F64, 0.0)) != str(const(F64, -0.0))
    assert str(const(F64, 0)) == str(const(F64, 0.0))


def test_numbers_are_constants_of_the_other_operand() -> None:
    function = define(ir.Module(), "f", VOID, [("x", I32), ("p", PTR)])
    x, pointer = function.args
    builder = Builder(function.append_basic_block("entry"))
    builder.sub(7, builder.add(x, 5))
    builder.select(builder.icmp_signed("<", x, 3), 1, x)
    builder.gep(pointer, [8], source_etype=I64)
    builder.ret(0)
    text = str(function)
    for line in (
        'add i32 %"x", 5',
        "sub i32 7, %",
        'icmp slt i32 %"x", 3',
        "i32 1, i32 %",
        "i64 8",
        "ret i64 0",
    ):
        assert line in text


def test_neutral_numbers_need_no_instruction() -> None:
    function = define(ir.Module(), "f", VOID, [("x", I64), ("p", PTR)])
    x, pointer = function.args
    b = Builder(function.append_basic_block("entry"))
    same = [
        b.add(x, 0),
        b.sub(x, const(I64, 0)),
        b.mul(x, 1),
        b.udiv(x, 1),
        b.shl(x, 0),
    ]
    assert all(each is x for each in (*same, b.and_(x, -1), b.or_(x, 0)))
    assert b.gep(pointer, [0], source_etype=I64) is pointer
    assert b.mul(5, const(I64, 1)) is const(I64, 5)
    others = [b.mul(x, 0), b.sub(0, x), b.and_(x, 0), b.urem(x, 1)]
    assert x not in others
