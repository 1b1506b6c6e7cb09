"""Fetch Intel's offline compiler: ``python -m xetl_xegpu.offline.setup [FOLDER]``.

The packages of Debian's unstable suite are downloaded by apt, which checks their
signatures, from the mirror this machine uses already.  They are unpacked into a folder
of ours and started with their own libc: the system is not touched, no root is needed.
The packages stay in the folder: as the suite moves on, what was fetched once is used
again.  About 35 MB.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from xetl.errors import LaunchError, XetlError
from xetl_xegpu.offline.ocloc import default_folder, run

PACKAGES = (
    *("intel-ocloc", "libigc2", "spirv-tools"),
    *("libc6", "libstdc++6", "libgcc-s1", "zlib1g", "libzstd1"),
)
"""The compiler, the validator, and the libraries they are linked with."""

TOOLS = ("ocloc", "spirv-as", "spirv-val", "spirv-dis")

_SUITE = "sid"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_LIBRARIES = Path("usr/lib/x86_64-linux-gnu")
_LOADER = "ld-linux-x86-64.so.2"

# The starter finds its folder when it runs, so that the folder may be moved.
_STARTER = """#!/bin/sh
root="$(dirname "$(readlink -f "$0")")/root"
lib="$root/{libraries}"
exec "$lib/{loader}" --library-path "$lib" "$root/{program}" "$@"
"""


def set_up(folder: Path) -> Path:
    """Install the tools in ``folder``. Return the path of the compiler.

    Raises:
        LaunchError: this machine has no apt of Debian, or the download failed.
    """
    packages = folder / "packages"
    if not all(any(packages.glob(f"{name}_*.deb")) for name in PACKAGES):
        _check_machine()
        _download(packages, folder / "apt")
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    for package in sorted(packages.glob("*.deb")):
        _run(["dpkg-deb", "-x", package, root], folder)
    # The compiler opens its disassembler by the name without a version.
    libraries = root / _LIBRARIES
    found = sorted(libraries.glob("libiga64.so.2*"))
    name = libraries / "libiga64.so"
    if found and not name.exists():
        name.symlink_to(found[0].name)
    for tool in TOOLS:
        _write_starter(folder, tool)
    _run([folder / "ocloc", "--version"], folder)
    return folder / "ocloc"


def _check_machine() -> None:
    missing = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
    if platform.machine() != "x86_64":
        raise _impossible(f"it exists for x86-64 only, this is {platform.machine()}")
    if missing:
        raise _impossible(f"this system has no {' and no '.join(missing)}")
    if not _KEYS.exists():
        raise _impossible(f"this system lacks the keys of Debian, {_KEYS}")


def _impossible(reason: str) -> LaunchError:
    return LaunchError(
        f"Intel's offline compiler cannot be set up here: {reason}",
        code="X0842",
        help="install `ocloc` in another way (your distribution, Intel's compute "
        "runtime) and set XETL_OCLOC to it; kernels run without it",
    )


def _mirror() -> str:
    """Return the address from which this machine gets packages of Debian."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    asked += ["Created-By: Packages"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    mirrors = [line.rstrip("/") for line in found.splitlines()]
    chosen = [mirror for mirror in mirrors if mirror.endswith("/debian")]
    if not chosen:
        raise _impossible("apt knows no mirror of Debian")
    return chosen[0]


def _download(packages: Path, state: Path) -> None:
    """Fetch the packages with separate lists and state. Remove all if it fails."""
    shutil.rmtree(packages, ignore_errors=True)
    packages.mkdir(parents=True)
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    source = f"deb [signed-by={_KEYS} arch=amd64] {_mirror()} {_SUITE} main\n"
    (state / "sources.list").write_text(source, "utf-8")
    options = {
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": state,
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    try:
        _run([*apt, "update"], packages)
        _run([*apt, "download", *PACKAGES], packages)
    except LaunchError:
        shutil.rmtree(packages)
        raise
    finally:
        shutil.rmtree(state)


def _write_starter(folder: Path, tool: str) -> None:
    """Write a script that runs a tool with the loader and libraries of the folder."""
    found = sorted((folder / "root" / "usr" / "bin").glob(f"{tool}*"))
    if not found:
        raise _impossible(f"the packages have no `{tool}`")
    text = _STARTER.format(
        libraries=_LIBRARIES, loader=_LOADER, program=f"usr/bin/{found[0].name}"
    )
    starter = folder / tool
    starter.write_text(text, "utf-8")
    starter.chmod(0o755)


def _run(command: Sequence[str | Path], folder: Path) -> None:
    """Run a command in a folder; show its output only if it fails."""
    done = run(command, folder, is_compiler=False)
    if done.returncode:
        said = done.stdout.strip().splitlines()[-3:]
        what = f"`{os.path.basename(command[0])}` failed with {done.returncode}"
        raise _impossible(": ".join([what, *said]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m xetl_xegpu.offline.setup", description=__doc__
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, help="where to put it; the cache if absent"
    )
    given: Path | None = parser.parse_args(arguments).folder
    folder = (given or default_folder()).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        compiler = set_up(folder)
    except XetlError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{compiler} works\n")
    if given is not None:
        sys.stdout.write(f"set XETL_OCLOC={compiler} to use it\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
