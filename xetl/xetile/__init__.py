"""The facade users import: `from xetl import xetile`.

Operations and dtypes come from the ``__all__`` of the files that declare them. Each is
imported by ``*``, because mypy does not read an ``__all__`` made of other lists.
"""

from typing import TYPE_CHECKING

from xetl.imports import import_whole
from xetl.language import dtypes, ops
from xetl.language.dtypes import *
from xetl.language.maps import sg_map, wg_map, xe_map
from xetl.language.operation import constexpr, function
from xetl.language.ops.elementwise import *
from xetl.language.ops.moves import *
from xetl.language.ops.order import *
from xetl.language.ops.program import *
from xetl.language.ops.random import *
from xetl.language.ops.reductions import *
from xetl.language.ops.scaled import *
from xetl.language.ops.scans import *
from xetl.language.ops.tiles import *
from xetl.language.ops.vectors import *
from xetl.language.values import Array, Tile, Vector

if TYPE_CHECKING:
    from xetl.runtime.kernel import kernel
else:  # with `__getattr__`, a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Load the decorator on first use: the runtime imports names of this facade."""
        if name == "kernel":
            return import_whole("xetl.runtime.kernel").kernel
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Array", "Tile", "Vector", "constexpr", "function", "kernel", "sg_map"]
__all__ += ["wg_map", "xe_map"]
__all__ += dtypes.__all__
__all__ += ops.__all__
# `from xetl.xetile import *` does not hide Python's functions of these names.
__all__.remove("abs")
__all__.remove("all")
__all__.remove("any")
__all__.remove("max")
__all__.remove("min")
__all__.remove("round")
__all__.remove("sum")
