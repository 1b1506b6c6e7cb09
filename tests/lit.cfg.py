"""How lit runs the ``.mlir`` tests: `xetl-opt` and `filecheck` of this environment."""

import os
import sys

import lit.formats

config.name = "xetl"  # noqa: F821 (lit defines it)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = os.path.dirname(__file__)  # noqa: F821
config.test_exec_root = os.environ.get(  # noqa: F821
    "XETL_LIT_OUTPUT", os.path.join(os.path.dirname(__file__), ".lit")
)
# Commands come from where this Python is, whatever the PATH of the caller.
config.environment["PATH"] = os.pathsep.join(  # noqa: F821
    [os.path.dirname(sys.executable), os.environ.get("PATH", "")]
)
config.substitutions.append(  # noqa: F821
    ("xetl-opt", f"{sys.executable} -m xetl.tools.xetl_opt")
)
ROOT = os.path.dirname(config.test_source_root)  # noqa: F821
config.environment["PYTHONPATH"] = os.pathsep.join(  # noqa: F821
    os.path.join(ROOT, part)
    for part in ("", "backends/reference", "backends/cpu", "backends/xegpu")
)
