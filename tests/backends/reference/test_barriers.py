# ruff: noqa: E501 - a line of IR is a line
"""Barriers: who waits for whom, what they order, and what is said when they cannot."""

import numpy as np
import pytest

from tests.run_module import run_module
from xetl import xetile
from xetl.dialects.text import read_module
from xetl.errors import CheckError
from xetl.xetile import f32

CHECKS = ("race", "uninit")


def kernel(body, subgroups=3, arguments="%out: memref<?xindex>"):
    """A kernel at subgroup level; %c0 to %c7 are numbers, %me is the subgroup."""
    constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in range(8))
    return f"""gpu.module @m {{ gpu.func @k({arguments}) kernel attributes {{
        xetile.level = "subgroup", xetile.subgroups = array<i64: 1, {subgroups}>}} {{
    {constants}
    %me = gpu.subgroup_id : index
    {body}
    gpu.return
    }} }}"""


def line_of(text, part):
    """The line, from 1, of the only line of a text that has a part in it."""
    (found,) = [n for n, line in enumerate(text.splitlines(), 1) if part in line]
    return found


def run(text, *arrays, grid=(1,), checks=CHECKS):
    run_module(read_module(text), grid, arrays, checks=checks)


def finding(text, *arrays, **options):
    with pytest.raises(CheckError) as caught:
        run(text, *arrays, **options)
    return caught.value


# All subgroups ----------------------------------------------------------------------


def test_a_barrier_that_some_do_not_reach():
    text = kernel("""
    %first = arith.cmpi eq, %me, %c0 : index
    scf.if %first {
      gpu.barrier
    }""")
    error = finding(text, np.zeros(3, np.int64), grid=(2,))
    assert error.code == "X0825"
    assert error.message == "not all subgroups of a program reach this barrier"
    assert error.line == line_of(text, "gpu.barrier")
    assert error.label == "subgroup 0 waits here"
    assert error.notes == ("in program (0, 0, 0)", "subgroups 1-2 have ended")
    assert error.programs == ((0, 0, 0),)


def test_two_barriers_are_not_one():
    text = kernel(
        """
    %odd = arith.remui %me, %c2 : index
    %is_odd = arith.cmpi eq, %odd, %c1 : index
    scf.if %is_odd {
      gpu.barrier
    } else {
      gpu.barrier {other}
    }""",
        subgroups=5,
    )
    error = finding(text, np.zeros(5, np.int64), checks=())
    assert (error.code, error.line) == ("X0825", line_of(text, "{other}"))
    assert error.label == "subgroups 0, 2, 4 wait here"
    assert error.notes[1] == f"subgroups 1, 3 wait at line {error.line - 2}"


def test_loops_of_different_lengths():
    text = kernel("""
    %last = arith.addi %me, %c2 : index
    scf.for %i = %c0 to %last step %c1 {
      gpu.barrier
    }""")
    error = finding(text, np.zeros(3, np.int64))
    assert error.label == "subgroups 1-2 wait here"
    assert error.notes[1] == "subgroup 0 has ended"
    run(text.replace("addi %me", "addi %c1"), np.zeros(3, np.int64))


@xetile.kernel(subgroups=[2, 2])
def all_but_the_first(OUT):
    if OUT[0, 0] == 0.0:  # the same for all, were it not for the store below
        xetile.barrier()
    row = xetile.init_tile(OUT, [xetile.subgroup_id(), 0], (1, 8))
    xetile.store_tile(xetile.zeros((1, 8), f32), row)


def test_the_line_is_the_user_s():
    with pytest.raises(CheckError) as caught:
        all_but_the_first.interpret(np.ones((4, 8), "f4"), grid=1, check="oob")
    assert caught.value.source_line.strip() == "xetile.barrier()"


def test_an_error_goes_before_a_barrier():
    """The others wait for ever, but that is not what went wrong."""
    text = kernel("""
    %ok = arith.cmpi ne, %me, %c1 : index
    xetile.assert %ok, "me"()
    gpu.barrier""")
    with pytest.raises(Exception, match="assertion failed: me"):
        run(text, np.zeros(3, np.int64))


# Named barriers ---------------------------------------------------------------------

NAMED = """
    %id = arith.constant ID : i8
    %count = arith.constant COUNT : i8
    xegpu.alloc_nbarrier 2
    xegpu.compile_hint
    %bar = xegpu.init_nbarrier %id, %count : i8, i8 -> !xegpu.nbarrier
    %first = arith.cmpi eq, %me, %c0 : index
    scf.if %first {
      xegpu.nbarrier_wait %bar : !xegpu.nbarrier
      %v = memref.load %out[%c1] : memref<?xindex>
      memref.store %v, %out[%c0] : memref<?xindex>
    } else {
      memref.store %c7, %out[%me] : memref<?xindex>
      xegpu.nbarrier_arrive %bar : !xegpu.nbarrier
    }"""


