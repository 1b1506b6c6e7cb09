"""Builds a program as a launch would, in a process that its compiler may end.

Arguments are the device and options of the build; the program is read from stdin. What
is written to stdout says how far it came. It imports dpctl only.
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
    # An error is no end: the launch has it as well.
    with suppress(program.SyclProgramCompilationError):
        program.create_program_from_spirv(queue, given, options)
    _say(ENDED)
    os._exit(0)  # whatever drivers do at exit is no matter
