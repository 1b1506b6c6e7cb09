"""Every builtin that emission can name is one for Intel's compiler: no call is left."""

from __future__ import annotations

import pytest

from tests.backends.xegpu.emit.block_kernels import (
    LOADS,
    PREFETCHES,
    STORES,
    load_kernel,
    prefetch_kernel,
    store_kernel,
)
from tests.backends.xegpu.emit.elementwise import Form, elementwise
from tests.backends.xegpu.emit.on_opencl import parsed
from tests.backends.xegpu.emit.product_kernels import PRODUCTS, ROWS, product_kernel
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from tests.backends.xegpu.spirv_tools import validate
from xetl_xegpu.emit.module import emit
from xetl_xegpu.offline.isa import IsaCounts, count
from xetl_xegpu.offline.ocloc import compile_spirv

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
TARGETS = ("pvc", "bmg")


def counted(texts: list[str], target: str) -> dict[str, IsaCounts]:
    """The instructions of each kernel; the module is valid."""
    spirv = emit(parsed("\n".join(texts)), target).spirv
    assert validate(spirv) is None
    made = compile_spirv(spirv, target)
    names = [text.split("@")[1].split("(")[0] for text in texts]
    found = {name: count(made.assembly[name]) for name in names}
    assert {name for name, each in found.items() if each.calls} == set()
    return found


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", list(LOADS))
def test_loads(mode: str, target: str):
    found = counted([load_kernel(shape) for shape in LOADS[mode]], target)
    assert {each.block_loads for each in found.values()} == {1}


@pytest.mark.parametrize("target", TARGETS)
def test_stores_and_prefetches(target: str):
    found = counted([store_kernel(shape) for shape in STORES], target)
    assert {each.block_stores for each in found.values()} == {1}
    found = counted([prefetch_kernel(PREFETCHES)], target)
    assert found["prefetches"].prefetches == len(PREFETCHES)


@pytest.mark.parametrize("target", TARGETS)
def test_products(target: str):
    texts = [product_kernel(*each, rows) for each in PRODUCTS for rows in ROWS]
    found = counted(texts, target)
    assert {each.dpas for each in found.values()} == {1}


FUNCTIONS = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf"),
    *("erfc", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "rsqrt", "sin"),
    *("sinh", "sqrt", "tan", "tanh", "floor", "ceil", "roundeven", "trunc", "absf"),
)


def forms_of(type_: str) -> list[Form]:
    """What a lane may do with floats, of which some become functions."""
    pair, one = (type_, type_), (type_,)
    forms: list[Form] = [(f"math.{name} %0 : {{0}}", one, type_) for name in FUNCTIONS]
    for name in ("powf", "atan2"):
        forms.append((f"math.{name} %0, %1 : {{0}}", pair, type_))
    for name in ("remf", "divf", "maximumf", "minnumf"):
        forms.append((f"arith.{name} %0, %1 : {{0}}", pair, type_))
    forms.append(('simt.reduce "maximumf" %0 : {0}', one, type_))
    forms.append(("simt.shuffle %0, %lane : {0}", one, type_))
    if type_ != "f64":
        forms.append(("arith.extf %0 : {0} to {r}", one, "f64"))
        forms.append(("arith.truncf %0 : {0} to {r}", ("f64",), type_))
    return forms


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type_", ["f32", "bf16", "f16", "f64"])
def test_functions(type_: str, target: str):
    forms = forms_of(type_)
    counted([elementwise(f"k{n}", form) for n, form in enumerate(forms)], target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type_", ["i8", "i16", "i32", "i64"])
def test_integers(type_: str, target: str):
    pair, one = (type_, type_), (type_,)
    names = ("divsi", "remui", "floordivsi", "ceildivui", "maxsi", "minui", "shrsi")
    forms: list[Form] = [(f"arith.{n} %0, %1 : {{0}}", pair, type_) for n in names]
    counting = ("absi", "ctpop", "ctlz", "cttz")
    forms += [(f"math.{name} %0 : {{0}}", one, type_) for name in counting]
    forms += [
        (f'simt.reduce "{kind}" %0 : {{0}}', one, type_) for kind in ("add", "or")
    ]
    for result in ("f16", "bf16", "f32", "f64"):
        forms.append(("arith.uitofp %0 : {0} to {r}", one, result))
        forms.append(("arith.fptosi %0 : {0} to {r}", (result,), type_))
    counted([elementwise(f"k{n}", form, 4) for n, form in enumerate(forms)], target)
