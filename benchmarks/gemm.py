"""GEMM against the best of NumPy and torch, and against the peak of the machine.

The kernel is the one of the language page; results have the dtype of the operands, and
whatever a library packs or converts is inside the timing.  torch counts as the better
of torch.mm (MKL, told to use AVX-512 where a C compiler is at hand) and oneDNN.  NumPy
has no 16-bit GEMM.  The limit is that of f32 FMA; 16-bit units may be faster.
"""

from harness import compare

SIZES = (512, 1000, 1024, 2048)

if __name__ == "__main__":
    compare(
        "gemm",
        [{"dtype": t, "n": n} for t in ("f32", "bf16", "f16") for n in SIZES],
        unit="GFLOP/s",
        limit="fma",
    )
