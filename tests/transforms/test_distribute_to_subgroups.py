"""A kernel of subgroups does what that of the workgroup did, whatever the maps."""

import numpy as np
import pytest
from mapped_kernels import (
    AB,
    HEAD,
    LAYOUTS,
    NATIVE,
    check,
    distributed,
    init,
    kernel,
    layouts,
    named,
    numbers,
    ragged,
    tile,
    vec,
)
from xdsl.context import Context
from xdsl.dialects.builtin import UnknownLoc

from xetl.dialects.parser import parse_module
from xetl.dialects.text import read_module
from xetl.dialects.upstream import gpu
from xetl.errors import IRError
from xetl.transforms.distribute_to_subgroups import DistributeToSubgroupsPass


@layouts
def test_tiles_and_values_are_carried_by_loops(layout):
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      {init("s", "a", type_, at="%row, %zero")}
      {init("d", "b", type_)}
      %start = arith.constant {{map = {m}}} dense<0.0> : {vec()}
      %acc, %moved = scf.for %i = %zero to %two step %one
          iter_args(%x = %start, %t = %s) -> ({vec()}, {type_}) {{
        %v = xetile.load_tile %t : {type_} -> {vec()}
        %y = arith.addf %x, %v {{map = {m}}} : {vec()}
        %u = xetile.update_tile_offset %t, [%zero, 32] : {type_}
        scf.yield %y, %u : {vec()}, {type_}
      }} {{result_maps = [{m}, unit]}}
      %first = arith.cmpi eq, %by, %zero : index
      %w = scf.if %first -> ({vec()}) {{
        %more = xetile.load_tile %moved : {type_} -> {vec()}
        %z = arith.addf %acc, %more {{map = {m}}} : {vec()}
        scf.yield %z : {vec()}
      }} else {{
        scf.yield %acc : {vec()}
      }} {{result_maps = [{m}]}}
      xetile.store_tile %w, %d : {vec()}, {type_}"""
    a, b = numbers(50, 80), numbers(50, 32)
    _, found = check(kernel(AB, body), [a, b], grid=(1, 2), native=layout in NATIVE)
    expected = a[:, :32] + a[:, 32:64]
    expected[:32, :16] += a[:32, 64:]
    np.testing.assert_array_equal(found, expected)


@layouts
def test_while_loops_carry_in_both_regions(layout):
    type_, m = tile(layout), named(layout)
    body = f"""{HEAD}
      {init("s", "a", type_)}
      {init("d", "b", type_)}
      %three = arith.constant 3 : index
      %start = xetile.load_tile %s : {type_} -> {vec()}
      %n, %out = scf.while (%i = %zero, %x = %start)
          : (index, {vec()}) -> (index, {vec()}) {{
        %more = arith.cmpi ult, %i, %three : index
        %y = arith.mulf %x, %x {{map = {m}}} : {vec()}
        scf.condition(%more) %i, %y : index, {vec()}
      }} do {{
      ^bb0(%i: index, %y: {vec()}):
        %j = arith.addi %i, %one : index
        scf.yield %j, %y : index, {vec()}
      }} attributes {{result_maps = [unit, {m}], before_maps = [unit, {m}]}}
      xetile.store_tile %out, %d : {vec()}, {type_}"""
    a = np.sign(numbers(40, 40)) * 2
    _, found = check(
        kernel(AB, body), [a, numbers(40, 40, seed=1)], native=layout in NATIVE
    )
    np.testing.assert_array_equal(found, a**16)


REFUSED = {
    "a call": """
      %r = func.call @k(%v) : ({vec}) -> {vec}""",
    "a parallel loop that carries": """
      %r = scf.parallel (%i) = (%zero) to (%two) step (%one) init (%v) -> {vec} {{
        scf.reduce(%v : {vec}) {{
        ^bb0(%x: {vec}, %y: {vec}):
          %z = arith.addf %x, %y {{map = {m}}} : {vec}
          scf.reduce.return %z : {vec}
        }}
      }}""",
}


@pytest.mark.parametrize("what", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_distributed_is_an_error_with_its_line(what):
    layout = LAYOUTS["exact"]
    text = kernel(
        f"%a: {ragged()}",
        f"""{HEAD}
      {init("s", "a", tile(layout))}
      %v = xetile.load_tile %s : {tile(layout)} -> {vec()}
      {what.format(vec=vec(), m=named(layout))}
      xetile.store_tile %r, %s : {vec()}, {tile(layout)}""",
    )
    with pytest.raises(IRError, match="X0705") as caught:
        DistributeToSubgroupsPass().apply(Context(), parse_module(text, "k.mlir"))
    assert caught.value.line


def test_a_workgroup_asks_who_runs_it():
    type_ = tile(LAYOUTS["exact"])
    body = f"""{HEAD}
      {init("s", "a", type_)}
      xetile.prefetch_tile %s : {type_}
      %x = gpu.thread_id x
      %s0 = gpu.subgroup_id : index
      %y = gpu.block_dim y
      %n = gpu.num_subgroups : index
      %g = gpu.global_id x
      %sum0 = arith.addi %x, %s0 : index
      %sum1 = arith.addi %sum0, %y : index
      %sum2 = arith.addi %sum1, %n : index
      memref.store %sum2, %b[%g] : memref<4xindex>"""
    arguments = f"%a: {ragged()}, %b: memref<4xindex>"
    b = numbers(4, dtype="int64")
    _, found = check(kernel(arguments, body), [numbers(32, 32), b], grid=(2,))
    np.testing.assert_array_equal(found, [2, 2, b[2], b[3]])


def test_locations_stay():
    layout = LAYOUTS["both"]
    body = f"""{HEAD}
      {init("s", "a", tile(layout))}
      %v = xetile.load_tile %s : {tile(layout)} -> {vec()}
      xetile.store_tile %v, %s : {vec()}, {tile(layout)}"""
    module = distributed(kernel(f"%a: {ragged()}", body))
    functions = [op for op in module.walk() if isinstance(op, gpu.FuncOp)]
    for op in functions[0].walk():
        assert not isinstance(op.location, UnknownLoc), op


def test_kernels_of_subgroups_are_left_alone():
    text = kernel(AB, "").replace('"workgroup"', '"subgroup"')
    assert str(distributed(text)) == str(read_module(text))
