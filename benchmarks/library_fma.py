"""The most that the machine can calculate: multiply and add, all in registers."""

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm
from harness import Job
from operands import flops

CHAINS = 24  # independent of each other, so that no multiply waits for one
LEAST = 1.25e9  # operations of a thread, about 5 ms


def gemm(dtype: str, shape: str) -> Job:
    """The rate on all threads: of f32 FMA, or of the dot products of bf16 pairs.

    Where there are none of these bf16 is multiplied as f32, as f16 is everywhere.
    A call has as many operations as the product of ``shape``: the clock goes up and
    down, and the best of many short calls would be one that no long call can reach.
    The calling thread works as well: to wake another takes 1 % of 5 ms.
    """
    threads = int(os.environ["OMP_NUM_THREADS"])
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    lanes = 16 if features.get("avx512f") else 8
    is_dot = dtype == "bf16" and bool(features.get("avx512bf16"))
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=2
    )
    module = llvm.parse_assembly(_loop(lanes, is_dot))
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    run = function(engine.get_function_address("peak"))
    results = [(ctypes.c_float * (lanes * CHAINS))() for _ in range(threads)]
    first, *others = map(ctypes.addressof, results)
    pool = ThreadPoolExecutor(threads)

    of_a_trip = (4 if is_dot else 2) * lanes * CHAINS
    trips = int(max(1e9 * flops(shape) / threads, LEAST)) // of_a_trip

    def call(_alive: object = (engine, results)) -> None:
        busy = [pool.submit(run, each, trips) for each in others]
        run(first, trips)
        for each in busy:
            each.result()

    return Job([call], 1e-9 * of_a_trip * trips * threads)


def _loop(lanes: int, is_dot: bool) -> str:
    """LLVM IR: ``trips`` times, multiply and add to CHAINS vectors, then store them."""
    total = f"<{lanes} x float>"
    if is_dot:
        factor = f"<{2 * lanes} x bfloat>"
        multiply = f"@llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
        call = f"call {total} {multiply}({total} %c{{0}}, {factor} %x, {factor} %x)"
    else:
        factor, multiply = total, f"@llvm.fma.v{lanes}f32"
        call = f"call {total} {multiply}({factor} %x, {factor} %x, {total} %c{{0}})"
    order = [total, factor, factor] if is_dot else [factor, factor, total]
    chains = range(CHAINS)
    phis = [
        f"%c{i} = phi {total} [ zeroinitializer, %entry ], [ %s{i}, %loop ]"
        for i in chains
    ]
    sums = [f"%s{i} = {call.format(i)}" for i in chains]
    stores = [
        f"%p{i} = getelementptr {total}, ptr %to, i64 {i}\n"
        f"store {total} %s{i}, ptr %p{i}, align 4"
        for i in chains
    ]
    # A factor that the compiler does not know: products of constants it would fold.
    lines = [
        f"declare {total} {multiply}({', '.join(order)})",
        "define void @peak(ptr %to, i64 %trips) {",
        "entry:",
        f"%x = load {factor}, ptr %to, align 4",
        "br label %loop",
        "loop:",
        "%trip = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *phis,
        *sums,
        "%next = add i64 %trip, 1",
        "%again = icmp slt i64 %next, %trips",
        "br i1 %again, label %loop, label %end",
        "end:",
        *stores,
        "ret void",
        "}",
    ]
    return "\n".join(lines)