def named(count=2, number=1, body=NAMED, **options):
    body = body.replace("COUNT", str(count)).replace("ID", str(number))
    return kernel(body, **options)


def test_named_barriers():
    out = np.zeros(3, np.int64)
    run(named(), out, grid=(1,))
    assert out.tolist() == [7, 7, 7]


def test_too_few_arrive():
    text = named(count=3)
    error = finding(text, np.zeros(3, np.int64))
    assert error.code == "X0826"
    assert error.line == line_of(text, "nbarrier_wait")
    assert error.label == "subgroup 0 waits here"
    assert error.notes[1] == "subgroups 1-2 have ended"


def test_some_wait_at_a_named_barrier_and_some_at_one_of_all():
    text = named(count=3, body=NAMED + "\ngpu.barrier")
    error = finding(text, np.zeros(3, np.int64))
    assert (error.code, error.line) == ("X0825", line_of(text, "gpu.barrier"))
    assert (
        error.notes[1] == f"subgroup 0 waits at line {line_of(text, 'nbarrier_wait')}"
    )


@pytest.mark.parametrize("number", [-1, 2, 40])
def test_the_number_of_a_named_barrier(number):
    error = finding(named(number=number), np.zeros(3, np.int64))
    assert error.code == "X0826"
    assert error.message == f"there is no named barrier {number}: they are 0 to 1"


def test_there_are_32_named_barriers():
    without = NAMED.replace("xegpu.alloc_nbarrier 2", "")
    run(named(number=31, body=without), np.zeros(3, np.int64))
    error = finding(named(number=32, body=without), np.zeros(3, np.int64))
    assert error.message.endswith("they are 0 to 31")


@pytest.mark.parametrize("count", [0, 4])
def test_participants_are_subgroups_of_the_program(count):
    error = finding(named(count=count), np.zeros(3, np.int64))
    assert (
        error.message == f"a named barrier for {count} subgroups, but a program has 3"
    )


def test_a_race_beside_a_named_barrier():
    """Subgroup 0 waits for one arrival only: that of subgroup 1, not that of 2."""
    body = NAMED.replace("%out[%c1]", "%out[%c2]")
    text = named(count=1, body=body)
    error = finding(text, np.full(3, -1, np.int64))
    assert error.code == "X0823"
    assert error.message == (
        "`argument 0[2]` is read by subgroup 0 of program (0, 0, 0), and was written by"
        " subgroup 2 of program (0, 0, 0)"
    )
    # Two rounds of one: the second one follows what subgroup 2 did.
    wait = "xegpu.nbarrier_wait %bar : !xegpu.nbarrier"
    run(
        named(count=1, body=body.replace(wait, f"{wait}\n{wait}")),
        np.zeros(3, np.int64),
    )


def test_what_comes_after_an_arrival_is_not_ordered():
    store = "memref.store %c7, %out[%me] : memref<?xindex>"
    arrive = "xegpu.nbarrier_arrive %bar : !xegpu.nbarrier"
    body = NAMED.replace(store, "").replace(arrive, f"{arrive}\n{store}")
    assert finding(named(body=body), np.zeros(3, np.int64)).code == "X0823"


def test_order_goes_from_one_to_the_next():
    """0 tells 1, 1 tells 2: so 2 sees what 0 did."""
    text = kernel("""
    %id0 = arith.constant 0 : i8
    %id1 = arith.constant 1 : i8
    %one = arith.constant 1 : i8
    %a = xegpu.init_nbarrier %id0, %one : i8, i8 -> !xegpu.nbarrier
    %b = xegpu.init_nbarrier %id1, %one : i8, i8 -> !xegpu.nbarrier
    %is0 = arith.cmpi eq, %me, %c0 : index
    %is1 = arith.cmpi eq, %me, %c1 : index
    %is2 = arith.cmpi eq, %me, %c2 : index
    scf.if %is0 {
      memref.store %c7, %out[%c0] : memref<?xindex>
      xegpu.nbarrier_arrive %a : !xegpu.nbarrier
    }
    scf.if %is1 {
      xegpu.nbarrier_wait %a : !xegpu.nbarrier
      xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    }
    scf.if %is2 {
      xegpu.nbarrier_wait %b : !xegpu.nbarrier
      %v = memref.load %out[%c0] : memref<?xindex>
      memref.store %v, %out[%c2] : memref<?xindex>
    }""")
    out = np.zeros(3, np.int64)
    run(text, out)
    assert out.tolist() == [7, 0, 7]
    silent = text.replace("xegpu.nbarrier_wait %a : !xegpu.nbarrier", "")
    assert finding(silent, np.zeros(3, np.int64)).code == "X0823"


# Memory of bytes --------------------------------------------------------------------

