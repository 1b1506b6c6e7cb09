"""The passes to a device, on a GEMM with a transpose, a broadcast and a sum.

It is appendix 2.2 of the XeTile RFC: tiles of 256x256x32 among 32 subgroups, matrices
of 4096.  The text is parsed before the clock starts.  Time is that of the process, for
others on the machine not to count, and the least of several runs; the module is checked
after each pass, outside of its time.  The limit is that of the project: 0.4 s.
"""

import argparse
from pathlib import Path
from time import process_time

from harness import write_csv
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xetl.dialects.launch_form import launch_form
from xetl.dialects.text import functions_of, read_module
from xetl.transforms.device_pipeline import device_passes

KERNEL = Path(__file__).parents[1] / "tests" / "seeds" / "appendix_2_2.mlir"
LIMIT_MS = 400


def example() -> ModuleOp:
    """The kernel of the text as it is launched."""
    (function,) = functions_of(read_module(KERNEL.read_text("utf-8")))
    names = [argument.name_hint for argument in function.body.block.args]
    return launch_form(function, [], names, [-1] * len(names), (1, 1, 1))


def milliseconds(module: ModuleOp, device: str) -> list[tuple[str, float]]:
    """The time of each pass; the module is changed."""
    times = []
    for each in device_passes(device):
        start = process_time()
        each.apply(Context(), module)
        times.append((each.name, (process_time() - start) * 1e3))
        module.verify()
    return times


def main() -> None:
    """Print each pass with its share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--device", default="pvc")
    options = parser.parse_args()
    module = example()
    count = options.rounds
    rounds = [milliseconds(module.clone(), options.device) for _ in range(count)]
    rows = [
        {"pass": same[0][0], "ms": min(ms for _, ms in same)} for same in zip(*rounds)
    ]
    total = sum(row["ms"] for row in rows)
    for row in rows:
        print(f"{row['pass']:26} {row['ms']:7.2f} ms {row['ms'] / total:5.0%}")
    first = sum(ms for _, ms in rounds[0])
    print(f"{'total':26} {total:7.2f} ms, limit {LIMIT_MS} ms; first {first:.2f} ms")
    write_csv("bench_device_pipeline", rows)


if __name__ == "__main__":
    main()
