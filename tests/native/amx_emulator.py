"""The AMX emulator from Python: build it, install it, ask what ran.

``emulator()`` gives one `Emulator` a process, or a reason why there is none.  What it
counts is code of `amx_traps`, on every processor.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
KINDS = (
    *("ldtilecfg", "sttilecfg", "tilerelease"),
    *("tilezero", "tileloadd", "tileloaddt1", "tilestored"),
    *("tdpbf16ps", "tdpfp16ps", "tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"),
)


class Emulator:
    """The loaded library; see tests/native/amx/amx.h."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        for name in ("amx_count", "amx_traps", "amx_errors", "amx_slow_loads"):
            getattr(self._library, name).restype = ctypes.c_uint64
        self._library.amx_first_error.restype = ctypes.c_char_p

    @contextmanager
    def counting(self) -> Iterator[Emulator]:
        """Emulate inside the block, with all counts at zero when it begins."""
        self._library.amx_reset()
        if self._library.amx_install():
            raise OSError("SIGILL cannot be taken")
        try:
            yield self
        finally:
            self._library.amx_uninstall()

    def threads(self) -> list[Counter[str]]:
        """What each thread ran since `counting` began; idle ones are left out."""
        count = self._library.amx_count
        found = [
            Counter({kind: count(thread, n) for n, kind in enumerate(KINDS)})
            for thread in range(self._library.amx_threads())
        ]
        return [+counts for counts in found if counts.total()]

    def total(self) -> Counter[str]:
        """What all threads ran together."""
        return sum(self.threads(), Counter())

    def errors(self) -> list[str]:
        """The first thing in each thread that a processor would have refused."""
        library = self._library
        return [
            library.amx_first_error(i).decode()
            for i in range(library.amx_threads())
            if library.amx_errors(i)
        ]

    def slow_loads(self) -> int:
        """How many ``tileloaddt1`` had rows off lines, or an even number apart."""
        library = self._library
        return sum(library.amx_slow_loads(i) for i in range(library.amx_threads()))

    def configured_threads(self) -> int:
        """How many threads hold a tile configuration now."""
        library = self._library
        return sum(library.amx_is_configured(i) for i in range(library.amx_threads()))


@cache
def build() -> Path | str:
    """Build the library in a temporary folder; its path, or why there is none."""
    if shutil.which("cmake") is None:
        return "CMake was not found"
    folder = Path(tempfile.mkdtemp(prefix="xetl-amx-"))
    for step in (["-S", str(HERE), "-B", str(folder)], ["--build", str(folder)]):
        done = subprocess.run(["cmake", *step], capture_output=True, text=True)
        if done.returncode:
            return f"the AMX emulator was not built: {done.stderr.strip()[-200:]}"
    return folder / "libamx_emulator.so"


@cache
def emulator() -> Emulator | str:
    """The emulator, or why there is none: no compiler."""
    built = build()
    return built if isinstance(built, str) else Emulator(built)
