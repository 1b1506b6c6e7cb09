"""The OpenCL driver for CPUs that pip installs, where OpenCL looks for drivers.

The package intel-opencl-rt brings the driver, but only a system-wide folder would make
it known, and that takes root.  Without root the variable ``OCL_ICD_FILENAMES`` does.
It is read when a process asks for its devices for the first time, which a user's own
``dpctl.SyclQueue()`` may do long before a kernel is launched: so importing `xetl` sets
it already.
"""

from __future__ import annotations

import os
import site
import sys

VARIABLE = "OCL_ICD_FILENAMES"
LIBRARY = "libintelocl.so"


def beside_python() -> str | None:
    """Where pip puts the driver; None: it is not there.  Takes 20 us."""
    for folder in (sys.prefix, site.getuserbase()):
        path = os.path.join(folder, "lib", LIBRARY)
        if os.path.exists(path):
            return path
    return None


def make_known() -> None:
    """Set the variable, unless the user named drivers himself."""
    if not os.environ.get(VARIABLE):
        driver = beside_python()
        if driver is not None:
            os.environ[VARIABLE] = driver
