"""Modules that load whole, or not at all, whatever signals come meanwhile.

An exception of a signal handler, such as Ctrl-C, in the middle of xDSL's modules leaves
some of them loaded and others not: the next import then fails.
"""

from __future__ import annotations

import importlib
import sys
import threading
from types import ModuleType


def import_whole(name: str) -> ModuleType:
    """The module called ``name``, loaded by a thread that no handler interrupts.

    Handlers run in the main thread, which waits here; what they raise ends the waiting.
    The module is then loaded all the same, and the next call waits for it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if name in sys.modules or not is_main:
        return importlib.import_module(name)
    found: list[ModuleType | BaseException] = []

    def load() -> None:
        try:
            found.append(importlib.import_module(name))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=load, name=f"import {name}")
    thread.start()
    thread.join()
    (result,) = found
    if isinstance(result, BaseException):
        raise result
    return result
