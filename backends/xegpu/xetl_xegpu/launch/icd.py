"""Where the OpenCL driver for CPUs is, when it does not stand where pip puts it.

`xetl.opencl_driver` has the usual place, and says what is done with it.
"""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

from xetl.opencl_driver import LIBRARY, VARIABLE, beside_python

PACKAGE = "intel-opencl-rt"


def set_up() -> Path | None:
    """Make the installed driver known, unless one is.

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
    found = beside_python()  # asking pip's records takes 10 ms
    return _recorded_driver() if found is None else Path(found)


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
