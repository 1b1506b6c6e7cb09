"""Tests whether a library with ``xsmm_*`` functions computes some products correctly.

Such code may also crash, for example if ``LIBXSMM_TARGET`` names another processor. So
a library from a file is tested in a separate process (`xetl_cpu.library.products`, 30
ms). Only if tiles are emulated in this process, the test runs here.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from struct import pack

from xetl_cpu import targets
from xetl_cpu.library import products as xsmm_products
from xetl_cpu.library.products import Product
from xetl_cpu.library.serve import Library, brgemm_numbers

_SECONDS = 30
"""The time limit for a library: no product takes a millisecond."""

_SIZES = (2, 2, 2, 2, 2, 2, 4, 4)
"""2 x 2 x 2, contiguous."""

_A, _B = (1, 2, 3, 4, -1, 0, 2, 1), (5, 6, 7, 8, 1, -2, 0, 3)
"""Two products. With the initial values of C, a wrong flag or stride cannot give the
right result."""

_C = (10, 20, 30, 40)
_WANTED = pack("<4f", 28, 44, 75, 89).hex()

_PAIRS = (0, 2, 1, 3, 4, 6, 5, 7)
"""The order of the elements of B in pairs of k."""

_NO_RESET, _NO_SETUP = "no_reset_tileconfig", "no_setup_tileconfig"


def why_not_trusted(library: Library) -> str | None:
    """Return why a library must not be used (wrong results, a crash), or None."""
    products = list(_products(library.serves_tiles))
    if library.path is None or targets.tiles_are_emulated():
        with library.quietly():
            results = xsmm_products.run(library.addresses, products)
    else:
        answer = _asked_in_a_process(str(library.path), products)
        if isinstance(answer, str):
            return answer
        results = answer
    for product, result in zip(products, results):
        if result not in (None, _WANTED):  # None: there is no kernel; compiled inline
            return f"it computes wrong numbers in {product.name}"
    return None


def _products(with_tiles: bool) -> Iterator[Product]:
    yield _product("f32", [])
    yield _product("bf16_f32", ["vnni_b"])
    if with_tiles:
        own = ["vnni_b", _NO_RESET, _NO_SETUP]
        around = [["vnni_b", _NO_RESET], ["vnni_b", _NO_SETUP]]
        yield _product("bf16_f32", own, around)


def _product(
    data_type: str, flags: Sequence[str], around: Sequence[Sequence[str]] = ()
) -> Product:
    in_pairs = "vnni_b" in flags
    b = [_B[i] for i in _PAIRS] if in_pairs else _B
    return Product(
        f"{data_type} with tiles set up apart" if around else data_type,
        brgemm_numbers(data_type, _SIZES, flags),
        [brgemm_numbers(data_type, _SIZES, each) for each in around],
        _elements(_A, data_type),
        _elements(b, data_type),
        pack("<4f", *_C).hex(),
    )


def _elements(values: Sequence[int], data_type: str) -> str:
    """Encode small integers: their bf16 are the upper halves of their f32."""
    words = pack(f"<{len(values)}f", *values)
    if data_type == "bf16_f32":
        words = b"".join(words[at + 2 : at + 4] for at in range(0, len(words), 4))
    return words.hex()


def _asked_in_a_process(
    path: str, products: Sequence[Product]
) -> list[str | None] | str:
    """Return the results, or a description of the failure."""
    asked = json.dumps([asdict(product) for product in products])
    # -I: neither variables nor modules of the user change what runs.
    command = [sys.executable, "-I", "-S", str(xsmm_products.__file__), path]
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"it does not answer within {_SECONDS} s"
    except OSError as error:
        return f"it cannot be tried out: {error}"
    if done.returncode < 0:
        return f"it crashes ({signal.Signals(-done.returncode).name})"
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"it cannot be tried out: {last}"
    return json.loads(done.stdout)
