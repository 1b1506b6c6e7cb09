"""VTune is told of kernels by the collector that it puts into a process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COLLECTOR = """
#include <stdio.h>
struct method {unsigned id; char *name; void *address; unsigned size, lines;
  void *table; unsigned class; char *class_file, *source;};
int Initialize(void) { return %d; }
int NotifyEvent(unsigned event, struct method *m) {
  fprintf(stderr, "%%u %%s %%d %%d %%u\\n", event, m->name, m->address != 0,
    m->size > 100, m->lines);
  return 1;
}
"""
RUN = """
import numpy as np
from xetl import xetile
@xetile.kernel
def twice(X):
    x = xetile.init_tile(X, [0], (8,))
    xetile.store_tile(2 * xetile.load_tile(x), x)
x = np.ones(8, np.float32)
twice[1](x)
print(x.sum())
"""


def run(tmp_path: Path, collector: Path) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "run.py"
    script.write_text(RUN)
    set_ = {"INTEL_JIT_PROFILER64": str(collector)}
    command = [sys.executable, str(script)]
    return subprocess.run(
        command, env=os.environ | set_, capture_output=True, text=True, check=True
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("listens", [1, 0])
def test_the_collector_gets_kernels(tmp_path: Path, listens: int) -> None:
    source, library = tmp_path / "collector.c", tmp_path / "collector.so"
    source.write_text(COLLECTOR % listens)
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    done = run(tmp_path, library)
    assert done.stdout == "16.0\n"
    told = [line for line in done.stderr.splitlines() if "xetl:twice:" in line]
    assert told == (["13 xetl:twice:host 1 1 0"] if listens else [])


def test_a_collector_that_is_not_there_is_left_alone(tmp_path: Path) -> None:
    done = run(tmp_path, tmp_path / "no.so")
    assert (done.stdout, done.stderr) == ("16.0\n", "")
