"""From a kernel and a signature in words to an `xetl.export.Export`; needs no device.

Nothing is taken from the cache or put there: what is kept is code for this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xetl.backend import find_backend
from xetl.errors import LaunchError
from xetl.export import Export
from xetl.language.signature import Signature
from xetl.pipeline import lowered
from xetl.runtime.executables import choose_target, compiler
from xetl.runtime.kernel import Kernel
from xetl.runtime.text_kernel import TextKernel


def export(
    kernel: Kernel | TextKernel,
    signature: str,
    constants: Mapping[str, Any],
    *,
    name: str,
    backend: str,
    target: str | None = None,
) -> tuple[Export, Signature, str]:
    """Compile ``kernel`` into files.

    Args:
        kernel: of Python or of a text, whose types are its signature.
        signature: as for `kernel.warmup`.
        constants: compile-time values by name.
        name: what the functions in the files are called after.
        backend: who compiles.
        target: the machine; by default the one launches use.

    Returns:
        The files, what they were compiled for, the target.

    Raises:
        LaunchError: the backend makes no files, or the arguments are wrong.
        CompileError: the kernel is wrong.
    """
    found = find_backend(backend)
    if not found.exports:
        raise LaunchError(
            f"backend `{backend}` makes no files that could be linked",
            code="X0844",
            help="name a target of another one, such as --target avx2",
        )
    machine = choose_target(found, target)
    if isinstance(kernel, TextKernel):
        module, wanted = kernel.for_any_arguments()
    else:
        wanted = kernel.signature_of(signature, constants)
        module = compiler().build(kernel.fn, wanted, found, machine)
    module = lowered(module, found, machine)
    return found.export(module, wanted, machine, name), wanted, machine
