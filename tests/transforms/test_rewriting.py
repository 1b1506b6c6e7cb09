"""Locations survive rewriting; stages tell what may stand where."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from xetl.dialects.parser import parse_module
from xetl.dialects.upstream import arith, math
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.cse import CSEPass
from xetl.transforms.rewriting import apply_patterns
from xetl.transforms.stages import StageError, StageSpec, check_stage, register_stage


class DoubleByAdding(RewritePattern):
    """2 * x is x + x: two new operations for one."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.MulfOp, rewriter: PatternRewriter, /) -> None:
        negated = arith.NegfOp(op.lhs)
        rewriter.replace(op, [negated, arith.SubfOp(op.lhs, negated.result)])


class ExpToExp2(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: math.ExpOp, rewriter: PatternRewriter, /) -> None:
        rewriter.replace(op, math.Exp2Op(op.operand))


def line_of(op: Operation) -> int:
    assert isinstance(op.location, FileLineColLoc)
    return op.location.line.data


def test_new_operations_take_the_place_of_the_matched_one() -> None:
    module = parse_module(
        "func.func @f(%x: f32) -> (f32, f32) {\n"
        "  %a = arith.mulf %x, %x : f32\n"
        "  %b = math.exp %x : f32\n"
        "  return %a, %b : f32, f32\n}"
    )
    assert apply_patterns(module, DoubleByAdding(), ExpToExp2())
    lines = {op.name: line_of(op) for op in list(module.walk())[1:]}
    assert lines["arith.negf"] == lines["arith.subf"] == 2
    assert lines["math.exp2"] == 3
    assert not apply_patterns(module, DoubleByAdding(), ExpToExp2())


def test_folding_keeps_the_line() -> None:
    module = parse_module(
        "func.func @f() -> index {\n  %a = arith.constant 2 : index\n"
        "  %b = arith.addi %a, %a : index\n  return %b : index\n}"
    )
    CanonicalizePass().apply(Context(), module)
    (constant,) = [o for o in module.walk() if isinstance(o, arith.ConstantOp)]
    assert line_of(constant) == 3


def test_stages_refuse_what_is_not_lowered() -> None:
    text = (
        "func.func @f(%t: !xetile.tile<8x8xf32>) {\n"
        "  %v = xetile.load_tile %t : !xetile.tile<8x8xf32> -> vector<8x8xf32>\n"
        "  return\n}"
    )
    module = parse_module(text, "k.mlir")
    check_stage(module, "xetile")
    with pytest.raises(StageError, match=r"xetile\.load_tile.*loops.*k\.mlir:2:8"):
        check_stage(module, "loops")
    with pytest.raises(ValueError, match="no stage is called `nowhere`"):
        check_stage(module, "nowhere")
    register_stage(StageSpec("test-only", frozenset({"builtin"})))
    with pytest.raises(StageError, match=r"func\.func"):
        check_stage(module, "test-only")


def test_loops_have_no_matrices() -> None:
    module = parse_module(
        "func.func @f(%v: vector<8x8xf32>) {\n"
        "  %w = arith.addf %v, %v : vector<8x8xf32>\n  return\n}"
    )
    with pytest.raises(StageError, match="still works on vector<8x8xf32>"):
        check_stage(module, "loops")


def test_passes_are_fast() -> None:
    lines = [
        f"  %a{i} = arith.addi %{'x' if i == 0 else f'a{i - 1}'}, %c : index\n"
        f"  %b{i} = arith.addi %{'x' if i == 0 else f'a{i - 1}'}, %c : index\n"
        for i in range(1000)
    ]
    module = parse_module(
        "func.func @f(%x: index, %c: index) -> (index, index) {\n"
        + "".join(lines)
        + "  return %a999, %b999 : index, index\n}"
    )
    CSEPass().apply(Context(), module)
    CanonicalizePass().apply(Context(), module)
    assert len(list(module.walk())) == 1003