BYTES = """
    %bytes = memref.alloc() : memref<64xi8, 3>
    %wide = memref.view %bytes[%c0][] : memref<64xi8, 3> to memref<8xindex, 3>
    %back = memref.view %bytes[SHIFT][] : memref<64xi8, 3> to memref<4xindex, 3>
    memref.store %me, %wide[%me] : memref<8xindex, 3>
    BARRIER
    %next = arith.addi %me, %c1 : index
    %other = arith.remsi %next, %c3 : index
    %v = memref.load %back[%other] : memref<4xindex, 3>
    memref.store %v, %out[%me] : memref<?xindex>"""


def in_bytes(shift="%c0", barrier="gpu.barrier"):
    return kernel(BYTES.replace("SHIFT", shift).replace("BARRIER", barrier))


def test_views_of_bytes():
    out = np.zeros(3, np.int64)
    run(in_bytes(), out)
    assert out.tolist() == [1, 2, 0]


def test_a_race_through_views_of_bytes():
    assert finding(in_bytes(barrier=""), np.zeros(3, np.int64)).code == "X0822"
    error = finding(in_bytes(barrier=""), np.zeros(3, np.int64), checks=("race",))
    assert error.code == "X0823"
    assert error.index == (8,)


def test_views_of_bytes_that_are_not_written():
    """From byte 7 on, 24 bytes of three numbers: the last 7 of them hold nothing."""
    error = finding(in_bytes("%c7"), np.zeros(3, np.int64))
    assert (error.code, error.index) == ("X0822", (24,))


def test_memory_in_the_head_of_a_function_is_watched():
    text = """gpu.module @m { gpu.func @k(%out: memref<?xindex>) workgroup(%w: memref<8xindex, 3>)
        kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
      %me = gpu.subgroup_id : index
      %v = memref.load %w[%me] : memref<8xindex, 3>
      memref.store %v, %out[%me] : memref<?xindex>
      gpu.return
    } }"""
    assert finding(text, np.zeros(4, np.int64)).code == "X0822"


# Operations of texts ----------------------------------------------------------------

ROWS = """
    %slm = memref.alloc() : memref<4x8xindex, 3>
    %one = arith.constant dense<1> : vector<8xindex>
    %mask = arith.constant dense<[true, true, true, true, true, true, true, false]> : vector<8xi1>
    STORE
    BARRIER
    LOAD
    vector.store %v, %out[%c0] : memref<?xindex>, vector<8xindex>"""
STORES = (
    "vector.store %one, %slm[%me, %c0] : memref<4x8xindex, 3>, vector<8xindex>",
    "vector.maskedstore %slm[%me, %c0], %mask, %one : memref<4x8xindex, 3>, vector<8xi1>, vector<8xindex>",
)
LOADS = (
    "%v = vector.load %slm[%c1, %c0] : memref<4x8xindex, 3>, vector<8xindex>",
    "%v = vector.maskedload %slm[%c1, %c0], %mask, %one : memref<4x8xindex, 3>, vector<8xi1>, vector<8xindex> into vector<8xindex>",
)


def rows(store, load, barrier):
    body = ROWS.replace("STORE", store).replace("LOAD", load)
    return kernel(body.replace("BARRIER", barrier), subgroups=2)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("store", STORES)
def test_vectors_in_shared_memory(store, load):
    error = finding(rows(store, load, ""), np.zeros(8, np.int64), checks=("race",))
    assert (error.code, error.index) == ("X0823", (1, 0))
    # All store the same to `out`, which is a race as well.
    error = finding(
        rows(store, load, "gpu.barrier"), np.zeros(8, np.int64), checks=("race",)
    )
    assert (error.array, error.index) == ("argument 0", (0,))


def test_what_a_mask_leaves_out_is_not_written():
    text = rows(STORES[1], LOADS[0], "gpu.barrier")
    assert finding(text, np.zeros(8, np.int64)).index == (1, 7)
    error = finding(rows(STORES[1], LOADS[1], "gpu.barrier"), np.zeros(8, np.int64))
    assert error.code == "X0823"  # only that of `out`


def test_copies_are_seen():
    body = """
    %slm = memref.alloc() : memref<8xindex, 3>
    %from = memref.subview %out[0] [4] [1] : memref<?xindex> to memref<4xindex, strided<[1]>>
    %to = memref.subview %slm[2] [4] [1] : memref<8xindex, 3> to memref<4xindex, strided<[1], offset: 2>, 3>
    memref.copy %from, %to : memref<4xindex, strided<[1]>> to memref<4xindex, strided<[1], offset: 2>, 3>"""
    error = finding(kernel(body), np.zeros(8, np.int64))
    assert error.code == "X0823"
    assert "element (2,) of the shared memory" in error.message
    run(kernel(body, subgroups=1), np.zeros(8, np.int64))
