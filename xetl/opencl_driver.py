"""The environment of the OpenCL driver for CPUs that pip installs.

The package intel-opencl-rt brings the driver. OpenCL finds it in a system-wide folder,
which takes root, or by the variable ``OCL_ICD_FILENAMES``. The variables are read when
a process asks for its devices for the first time, which a user's own
``dpctl.SyclQueue()`` may do long before a kernel is launched. So importing `xetl` sets
them.
"""

from __future__ import annotations

import os
import site
import sys

VARIABLE = "OCL_ICD_FILENAMES"
LIBRARY = "libintelocl.so"
VECTORS = "CL_CONFIG_CPU_O0_VECTORIZATION"
"""Unless it is ``True``, lanes of programs that are not optimised have no subgroups."""


def beside_python() -> str | None:
    """Return where pip puts the driver, or None if it is not there. Takes 20 us."""
    for folder in (sys.prefix, site.getuserbase()):
        path = os.path.join(folder, "lib", LIBRARY)
        if os.path.exists(path):
            return path
    return None


def make_known() -> None:
    """Set the variables, unless the user has set them or the driver has read them."""
    if not _is_loaded():
        os.environ.setdefault(VECTORS, "True")
    if not os.environ.get(VARIABLE):
        driver = beside_python()
        if driver is not None:
            os.environ[VARIABLE] = driver


def _is_loaded() -> bool:
    """Return whether the process has loaded the driver, through dpctl."""
    if "dpctl" not in sys.modules:
        return False
    try:
        with open("/proc/self/maps") as maps:
            return LIBRARY in maps.read()
    except OSError:
        return True
