"""Run by `test_torch_compile.py` in a process of its own: launches in a graph.

Arguments: what is imported first (``torch`` or ``xetl``), and dynamo's backend.
"""

import importlib
import sys

if sys.argv[1] == "torch":
    importlib.import_module("torch")

from xetl import ops, xetile


@xetile.kernel
def add1(X, Y):
    i = xetile.program_id(0) * 16
    x = xetile.load_tile(xetile.init_tile(X, [i], (16,)))
    xetile.store_tile(x + 1, xetile.init_tile(Y, [i], (16,)))


@xetile.kernel(grid=2)
def declared(X, Y):
    i = xetile.program_id(0) * 16
    x = xetile.load_tile(xetile.init_tile(X, [i], (16,)))
    xetile.store_tile(x + 2, xetile.init_tile(Y, [i], (16,)))


# After the kernels: they are to be declared before torch is there.
import torch


def launches(x, y):
    add1[2](x * 2, y)
    z = y * 3
    declared(X=z, Y=y)
    return y * 2


def functions(x):
    square = x.reshape(8, 4)
    product = ops.matmul(square.T * 2, square) + 1
    return ops.softmax(product) * 2, ops.layer_norm(product) + product


def main() -> None:
    x = torch.arange(32, dtype=torch.float32)
    compiled = [torch.compile(f, backend=sys.argv[2]) for f in (launches, functions)]
    for _ in range(3):
        assert torch.equal(compiled[0](x, torch.zeros(32)), ((x * 2 + 1) * 3 + 2) * 2)
        torch.testing.assert_close(compiled[1](x), functions(x))
    y = torch.zeros(32)
    plan = add1.bind(x, y, grid=2)

    def planned(x):
        x.add_(1)
        plan()
        return y * 2

    bound = torch.compile(planned, backend=sys.argv[2])
    for _ in range(3):
        assert torch.equal(bound(x), (x + 1) * 2)
    # What torch compiles is the functions here, cut where they launch: not xetl.
    sys.stdout.write(str(torch._dynamo.utils.counters["frames"]["total"]))


main()
