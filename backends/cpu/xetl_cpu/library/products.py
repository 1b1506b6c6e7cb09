"""Products by the ``xsmm_*`` functions of a library: ``python products.py PATH``.

Reads a list of `Product` as JSON from standard input, and writes C after each product,
or null if there is no kernel.  This file is also run as a script, so it imports only
the standard library.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_I64, _PTR = ctypes.c_int64, ctypes.c_void_p
DISPATCH_TYPE = ctypes.CFUNCTYPE(_I64, *[_I64] * 10)
INVOKE_TYPE = ctypes.CFUNCTYPE(None, _I64, _I64, *[_PTR, _I64] * 3, _I64)
CONFIGURE_TYPE = ctypes.CFUNCTYPE(None, _I64, _I64, _PTR, _I64)
_TILES = "xsmm_intel_amx_tile_config"
_BATCH = 2


@dataclass(frozen=True)
class Product:
    """Two matrices of each operand, multiplied and added to C.

    Attributes:
        name: the name in errors.
        numbers: the arguments of ``xsmm_brgemm_dispatch``.
        around: the arguments of the dispatches that configure tiles before and release
            them after; empty: there are none.
        a: elements in memory, in hexadecimal; so are ``b`` and ``c``.
    """

    name: str
    numbers: Sequence[int]
    around: Sequence[Sequence[int]]
    a: str
    b: str
    c: str


def addresses_of(library: ctypes.CDLL, names: Sequence[str]) -> dict[str, int]:
    """Return the addresses of those functions that a library has."""
    found = {name: getattr(library, name) for name in names if hasattr(library, name)}
    return {name: ctypes.cast(each, _PTR).value or 0 for name, each in found.items()}


def run(addresses: Mapping[str, int], products: Sequence[Product]) -> list[str | None]:
    """Return C after each product; None if the library has no kernel for it."""
    return [_run(addresses, product) for product in products]


def _run(addresses: Mapping[str, int], product: Product) -> str | None:
    kernel = DISPATCH_TYPE(addresses["xsmm_brgemm_dispatch"])(*product.numbers)
    dispatch = addresses.get(f"{_TILES}_dispatch", 0)
    around = [DISPATCH_TYPE(dispatch)(*each) for each in product.around]
    if not kernel or not all(around):
        return None
    data_type = product.numbers[0]
    state = ctypes.create_string_buffer(64)
    a, b, c = (_memory(each) for each in (product.a, product.b, product.c))
    places = [word for each in (a, b, c) for word in (ctypes.addressof(each), 0)]
    for configure in around[:1]:
        _configure(addresses, data_type, configure, state)
    INVOKE_TYPE(addresses["xsmm_brgemm_invoke"])(data_type, kernel, *places, _BATCH)
    for configure in around[1:]:
        _configure(addresses, data_type, configure, state)
    return c.raw.hex()


def _configure(
    addresses: Mapping[str, int],
    data_type: int,
    kernel: int,
    state: ctypes.Array[ctypes.c_char],
) -> None:
    invoke = CONFIGURE_TYPE(addresses[f"{_TILES}_invoke"])
    invoke(data_type, kernel, ctypes.cast(state, _PTR), 0)


def _memory(text: str) -> ctypes.Array[ctypes.c_char]:
    content = bytes.fromhex(text)
    return ctypes.create_string_buffer(content, len(content))


def _main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    names = ("xsmm_brgemm_dispatch", "xsmm_brgemm_invoke")
    names += (f"{_TILES}_dispatch", f"{_TILES}_invoke")
    addresses = addresses_of(library, names)
    products = [Product(**each) for each in json.load(sys.stdin)]
    json.dump(run(addresses, products), sys.stdout)


if __name__ == "__main__":
    _main()
