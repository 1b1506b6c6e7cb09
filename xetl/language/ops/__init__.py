"""Every operation of the language; a name is declared in the file of its group."""

from xetl.language.ops import (
    elementwise,
    moves,
    order,
    program,
    random,
    reductions,
    scaled,
    scans,
    tiles,
    vectors,
)
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

__all__: list[str] = []
__all__ += elementwise.__all__
__all__ += moves.__all__
__all__ += order.__all__
__all__ += program.__all__
__all__ += random.__all__
__all__ += reductions.__all__
__all__ += scaled.__all__
__all__ += scans.__all__
__all__ += tiles.__all__
__all__ += vectors.__all__
