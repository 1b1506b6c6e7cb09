"""Memory of whole pages."""

import ctypes
import mmap

import pytest

from xetl_cpu.launch.workspace import Pages

HUGE = 2 << 20


@pytest.mark.parametrize("size", [1, 4096, HUGE - 1, HUGE, 3 * HUGE + 5])
def test_large_memory_starts_on_a_huge_page(size: int) -> None:
    pages = Pages(size)
    assert size <= pages.size < size + mmap.PAGESIZE
    assert pages.address % (HUGE if pages.size >= HUGE else mmap.PAGESIZE) == 0
    whole = (ctypes.c_char * pages.size).from_address(pages.address)
    assert whole[0] == whole[pages.size - 1] == b"\0"
    whole[pages.size - 1] = b"x"
    assert whole[pages.size - 1] == b"x"


def test_without_huge_pages_it_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(mmap.mmap):
        def madvise(self, *_: object) -> None:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(mmap, "mmap", Refusing)
    assert Pages(HUGE).size == HUGE
