"""``xetl-opt``: run passes on the text of a module and print the result.

Lit tests use it for one pass at a time, as they use mlir-opt.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ParseError, VerifyException

from xetl import transforms
from xetl.backend import BackendBase
from xetl.dialects.parser import make_context, parse_module
from xetl.dialects.verify import verify
from xetl.errors import XetlError
from xetl.transforms.stages import check_stage

SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)


class _Registry:
    """Passes and dialects. Backends are loaded only if the core lacks one."""

    def __init__(self) -> None:
        # The passes of `xetl.transforms` by name; each is a module of this name.
        names = (each.name for each in iter_modules(transforms.__path__))
        modules = [import_module(f"{transforms.__name__}.{name}") for name in names]
        self.passes = {
            each.name: each
            for module in modules
            for each in vars(module).values()
            if isinstance(each, type)
            and issubclass(each, ModulePass)
            and each.__module__ == module.__name__
        }
        self.dialects: list[Dialect] = []
        self.warnings: list[str] = []
        self._loaded = False

    def load_backends(self) -> None:
        """Ask every installed backend for its passes and dialects."""
        if self._loaded:
            return
        self._loaded = True
        for point in entry_points(group="xetl.backends"):
            try:
                backend: BackendBase = point.load()
                self.passes |= backend.opt_passes()
                self.dialects += backend.opt_dialects()
            except (ImportError, AttributeError) as error:
                self.warnings.append(f"backend {point.name} is not usable: {error}")

    def find(self, name: str) -> type[ModulePass]:
        """Return the pass ``name``: of the core, or else of a backend."""
        if name not in self.passes:
            self.load_backends()
        if name not in self.passes:
            known = ", ".join(sorted(self.passes))
            problem = f"xetl-opt: no pass is called `{name}`; there are: {known}"
            raise SystemExit(problem)
        return self.passes[name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the command; returns its exit status."""
    options = _arguments().parse_args(arguments)
    registry = _Registry()
    pipeline = [
        registry.find(spec.name).from_spec(spec)
        for spec in parse_pipeline(options.passes)
    ]
    is_stdin = options.file == "-"
    try:
        text = sys.stdin.read() if is_stdin else Path(options.file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise SystemExit(f"xetl-opt: `{options.file}` cannot be read: {why}") from None
    name = "<stdin>" if is_stdin else options.file
    parts = SPLIT.split(text) if options.split_input_file else [text]
    outcomes = [_run(part, name, pipeline, registry, options) for part in parts]
    for message in registry.warnings:
        print(f"xetl-opt: {message}", file=sys.stderr)
    # With --verify-diagnostics a test expects errors, and reads them from stdout.
    return 0 if all(outcomes) or options.verify_diagnostics else 1


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="xetl-opt", description=__doc__)
    parser.add_argument("file", help="a file, or - for standard input")
    parser.add_argument("-p", "--passes", default="", help="pass1,pass2{option=1}")
    parser.add_argument("--verify-stage", help="check the result against a stage")
    for flag, text in _FLAGS.items():
        parser.add_argument(flag, action="store_true", help=text)
    return parser


_FLAGS = {
    "--split-input-file": "treat the parts between `// -----` lines as modules of "
    "their own",
    "--verify-diagnostics": "print errors to standard output and exit with 0",
    "--generic": "print the generic form",
    "--locations": "print the location of each operation",
}


def _run(
    text: str,
    name: str,
    pipeline: Sequence[ModulePass],
    registry: _Registry,
    options: argparse.Namespace,
) -> bool:
    """Run the pipeline on one module and print it; False if it is wrong."""
    try:
        context, module = _parse(text, name, registry)
        verify(module)
        for each in pipeline:
            each.apply(context, module)
            verify(module)
        if options.verify_stage:
            check_stage(module, options.verify_stage)
    except (ParseError, VerifyException, XetlError) as error:
        stream = sys.stdout if options.verify_diagnostics else sys.stderr
        print(error if isinstance(error, XetlError) else f"error: {error}", file=stream)
        return False
    printer = Printer(
        print_generic_format=options.generic, print_debuginfo=options.locations
    )
    printer.print_op(module)
    print()
    return True


def _parse(text: str, name: str, registry: _Registry) -> tuple[Context, ModuleOp]:
    """Parse a module; load the dialects of backends only if the text needs them."""
    context = make_context(registry.dialects)
    try:
        return context, parse_module(text, name, context)
    except ParseError as error:
        if "not registered" not in error.msg:
            raise
    registry.load_backends()
    context = make_context(registry.dialects)
    return context, parse_module(text, name, context)


if __name__ == "__main__":
    sys.exit(main())
