"""Functions of scalars and rows, emitted and run: what each operation computes.

The emission knows no target; here it is compiled for this machine by LLVM's JIT.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import llvmlite.binding as binding
import llvmlite.ir as ll
import numpy as np
import pytest
from ml_dtypes import bfloat16

from xetl.codegen import arith, memref, scf, vector
from xetl.codegen import math as math_codegen
from xetl.codegen.emitter import Emitter, Strided
from xetl.codegen.memref import refine
from xetl.codegen.types import I64, PTR, llvm_type
from xetl.dialects.parser import parse_module
from xetl.dialects.upstream import func
from xetl.errors import InternalError

CTYPES = {
    "i64": ctypes.c_int64,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "i32": ctypes.c_int32,
    "i16": ctypes.c_uint16,
    "ptr": ctypes.c_void_p,
    "i8": ctypes.c_int8,
    "i1": ctypes.c_bool,
}


def emitted(text: str, *, lower_bf16: bool = False) -> Any:
    """The LLVM module of the only function; it returns its operand, if any.

    A memref argument is an address, then its sizes, then its strides.
    """
    module = parse_module(text, "test")
    (function,) = [op for op in module.walk() if isinstance(op, func.FuncOp)]
    block = function.body.block
    types: list[Any] = []
    for argument in block.args:
        shape = getattr(argument.type, "get_shape", None)
        is_memref = argument.type.name == "memref"
        rank = len(shape()) if is_memref and shape else 0
        types += [PTR, *[I64] * (2 * rank)] if is_memref else [llvm_type(argument.type)]
    results = function.function_type.outputs.data
    returned = llvm_type(results[0]) if results else ll.VoidType()
    llvm = ll.Module("test")
    made = ll.Function(llvm, ll.FunctionType(returned, types), "f")

    def end(em: Emitter, op: Any) -> None:
        values = em.all(op.operands)
        em.builder.ret(values[0]) if values else em.builder.ret_void()

    tables = (arith, math_codegen, memref, scf, vector)
    table = {cls: emit for part in tables for cls, emit in part.TABLE.items()}
    table[func.ReturnOp] = end
    builder = ll.IRBuilder(made.append_basic_block("entry"))
    em = Emitter(llvm, builder, table, lambda *_: None, lower_bf16)
    given = iter(made.args)
    for argument in block.args:
        if argument.type.name != "memref":
            em.set(argument, next(given))
            continue
        rank = len(argument.type.get_shape())
        address, *numbers = (next(given) for _ in range(1 + 2 * rank))
        sizes, strides = tuple(numbers[:rank]), tuple(numbers[rank:])
        base = Strided(address, sizes, strides, argument.type.element_type)
        em.set(argument, refine(base, argument.type))
    em.emit_block(block)
    return llvm


class Compiled:
    """A function that can be called with Python numbers."""

    def __init__(self, llvm: Any) -> None:
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        parsed = binding.parse_assembly(str(llvm))
        parsed.verify()
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
        )
        self.engine = binding.create_mcjit_compiler(parsed, machine)
        self.engine.finalize_object()
        (made,) = [f for f in llvm.functions if f.name == "f"]
        arguments = [CTYPES[str(arg.type)] for arg in made.args]
        result = made.function_type.return_type
        returned = None if isinstance(result, ll.VoidType) else CTYPES[str(result)]
        address = self.engine.get_function_address("f")
        self.call = ctypes.CFUNCTYPE(returned, *arguments)(address)

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)


def compiled(text: str, **options: Any) -> Compiled:
    return Compiled(emitted(text, **options))


NUMBERS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5), (2**62, 7)]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("floordivsi", lambda a, b: a // b),
        ("ceildivsi", lambda a, b: -(-a // b)),
        ("divsi", lambda a, b: abs(a) // abs(b) * (1 if a * b >= 0 else -1)),
        ("remsi", lambda a, b: int(math.copysign(abs(a) % abs(b), a))),
        ("minsi", min),
        ("maxsi", max),
    ],
)
def test_integers(operation: str, expected: Any) -> None:
    text = f"""func.func @f(%a: i64, %b: i64) -> i64 {{
      %r = arith.{operation} %a, %b : i64
      func.return %r : i64
    }}"""
    run = compiled(text)
    for a, b in NUMBERS:
        assert run(a, b) == expected(a, b), (a, b)


@pytest.mark.parametrize("lower_bf16", [False, True])
def test_f64_to_bf16_rounds_once(lower_bf16: bool) -> None:
    if lower_bf16 and not binding.get_host_cpu_features().get("avx512bf16"):
        pytest.skip("this machine does not convert to bf16")
    text = """func.func @f(%a: f64) -> bf16 {
      %r = arith.truncf %a : f64 to bf16
      func.return %r : bf16
    }"""
    run = compiled(text, lower_bf16=lower_bf16)
    tie = 1 + 2.0**-8
    cases = {
        tie: 1.0,
        tie + 2.0**-40: 1 + 2.0**-7,
        tie - 2.0**-40: 1.0,
        -tie - 2.0**-40: -1 - 2.0**-7,
        0.0: 0.0,
        3e38: 3e38,
        1e39: math.inf,
        -math.inf: -math.inf,
        3.3962e38: math.inf,
        3.3961e38: 3.3895e38,
    }
    for value, expected in cases.items():
        bits = int(np.float32(expected).astype(bfloat16).view(np.uint16))
        assert run(value) == bits, value
    nan = np.uint16(run(math.nan)).view(bfloat16)
    assert nan != nan


def test_i32_to_bf16_rounds_once() -> None:
    run = compiled(
        """func.func @f(%a: i32) -> bf16 {
          %r = arith.sitofp %a : i32 to bf16
          func.return %r : bf16
        }"""
    )
    above = 2**30 + 2**22 + 1  # just above a tie, which f32 cannot see
    assert np.uint16(run(above)).view(bfloat16) == 2**30 + 2**23
    assert np.uint16(run(above - 1)).view(bfloat16) == 2**30
    assert np.uint16(run(-above)).view(bfloat16) == -(2**30) - 2**23


@pytest.mark.parametrize(
    ("value", "bits"),
    [("1.0", 0x3F80), ("0x7FC0", 0x7FC0), ("0xFF80", 0xFF80), ("3.39e38", 0x7F7F)],
)
def test_bf16_constants_are_bits(value: str, bits: int) -> None:
    run = compiled(
        f"""func.func @f() -> bf16 {{
          %r = arith.constant {value} : bf16
          func.return %r : bf16
        }}"""
    )
    assert run() == bits


def test_a_loop_runs_no_times_and_carries_in_parallel() -> None:
    run = compiled(
        """func.func @f(%n: index, %step: index) -> index {
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          %r:2 = scf.for %i = %zero to %n step %step
              iter_args(%a = %zero, %b = %one) -> (index, index) {
            %next = arith.addi %a, %b : index
            scf.yield %b, %next : index, index
          }
          func.return %r#0 : index
        }"""
    )
    assert [run(n, 1) for n in (-1, 0, 1, 2, 10)] == [0, 0, 1, 1, 55]
    assert run(10, 3) == 3
    assert run(10, 0) == 0, "a step that does not move runs no times"


ROWS = "memref<?x?xf32, strided<[?, 1]>>"


def test_a_loop_may_carry_memrefs() -> None:
    run = compiled(
        f"""func.func @f(%A: {ROWS}, %B: {ROWS}, %n: index) -> f32 {{
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          %r:2 = scf.for %i = %zero to %n step %one
              iter_args(%a = %A, %b = %B) -> ({ROWS}, {ROWS}) {{
            scf.yield %b, %a : {ROWS}, {ROWS}
          }}
          %x = memref.load %r#0[%one, %one] : {ROWS}
          func.return %x : f32
        }}"""
    )
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 4), np.float32)
    args = (a.ctypes.data, 2, 3, 3, 1, b.ctypes.data, 3, 4, 4, 1)
    assert [run(*args, n) for n in (0, 1, 2)] == [4, 1, 4]


def test_a_branch_may_choose_a_memref() -> None:
    run = compiled(
        f"""func.func @f(%A: {ROWS}, %B: {ROWS}, %c: i1) -> f32 {{
          %one = arith.constant 1 : index
          %m = scf.if %c -> ({ROWS}) {{
            scf.yield %A : {ROWS}
          }} else {{
            scf.yield %B : {ROWS}
          }}
          %x = memref.load %m[%one, %one] : {ROWS}
          func.return %x : f32
        }}"""
    )
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 4), np.float32)
    args = (a.ctypes.data, 2, 3, 3, 1, b.ctypes.data, 3, 4, 4, 1)
    assert [run(*args, flag) for flag in (True, False)] == [4, 1]


def test_masked_rows() -> None:
    run = compiled(
        """func.func @f(%A: memref<?xf32, strided<[1]>>, %n: index) {
          %zero = arith.constant 0 : index
          %fill = arith.constant dense<9.0> : vector<8xf32>
          %mask = vector.create_mask %n : vector<8xi1>
          %v = vector.maskedload %A[%zero], %mask, %fill
              : memref<?xf32, strided<[1]>>, vector<8xi1>, vector<8xf32>
              into vector<8xf32>
          %w = arith.addf %v, %v : vector<8xf32>
          vector.maskedstore %A[%zero], %mask, %w
              : memref<?xf32, strided<[1]>>, vector<8xi1>, vector<8xf32>
          func.return
        }"""
    )
    for n in (-3, 0, 1, 5, 8, 2**40):
        a = np.ones(8, np.float32)
        run(a.ctypes.data, 8, 1, n)
        assert a.tolist() == [2.0 if i < n else 1.0 for i in range(8)]


def test_an_operation_without_code_is_named() -> None:
    text = """func.func @f(%A: memref<?xf32>) {
      %g = memref.alloc() : memref<4xf32>
      func.return
    }"""
    with pytest.raises(InternalError, match=r"memref\.alloc"):
        emitted(text)


def test_constants_of_the_address_are_folded() -> None:
    llvm = str(
        emitted(
            """func.func @f(%A: memref<?x?xf32, strided<[?, 1]>>) -> f32 {
              %zero = arith.constant 0 : index
              %x = memref.load %A[%zero, %zero] : memref<?x?xf32, strided<[?, 1]>>
              func.return %x : f32
            }"""
        )
    )
    assert "getelementptr" not in llvm
    assert "mul" not in llvm


SUMS = f"""
func.func @f(%A: {ROWS}, %i: index, %n: index) -> f32 {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %none = arith.constant 0.0 : f32
  %is_some = arith.cmpi slt, %zero, %i : index
  %first = scf.if %is_some -> (f32) {{
    %s = scf.for %j = %zero to %n step %one iter_args(%sum = %none) -> (f32) {{
      %x = memref.load %A[%i, %j] : {ROWS}
      %next = arith.addf %sum, %x : f32
      scf.yield %next : f32
    }}
    scf.yield %s : f32
  }} else {{
    scf.yield %none : f32
  }}
  %s = scf.for %j = %zero to %n step %one iter_args(%sum = %first) -> (f32) {{
    %x = memref.load %A[%i, %j] : {ROWS}
    %y = memref.load %A[%j, %i] : {ROWS}
    %xy = arith.addf %x, %y : f32
    %next = arith.addf %sum, %xy : f32
    scf.yield %next : f32
  }}
  return %s : f32
}}"""


def test_a_row_of_a_branch_is_not_used_behind_it() -> None:
    A = np.arange(16, dtype=np.float32).reshape(4, 4)
    run = compiled(SUMS)
    for row in range(4):
        once = A[row].sum() + A[:, row].sum()
        assert run(A.ctypes.data, 4, 4, 4, 1, row, 4) == once + A[row].sum() * (row > 0)


def test_the_address_of_a_row_is_computed_in_front_of_a_loop() -> None:
    _, *bodies = str(emitted(SUMS)).split("\nfor.body")
    products = [body.split("\nfor.end")[0].count(" mul ") for body in bodies]
    assert products == [0, 1]  # the row of `%A[%j, %i]` is another one each time


def test_elements_are_put_together_and_shuffled() -> None:
    run = compiled("""
        func.func @f(%a: f64, %b: f64, %i: index) -> f64 {
          %v = vector.from_elements %a, %b : vector<2xf64>
          %w = vector.from_elements %b, %b : vector<2xf64>
          %s = vector.shuffle %v, %w [1, 0, 2, -1] : vector<2xf64>, vector<2xf64>
          %e = vector.extract %s[%i] : f64 from vector<4xf64>
          return %e : f64
        }""")
    assert [run(1.0, 2.0, i) for i in range(3)] == [2.0, 1.0, 2.0]


def test_bits_of_vectors_stay() -> None:
    run = compiled("""
        func.func @f(%a: i32, %b: i32) -> i64 {
          %v = vector.from_elements %a, %b : vector<2xi32>
          %w = vector.from_elements %b, %a : vector<2xi32>
          %s = vector.shuffle %v, %w [0, 1, 2, 3] : vector<2xi32>, vector<2xi32>
          %l = vector.bitcast %s : vector<4xi32> to vector<2xi64>
          %e = vector.extract %l[1] : i64 from vector<2xi64>
          return %e : i64
        }""")
    assert run(3, 5) == (3 << 32) + 5
