"""Which vectors may be kept in another order of lanes, in small functions."""

import pytest
from xdsl.ir import Operation

from xetl.analysis.lane_order import of_any_order
from xetl.dialects.parser import parse_module

LANES = 16

ROWS = {
    "computed element by element": (
        """%w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %s = arith.mulf %w, %c : vector<16xf32>
           %r = arith.truncf %s : vector<16xf32> to vector<16xbf16>""",
        {"w", "s"},
    ),
    "compared and chosen": (
        """%w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %m = arith.cmpf ogt, %w, %c : vector<16xf32>
           %s = arith.select %m, %w, %c : vector<16xi1>, vector<16xf32>
           %r = arith.truncf %s : vector<16xf32> to vector<16xbf16>""",
        {"w", "m", "s"},
    ),
    "summed": (
        """%w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %r = vector.reduction <add>, %w : vector<16xf32> into f32""",
        {"w"},
    ),
    "carried": (
        """%t = scf.for %k = %i to %n step %n iter_args(%s = %c) -> (vector<16xf32>) {
             %w = arith.extf %a : vector<16xbf16> to vector<16xf32>
             %u = arith.addf %s, %w : vector<16xf32>
             scf.yield %u : vector<16xf32>
           }
           %r = vector.reduction <add>, %t : vector<16xf32> into f32""",
        {"t", "s", "w", "u"},
    ),
    "chosen by place": (
        """%w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %m = vector.create_mask %n : vector<16xi1>
           %s = arith.select %m, %w, %c : vector<16xi1>, vector<16xf32>
           %r = vector.reduction <add>, %s : vector<16xf32> into f32""",
        {"w", "m", "s"},
    ),
    "chosen by the mask of a load": (
        """%m = vector.create_mask %n : vector<16xi1>
           %l = vector.maskedload %b[%i], %m, %a : memref<?xbf16>, vector<16xi1>,
             vector<16xbf16> into vector<16xbf16>
           %w = arith.extf %l : vector<16xbf16> to vector<16xf32>
           %s = arith.select %m, %w, %c : vector<16xi1>, vector<16xf32>
           %r = vector.reduction <add>, %s : vector<16xf32> into f32""",
        set[str](),
    ),
    "numbers of lanes": (
        """%w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %k = vector.step : vector<16xindex>
           %j = arith.index_cast %k : vector<16xindex> to vector<16xi32>
           %z = arith.constant dense<7> : vector<16xi32>
           %m = arith.cmpi slt, %j, %z : vector<16xi32>
           %s = arith.select %m, %w, %c : vector<16xi1>, vector<16xf32>
           %r = vector.reduction <add>, %s : vector<16xf32> into f32""",
        {"w", "k", "j", "m", "s"},
    ),
    "compared, as a mask": (
        """%w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %m = arith.cmpf ogt, %w, %c : vector<16xf32>
           %s = arith.select %m, %a, %a : vector<16xi1>, vector<16xbf16>""",
        set[str](),
    ),
    "beside f32 from memory": (
        """%w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %f = vector.load %q[%i] : memref<?xf32>, vector<16xf32>
           %s = arith.mulf %w, %f : vector<16xf32>
           %r = arith.truncf %s : vector<16xf32> to vector<16xbf16>""",
        set[str](),
    ),
    "one of two, which share a constant": (
        """%w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %s = arith.mulf %w, %c : vector<16xf32>
           vector.store %s, %q[%i] : memref<?xf32>, vector<16xf32>
           %u = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %v = arith.mulf %u, %c : vector<16xf32>
           %r = arith.truncf %v : vector<16xf32> to vector<16xbf16>""",
        {"u", "v"},
    ),
    "kept in scratch": (
        """%k = memref.alloca() : memref<1x64xf32>
           %w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %o = arith.constant 0 : index
           %j = arith.constant 48 : index
           vector.store %w, %k[%o, %j] : memref<1x64xf32>, vector<16xf32>
           %l = vector.load %k[%o, %j] : memref<1x64xf32>, vector<16xf32>
           %r = vector.reduction <add>, %l : vector<16xf32> into f32""",
        {"w", "l"},
    ),
    "kept in scratch, and read from anywhere": (
        """%k = memref.alloca() : memref<1x64xf32>
           %w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %o = arith.constant 0 : index
           vector.store %w, %k[%o, %o] : memref<1x64xf32>, vector<16xf32>
           %l = vector.load %k[%o, %i] : memref<1x64xf32>, vector<16xf32>
           %r = vector.reduction <add>, %l : vector<16xf32> into f32""",
        set[str](),
    ),
    "kept in scratch, and read in halves": (
        """%k = memref.alloca() : memref<1x64xf32>
           %w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %o = arith.constant 0 : index
           vector.store %w, %k[%o, %o] : memref<1x64xf32>, vector<16xf32>
           %l = vector.load %k[%o, %o] : memref<1x64xf32>, vector<8xf32>""",
        set[str](),
    ),
    "handed on by a choice of several": (
        """%w = arith.extf %a : vector<16xbf16> to vector<16xf32>
           %s = scf.index_switch %n -> vector<16xf32>
           case 1 { scf.yield %w : vector<16xf32> }
           default { scf.yield %c : vector<16xf32> }
           %r = arith.truncf %s : vector<16xf32> to vector<16xbf16>""",
        set[str](),
    ),
    "of other lengths": (
        """%h = arith.constant dense<1.0> : vector<8xbf16>
           %w = arith.extf %h : vector<8xbf16> to vector<8xf32>
           %r = arith.truncf %w : vector<8xf32> to vector<8xbf16>""",
        set[str](),
    ),
}


@pytest.mark.parametrize("what", ROWS)
def test_values_of_any_order(what: str) -> None:
    body, want = ROWS[what]
    given = "%a: vector<16xbf16>, %b: memref<?xbf16>, %q: memref<?xf32>, "
    module: Operation = parse_module(
        f"""func.func @f({given}%i: index, %n: index) {{
          %c = arith.constant dense<2.0> : vector<16xf32>
          {body}
          func.return
        }}"""
    )
    assert {value.name_hint for value in of_any_order(module, LANES)} == want
