"""Files by which CMake and pkg-config find a compiled kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xetl import __version__

_CMAKE = """\
# {name}: a kernel compiled by xetl {version}. Set {name}_DIR to this folder, then
#     find_package({name} REQUIRED)
#     target_link_libraries(program PRIVATE {name}::{name})
# With OpenMP found before it uses its threads, else one.
if(NOT TARGET {name}::{name})
  add_library({name}::{name} INTERFACE IMPORTED)
  target_include_directories({name}::{name} INTERFACE "${{CMAKE_CURRENT_LIST_DIR}}")
  target_link_libraries(
    {name}::{name} INTERFACE "${{CMAKE_CURRENT_LIST_DIR}}/{file}" {libraries})
  foreach(language C CXX)
    if(TARGET OpenMP::OpenMP_${{language}})
      target_link_libraries({name}::{name} INTERFACE OpenMP::OpenMP_${{language}})
    endif()
  endforeach()
endif()
"""

_PKG_CONFIG = """\
# cc main.c $(PKG_CONFIG_PATH=. pkg-config --cflags --libs {name}) -fopenmp
Name: {name}
Description: a kernel compiled by xetl
Version: {version}
Cflags: -I${{pcfiledir}}
Libs: ${{pcfiledir}}/{file} {flags}
"""


def build_files(output: Path, name: str, libraries: Sequence[str]) -> dict[Path, bytes]:
    """Make both, to be put beside ``output``, an object or a shared library.

    Args:
        output: the file with the code.
        name: of the kernel, and of the package that is found.
        libraries: that the code needs.
    """
    flags = [f"-l{each}" for each in libraries]
    if output.suffix == ".so":
        flags.append("-Wl,-rpath,${pcfiledir}")
    known = {
        "name": name,
        "version": __version__,
        "file": output.name,
        "libraries": " ".join(libraries),
        "flags": " ".join(flags),
    }
    return {
        output.with_name(f"{name}-config.cmake"): _CMAKE.format(**known).encode(),
        output.with_name(f"{name}.pc"): _PKG_CONFIG.format(**known).encode(),
    }
