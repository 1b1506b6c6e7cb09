"""Functions are operators of torch from the start, whichever test comes first."""

from contextlib import suppress

with suppress(ImportError):
    from xetl.ops.calling import torch_library

    torch_library.register()
