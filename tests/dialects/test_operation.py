"""Operations by class statements: constructors, inferred types, formats."""

from threading import Thread

import pytest
from xdsl.dialects.builtin import (
    I32,
    I64,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Block, Dialect, Region
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Commutative
from xdsl.utils.exceptions import ParseError, VerifyException

from xetl.dialects.assembly import format_of
from xetl.dialects.base import MixedList
from xetl.dialects.operation import FORMATS, XetlOp, operations_of, row
from xetl.dialects.parser import DIALECTS, make_context, parse_module
from xetl.dialects.type_rules import like, like_all
from xetl.dialects.upstream import arith, scf


class PairOp(XetlOp, name="test.pair"):
    """All that a constructor distinguishes."""

    left = operand_def()
    right = opt_operand_def(like("left"))
    flag = opt_prop_def(IntegerType, prop_name="theFlag")
    number = result_def(IndexType)
    other = result_def()
    same = result_def(like("left"))

    assembly_format = "$left (`,` $right^)? attr-dict `:` type($left) `,` type($other)"


def test_types_follow_from_operands_constraints_and_arguments() -> None:
    (x,) = Block(arg_types=[f32]).args
    op = PairOp(x, i32)
    assert op.right is None
    assert list(op.result_types) == [IndexType(), i32, f32]
    assert PairOp(x, x, i32).right is x
    assert PairOp(x, i32, flag=i1).properties == {"theFlag": i1}
    assert PairOp(x, i32, flag=None).properties == {}


def test_wrong_arguments_are_told() -> None:
    (x,) = Block(arg_types=[f32]).args
    with pytest.raises(TypeError, match="expected 1 types, found 0"):
        PairOp(x)
    with pytest.raises(ValueError, match="wrong number of operands"):
        PairOp([x, x], i32)
    with pytest.raises(TypeError, match="`flags` cannot be"):
        PairOp(x, i32, flags=i1)


def test_a_class_without_a_name_is_no_operation() -> None:
    assert "test.pair" in [op.name for op in operations_of(__name__)]
    assert arith.AddiOp in operations_of(arith.__name__)
    assert all(op.name.startswith("arith.") for op in operations_of(arith.__name__))


def test_a_row_is_a_class_of_its_own() -> None:
    made = row(arith.FloatBinaryOp, "test.no_such_sum", "Sum.", commutes=True)
    assert (made.__name__, made.name) == ("NoSuchSumOp", "test.no_such_sum")
    assert (made.__module__, made.__doc__) == (__name__, "Sum.")
    assert made.has_trait(Commutative)
    assert not arith.SubfOp.has_trait(Commutative)
    assert issubclass(made, arith.FloatBinaryOp)


def test_all_formats_compile() -> None:
    known = {op for dialect in DIALECTS for op in dialect.operations}
    by_format = [op for op in known if any(base in FORMATS for base in op.mro())]
    assert len(by_format) > 100
    for op in by_format:
        format_of(op)


def test_what_was_verified_once_hides_nothing_else() -> None:
    x, y = Block(arg_types=[f32, i32]).args
    for _ in range(2):
        PairOp(x, x, i32, flag=i1).verify()
        wrong = PairOp(x, x, i32)
        wrong.properties["other_flag"] = i1
        with pytest.raises(VerifyException, match="'other_flag' is not defined"):
            wrong.verify()
        wrong = PairOp(x, i32, flag=i1)
        wrong.operands = [x, y]
        with pytest.raises(VerifyException, match="has type"):
            wrong.verify()
        first, second = scf.YieldOp(x), scf.YieldOp(x)
        block = Block([first, second])
        Region(block)
        second.verify()
        with pytest.raises(VerifyException, match="last"):
            first.verify()


class MovedOp(XetlOp, name="test.moved"):
    source = operand_def()
    sizes = var_operand_def(IndexType)
    static_sizes = opt_prop_def(DenseArrayBase)
    count = opt_prop_def(IntegerAttr[I64], IntegerAttr(1, i64))
    width = opt_prop_def(IntegerAttr[I32])
    is_last = opt_prop_def(UnitAttr)
    label = opt_prop_def(StringAttr)
    names = opt_prop_def(ArrayAttr[StringAttr])

    mixed_sizes = MixedList("sizes", "static_sizes")
    assembly_format = (
        "$source (`` custom<DynamicIndexList>($sizes, $static_sizes)^)? attr-dict `:` "
        "types($source, $sizes)"
    )


def test_properties_of_python_values() -> None:
    (v,) = Block(arg_types=[f32]).args
    given = {"count": 2, "width": 8, "is_last": True, "label": "a", "names": ["b"]}
    assert MovedOp(v, **given).properties == {
        "count": IntegerAttr(2, i64),
        "width": IntegerAttr(8, i32),
        "is_last": UnitAttr(),
        "label": StringAttr("a"),
        "names": ArrayAttr([StringAttr("b")]),
    }
    usual = {"count": 1, "width": None, "is_last": False, "names": ()}
    assert MovedOp(v, **usual).properties == {}
    assert MovedOp(v).count.value.data == 1


def test_a_list_of_constants_and_values() -> None:
    v, i = Block(arg_types=[f32, IndexType()]).args
    op = MovedOp(v, sizes=[8, i])
    assert op.mixed_sizes == (8, i)
    assert tuple(op.sizes) == (i,)
    assert MovedOp(v).mixed_sizes == ()
    assert MovedOp(v).properties == {}
    op.operands = (v,)
    with pytest.raises(VerifyException, match="0 values are given for 1"):
        op.verify()


def test_types_of_operands_that_may_be_absent() -> None:
    context = make_context([Dialect("test", [MovedOp])])
    head = '%v, %i = "builtin.unrealized_conversion_cast"() : () -> (f32, index)\n'
    for line in ("test.moved %v[8, %i] : f32, index", "test.moved %v : f32"):
        assert line in str(parse_module(head + line, context=context))
    with pytest.raises(ParseError, match="expected 2 operand types but had 1"):
        parse_module(head + "test.moved %v[%i] : f32", context=context)


class LoopOp(XetlOp, name="test.loop"):
    """Types from a property, types of all values, a default, regions."""

    source = operand_def()
    carried = var_operand_def()
    width = prop_def(IntegerAttr[I64])
    text = opt_prop_def(StringAttr)
    body = region_def()
    other = region_def()
    number = result_def(like("source", "width", lambda source, width: i32))
    res = var_result_def(like_all("carried"))

    DEFAULTS = staticmethod(lambda types: {"text": StringAttr(str(types["source"]))})
    assembly_format = (
        "$source (`,` $carried^ `:` type($carried))? attr-dict `:` type($source) "
        "$body $other"
    )


def test_properties_and_regions_by_position() -> None:
    x, y = Block(arg_types=[f32, i32]).args
    body = Region(Block())
    op = LoopOp(x, [x, y], 4, "a", body)
    assert op.properties["width"] == IntegerAttr(4, i64)
    assert op.text == StringAttr("a")
    assert (op.body, len(op.other.blocks)) == (body, 0)
    assert list(op.result_types) == [i32, f32, i32]
    assert not LoopOp(x, (), Region(), width=4).body.blocks
    with pytest.raises(TypeError, match="too many arguments"):
        LoopOp(x, (), 4, "a", "b")


def test_a_default_is_left_out() -> None:
    (x,) = Block(arg_types=[f32]).args
    usual, other = LoopOp(x, (), 4), LoopOp(x, (), 4, "a")
    assert usual.text == StringAttr("f32")
    assert "text" not in str(usual)
    assert 'text = "a"' in str(other)


def test_an_operation_is_defined_when_it_is_first_used() -> None:
    class LaterOp(XetlOp, name="test.later"):
        operand = operand_def()
        result = result_def(like("operand"))

    field = vars(LaterOp)["operand"]
    (x,) = Block(arg_types=[f32]).args
    threads = [Thread(target=LaterOp.get_irdl_definition) for _ in range(4)]
    for each in threads:
        each.start()
    made = LaterOp.create(operands=[x], result_types=[f32])
    made.verify()
    assert made.operand is LaterOp(x).operand is x
    assert vars(LaterOp)["operand"] is not field
    assert [name for name, _ in LaterOp.get_irdl_definition().operands] == ["operand"]
    for each in threads:
        each.join()
