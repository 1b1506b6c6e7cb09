"""Packages live in three trees; the native parts are built when they can be."""

from setuptools import find_packages, setup

ROOTS = {"xetl": ".", "xetl_cpu": "backends/cpu", "xetl_reference": "backends/reference"}

packages: list[str] = []
package_dir: dict[str, str] = {}
for name, root in ROOTS.items():
    packages += find_packages(root, include=[name, f"{name}.*"])
    package_dir[name] = f"{root}/{name}".removeprefix("./")

setup(packages=packages, package_dir=package_dir)
