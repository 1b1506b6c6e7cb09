"""Report conflicts between the user's maps, for backends that ignore maps.

`propagate-wg-maps` runs on a copy of the module, for its remarks and warnings alone:
the kernel is written for hardware on which they cost something.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xetl.errors import InternalError, XetlError
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.cse import CSEPass
from xetl.transforms.diagnostics import remark
from xetl.transforms.normalize_tiles import NormalizeTilesPass
from xetl.transforms.propagate_wg_maps import PropagateWgMapsPass


def report_map_conflicts(module: ModuleOp) -> None:
    """Leave remarks about the maps of a module at stage ``xetile``; it is unchanged.

    What cannot be followed is a remark, too: it is no reason not to run the kernel.
    """
    copy, context = module.clone(), Context()
    passes = (NormalizeTilesPass, CanonicalizePass, CSEPass, PropagateWgMapsPass)
    try:
        for each in passes:
            each().apply(context, copy)
    except InternalError:
        raise
    except XetlError as error:
        remark(module, "maps", f"the maps could not be followed: {error}")
