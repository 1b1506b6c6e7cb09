"""The OpenCL driver for CPUs that pip installs, where OpenCL looks for drivers.

The package intel-opencl-rt brings the driver, but only a system-wide folder would make
it known, and that takes root.  Without root the variable ``OCL_ICD_FILENAMES`` does; it
is read when a process asks for its devices for the first time.
"""

from __future__ import annotations

import os
import site
import sys
from importlib import metadata
from pathlib import Path

VARIABLE = "OCL_ICD_FILENAMES"
PACKAGE = "intel-opencl-rt"
LIBRARY = "libintelocl.so"


def set_up() -> Path | None:
    """Make the installed driver known, unless the user named drivers himself.

    Returns:
        The driver that was made known, or None.
    """
    if os.environ.get(VARIABLE):
        return None
    driver = installed_driver()
    if driver is not None:
        os.environ[VARIABLE] = str(driver)
    return driver


def installed_driver() -> Path | None:
    """Where pip put the driver; None: it is not installed."""
    folders = [sys.prefix, site.getuserbase()]
    for folder in folders:  # asking pip's records takes 10 ms
        path = Path(folder, "lib", LIBRARY)
        if path.exists():
            return path
    return _recorded_driver()


def _recorded_driver() -> Path | None:
    """As pip's records say: somewhere else on the path of modules."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(str(file.locate())).resolve()
        if file.name == LIBRARY and path.exists():
            return path
    return None
