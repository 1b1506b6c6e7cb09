"""The same code before and after a change of the compiler.

    python -m tests.same_code --write before
    python -m tests.same_code --against before
    python -m tests.same_code --against before --quick --every 20
    python -m tests.same_code --show --quick --only sg_gemm_f32 --targets avx2

The first writes a digest of each kernel of the corpus after each pass and of its LLVM
IR, for each target; the second says which first differ, and exits with 1. A pass that
changes nothing may be in one of them only. The third takes one kernel of 20, which are
minutes where all are an hour. What the last prints, of two checkouts, is for `diff`. An
error of the compiler is a result too.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from tests.same_code.corpus import Entry, corpus
from xetl.backend import find_backend
from xetl.errors import XetlError
from xetl.pipeline import lower

TARGETS = {
    "avx2": "cpu",
    "avx512": "cpu",
    "amx": "cpu",
    "pvc": "xegpu",
    "bmg": "xegpu",
    "opencl": "xegpu",
    "interpreter": "reference",
}
Stages = dict[str, str]


def stages(entry: Entry, target: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each stage, and of the LLVM IR."""
    backend = find_backend(TARGETS[target])
    try:
        module = entry.build(backend, target)
        for step in lower(module, backend, target):
            yield step.name, str(step.module)
        if "llvm" in backend.stages:
            yield "llvm", backend.text(module, entry.signature, target, "llvm")
    except XetlError as error:
        yield "error", str(error)


def digests(entries: list[Entry], targets: list[str]) -> Iterator[tuple[str, str]]:
    """What names a kernel on a target, and all its stages with their digests."""
    for entry in entries:
        for target in targets:
            found = [
                f"{name} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
                for name, text in stages(entry, target)
            ]
            yield f"{target}\t{entry.name}", "\t".join(found)


def changes(text: str) -> str:
    """The stages that changed something: a pass that did not may be new, or gone."""
    kept: list[str] = []
    for each in text.split("\t"):
        if not kept or each.split()[-1] != kept[-1].split()[-1]:
            kept.append(each)
    return "\t".join(kept)


def first_difference(one: str, other: str) -> str:
    """The name of the first stage that is not the same."""
    pairs = zip(one.split("\t"), other.split("\t"), strict=False)
    return next((new for old, new in pairs if old != new), "number of stages")


def show(entries: list[Entry], targets: list[str]) -> None:
    for entry in entries:
        for target in targets:
            for name, text in stages(entry, target):
                print(f"// {target} {entry.name} after {name}\n{text}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.same_code")
    parser.add_argument("--write", type=Path, help="a new file for the digests")
    parser.add_argument("--against", type=Path, help="a file that was written before")
    parser.add_argument("--show", action="store_true", help="print all stages")
    parser.add_argument("--only", default="", help="of the names that match this")
    parser.add_argument("--quick", action="store_true", help="a part of the corpus")
    parser.add_argument("--every", type=int, default=1, help="one kernel of so many")
    parser.add_argument("--targets", default=",".join(TARGETS))
    given = parser.parse_args(arguments)
    targets = given.targets.split(",")
    entries = corpus(quick=given.quick)
    entries = [each for each in entries if re.search(given.only, each.name)]
    entries = entries[:: given.every]
    if given.show:
        show(entries, targets)
        return 0
    start = process_time()
    found = dict(digests(entries, targets))
    print(f"{len(found)} lowered in {process_time() - start:.0f} s of CPU")
    if given.write:
        lines = [f"{name}\t{text}\n" for name, text in found.items()]
        given.write.write_text("".join(lines), "utf-8")
    names = {each.name for each in entries} if given.every > 1 else None
    return compare(read(given, names), found) if given.against else 0


def read(given: argparse.Namespace, names: set[str] | None) -> dict[str, str]:
    """The digests of a file, of the kernels and targets that are asked for."""
    found: dict[str, str] = {}
    for line in given.against.read_text("utf-8").splitlines():
        target, name, text = line.split("\t", 2)
        is_asked = re.search(given.only, name) if names is None else name in names
        if target in given.targets.split(",") and is_asked:
            found[f"{target}\t{name}"] = text
    return found


def compare(before: dict[str, str], found: dict[str, str]) -> int:
    """Print what differs; whether anything does."""
    gone = before.keys() ^ found.keys()
    for name in sorted(gone):
        print(f"only {'before' if name in before else 'now'}: {name}")
    both = before.keys() & found.keys()
    pairs = {name: (changes(before[name]), changes(found[name])) for name in both}
    changed = [name for name, (old, new) in pairs.items() if old != new]
    for name in sorted(changed):
        print(f"{first_difference(*pairs[name])}: {name}")
    print(f"{len(changed)} differ, {len(gone)} are not in both")
    return int(bool(changed or gone))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
