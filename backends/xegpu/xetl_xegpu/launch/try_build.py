"""A process that builds a program as a launch would, and that a compiler may crash.

Its arguments are the device and the options of the build. It reads the program from
stdin, and writes to stdout how far it came. It imports only dpctl.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from typing import Any

import dpctl
import dpctl.program as _program

_dpctl: Any = dpctl
program: Any = _program

BEGUN, ENDED = "begun", "ended"


def _say(word: str) -> None:
    sys.stdout.write(word)
    sys.stdout.flush()


if __name__ == "__main__":
    name, options = sys.argv[1:]
    given = sys.stdin.buffer.read()
    queue = _dpctl.SyclQueue(name)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _say(BEGUN)
    # An error is not a crash: the launch gets the same error.
    with suppress(program.SyclProgramCompilationError):
        program.create_program_from_spirv(queue, given, options)
    _say(ENDED)
    os._exit(0)  # without the exit handlers of drivers
