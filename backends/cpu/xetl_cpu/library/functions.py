"""The names and types of the ``xsmm_*`` functions, and libraries that have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from xetl.dialects.xsmm import DATA_TYPES, DISPATCH, TILES, gemm_flags_in_calls
from xetl.records import record
from xetl_cpu.library.products import DISPATCH_TYPE

RECORDING = "recording"
"""Our own library, as `config.xsmm` names it."""


@record(frozen=True)
class Library:
    """Functions to call.

    Attributes:
        addresses: the addresses of its functions, by name.
        identity: differs between libraries whose kernels may differ.
        quietly: a context in which calls are not recorded, for calls of our own.
        is_sequential: whether kernels may call it from one thread only.
        path: the file; None: the functions are our own.
    """

    mode: str
    addresses: Mapping[str, int]
    identity: str
    quietly: Callable[[], AbstractContextManager[None]] = nullcontext
    is_sequential: bool = False
    path: Path | None = None

    @property
    def serves_tiles(self) -> bool:
        """Whether it can configure AMX separately from its kernels."""
        return all(name in self.addresses for name in TILES)

    def has_kernel(self, numbers: Sequence[int]) -> bool:
        """Whether a dispatch with these numbers (see `brgemm_numbers`) finds one."""
        return self.dispatch(numbers) != 0

    def dispatch(self, numbers: Sequence[int]) -> int:
        """Return the address of a kernel, or 0."""
        with self.quietly():
            return DISPATCH_TYPE(self.addresses[DISPATCH])(*numbers)


def brgemm_numbers(
    data_type: str, sizes: Sequence[int], flags: Sequence[str]
) -> list[int]:
    """Return the arguments of ``xsmm_brgemm_dispatch``."""
    return [DATA_TYPES[data_type], *sizes, gemm_flags_in_calls(flags)]
