"""A tile kernel language in Python; see README.md."""

from typing import TYPE_CHECKING

from xetl import errors, opencl_driver
from xetl.imports import import_whole

__version__ = "0.1.0"

__all__ = ["Benchmark", "Config", "TileTrace", "autotune", "config", "do_bench"]
__all__ += ["errors", "heuristics", "load_mlir", "no_compile", "op", "perf_report"]

_HOMES = {
    "Benchmark": "xetl.tools.performance.benchmark",
    "Config": "xetl.runtime.tuning.config",
    "TileTrace": "xetl.runtime.trace",
    "autotune": "xetl.runtime.tuning.decorators",
    "config": "xetl.settings",
    "do_bench": "xetl.runtime.measure",
    "heuristics": "xetl.runtime.tuning.decorators",
    "load_mlir": "xetl.runtime.library",
    "no_compile": "xetl.settings",
    "op": "xetl.ops.calling.custom",
    "perf_report": "xetl.tools.performance.report",
}

_PACKAGES = ("ops", "xetile")

opencl_driver.make_known()

if TYPE_CHECKING:
    from xetl import ops as ops
    from xetl.ops.calling.custom import op
    from xetl.runtime.library import load_mlir
    from xetl.runtime.measure import do_bench
    from xetl.runtime.trace import TileTrace
    from xetl.runtime.tuning.config import Config
    from xetl.runtime.tuning.decorators import autotune, heuristics
    from xetl.settings import config, no_compile
    from xetl.tools.performance.benchmark import Benchmark
    from xetl.tools.performance.report import perf_report
else:  # a checker would take any name to be there

    def __getattr__(name: str) -> object:
        """Load what is asked for on first use: importing `xetl` costs nothing."""
        if name in _PACKAGES:
            return import_whole(f"xetl.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_whole(_HOMES[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
