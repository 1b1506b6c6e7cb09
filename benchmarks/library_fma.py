"""The most that the machine can calculate: multiply and add, all in registers."""

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm
import llvmlite.ir as ll
from harness import Job

CHAINS = 24  # independent of each other, so that no multiply waits for one
TRIPS = 200_000


def gemm(dtype: str, n: int) -> Job:
    """The rate of f32 FMA on all threads, whatever the case is."""
    del dtype, n
    threads = int(os.environ["OMP_NUM_THREADS"])
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    lanes = 16 if features.get("avx512f") else 8
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_loop(lanes)), machine)
    engine.finalize_object()
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address("peak"))
    results = [(ctypes.c_float * (lanes * CHAINS))() for _ in range(threads)]
    pool = ThreadPoolExecutor(threads)

    def call(_alive: object = engine) -> None:
        list(pool.map(run, map(ctypes.addressof, results)))

    return Job([call], 2e-9 * lanes * CHAINS * TRIPS * threads)


def _loop(lanes: int) -> str:
    """TRIPS times: multiply and add CHAINS vectors; store them in the end."""
    vector, i64 = ll.VectorType(ll.FloatType(), lanes), ll.IntType(64)
    module = ll.Module()
    kind = ll.FunctionType(ll.VoidType(), [vector.as_pointer()])
    function = ll.Function(module, kind, "peak")
    entry, body, end = (function.append_basic_block() for _ in range(3))
    ll.IRBuilder(entry).branch(body)
    b = ll.IRBuilder(body)
    trip = b.phi(i64)
    chains = [b.phi(vector) for _ in range(CHAINS)]
    half = ll.Constant(vector, [0.5] * lanes)
    kind = ll.FunctionType(vector, [vector] * 3)
    fma = ll.Function(module, kind, f"llvm.fma.v{lanes}f32")
    sums = [b.call(fma, [chain, half, half]) for chain in chains]
    following = b.add(trip, i64(1))
    trip.add_incoming(i64(0), entry)
    trip.add_incoming(following, body)
    for number, (chain, total) in enumerate(zip(chains, sums)):
        chain.add_incoming(ll.Constant(vector, [float(number)] * lanes), entry)
        chain.add_incoming(total, body)
    b.cbranch(b.icmp_signed("<", following, i64(TRIPS)), body, end)
    b = ll.IRBuilder(end)
    for number, total in enumerate(sums):
        b.store(total, b.gep(function.args[0], [i64(number)]), align=4)
    b.ret_void()
    return str(module)
