"""Packages live in three trees; native parts are built where that is possible.

The native parts (backends/*/native) are optional. What became of them is written to
``xetl_cpu/_native/STATUS``; ``python -m xetl_cpu.native`` prints it.
"""

import shutil
import subprocess
import sysconfig
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOTS = {
    "xetl": ".",
    "xetl_cpu": "backends/cpu",
    "xetl_reference": "backends/reference",
    "xetl_xegpu": "backends/xegpu",
}
HERE = Path(__file__).parent


def build_native(into: Path) -> str:
    """Configure, build and install with CMake; returns what happened, in a sentence."""
    cmake = shutil.which("cmake")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if cmake is None or compiler is None:
        missing = "CMake" if cmake is None else "a C compiler"
        return f"not built: {missing} was not found (nothing in xetl needs them)"
    build = HERE / "build" / "native"
    # What was found last time may have gone, or LIBXSMM_ROOT may say otherwise.
    (build / "CMakeCache.txt").unlink(missing_ok=True)
    steps = (
        [cmake, "-S", str(HERE), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release"],
        [cmake, "--build", str(build)],
        [cmake, "--install", str(build), "--prefix", str(into)],
    )
    for old in into.glob("*.so"):
        old.unlink()  # whoever has it loaded keeps it
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"not built: {step[1]} failed: {done.stderr.strip()[-300:]}"
    found = sorted(path.name for path in into.glob("*.so"))
    if not found:
        return "nothing to build: libxsmm was not found (nothing in xetl needs it)"
    return f"built {', '.join(found)}"


def copy_sources(into: Path) -> None:
    """What an installed package needs of the checkout besides Python files."""
    copies = {
        "docs/errors": "xetl/error_pages",
        "backends/cpu/native": "xetl_cpu/_native/source/backends/cpu/native",
    }
    for source, target in copies.items():
        shutil.copytree(HERE / source, into / target, dirs_exist_ok=True)
    shutil.copy(HERE / "CMakeLists.txt", into / "xetl_cpu/_native/source")


class BuildPy(build_py):
    """``build_py``, then the pages of `xetl explain` and the native parts."""

    def run(self) -> None:
        """Build, and never fail because of native parts."""
        super().run()
        if not self.editable_mode:  # else they are read where they are
            copy_sources(Path(self.build_lib))
        inplace = HERE / "backends/cpu/xetl_cpu"
        into = inplace if self.editable_mode else Path(self.build_lib) / "xetl_cpu"
        into = into / "_native"
        into.mkdir(parents=True, exist_ok=True)
        status = build_native(into)
        (into / "STATUS").write_text(status + "\n")


class BdistWheel(bdist_wheel):
    """``bdist_wheel``, whose result says so if it is for one kind of machine."""

    def get_tag(self) -> tuple[str, str, str]:
        """Any Python, and any platform unless a library was built."""
        built = self.get_finalized_command("build").build_lib
        if not list(Path(built).glob("xetl_cpu/_native/*.so")):
            return super().get_tag()
        platform = self.plat_name or sysconfig.get_platform()
        return "py3", "none", platform.replace("-", "_").replace(".", "_")


packages: list[str] = []
package_dir: dict[str, str] = {}
for name, root in ROOTS.items():
    packages += find_packages(root, include=[name, f"{name}.*"])
    package_dir[name] = f"{root}/{name}".removeprefix("./")

setup(
    packages=packages,
    package_dir=package_dir,
    cmdclass={"build_py": BuildPy, "bdist_wheel": BdistWheel},
)
