"""A kernel that was written as text: ``lib["k"][grid, subgroups](*args)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from traceback import walk_tb
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import FileLineColLoc, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation

from xetl import compiler, pipeline
from xetl.backend import Artifact, BackendBase, Event
from xetl.dialects import kernel_attributes
from xetl.dialects.base import ints_of
from xetl.dialects.launch_form import launch_form
from xetl.dialects.text import FILE, Function, cannot_run, error_at, qualified_name
from xetl.dialects.verify import LocatedVerifyException
from xetl.dialects.xetile.used_maps import used_maps
from xetl.errors import IRError, LaunchError, XetlError
from xetl.language.signature import Signature
from xetl.locks import ForkSafeLock
from xetl.runtime import report
from xetl.runtime.call_site import at_caller, errors_at_caller
from xetl.runtime.executables import (
    Found,
    Loaded,
    Prepared,
    choose_target,
    kernel_cache,
    refuse_if_forbidden,
    target_at,
)
from xetl.runtime.fingerprint import text_digest
from xetl.runtime.grid import Grid, GridFunction, GridSpec, fixed
from xetl.runtime.launcher import LaunchedKernel, Plan
from xetl.runtime.overlap import check_stored
from xetl.runtime.parameters import Args, Keywords
from xetl.runtime.placement import choose_backend, find_place, shortcut_entry
from xetl.runtime.shortcuts import Shortcut
from xetl.runtime.specialize import Specialization
from xetl.runtime.text_arguments import (
    aliases_of,
    bind,
    for_any,
    why_not_launchable,
    with_sizes,
)
from xetl.settings import config
from xetl.transforms.legalize_text import LegalizeTextPass


def refused(error: Exception, backend: str) -> XetlError:
    """Convert an exception of a lowering to an `IRError`.

    Passes expect the IR that the front end makes. If a text has other operations, a
    pass may raise anything; its frames show the operation that it was looking at.
    """
    if isinstance(error, XetlError) and not error.code.startswith("X09"):
        return error
    reason = getattr(error, "message", "") or str(error) or type(error).__name__
    op = _operation_of(error)
    if op is None:
        problem = f"backend `{backend}` cannot run this text: {reason}"
        return IRError(problem, code="X0705")
    return cannot_run(op, backend, reason)


def _operation_of(error: BaseException) -> Operation | None:
    """Return an operation of the text in the innermost frame that has one, or None."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        for value in frame.f_locals.values():
            if isinstance(value, Operation):
                at = value.location
                if isinstance(at, FileLineColLoc) and at.filename.data == FILE:
                    return value
    return None


def _behind_types(
    fast: Callable[..., int], types: Sequence[Attribute], args: Args
) -> Callable[..., int]:
    """Return an entry for calls like an earlier one with ``args``.

    The native entry ``fast`` checks neither the sizes in types nor the width of
    integers. The result checks them first, and returns 1 to refuse a call.
    """
    array_class = np.ndarray
    arrays: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
    numbers: list[tuple[int, int, int]] = []
    for place, (type_, given) in enumerate(zip(types, args), 3):  # after the grid
        if type(given) is array_class:
            array = cast("np.ndarray[Any, Any]", given)
            arrays.append((place, array.shape, array.strides))
        elif isinstance(type_, IntegerType) and 1 < type_.bitwidth < 64:
            bits = type_.bitwidth
            numbers.append((place, -(1 << (bits - 1)), 1 << bits))

    def run(*args: Any) -> int:
        for place, shape, strides in arrays:
            array = args[place]
            if type(array) is not array_class or array.shape != shape:
                return 1
            if array.strides != strides:
                return 1
        for place, low, high in numbers:
            number = args[place]
            if type(number) is not int or not low <= number < high:
                return 1
        return fast(*args)

    return run


class TextKernel(LaunchedKernel):
    """A function of a text; ``str()`` is the text in canonical form.

    Attributes:
        name: its name in the text.
        qualified_name: with the names of the modules around it, ``module::name``.
    """

    def __init__(
        self,
        text: str,
        function: Function,
        others: Sequence[Function],
        subgroups: Grid | None = None,
    ) -> None:
        super().__init__()
        self.name = function.sym_name.data
        self.qualified_name = qualified_name(function)
        self._text = text
        self._function = function
        self._others = [other for other in others if other is not function]
        self._is_lowered = kernel_attributes.STORED in function.attributes
        self._types: Sequence[Attribute] = function.function_type.inputs.data
        if self._is_lowered:
            self._types = self._types[:-3]  # the grid is given in brackets
        arguments = function.body.blocks[0].args
        self.names = [
            argument.name_hint or f"argument {index}"
            for index, argument in enumerate(arguments[: len(self._types)])
        ]
        self._subgroups = subgroups
        self._with_subgroups: dict[Grid, TextKernel] = {}
        self._loaded: dict[object, Loaded] = {}
        self._lock = ForkSafeLock()

    def __repr__(self) -> str:
        return f"<xetl text kernel {self.name}>"

    def __str__(self) -> str:
        return str(self._function)

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Raise an error: a launch needs a grid."""
        raise at_caller(self._no_grid("called", f'lib["{self.name}"][grid](...)'))

    def with_subgroups(self, subgroups: GridSpec | None) -> TextKernel:
        """Return the kernel with so many subgroups in a workgroup; None: itself."""
        if subgroups is None:
            return self
        counts = fixed(subgroups)
        found = self._with_subgroups.get(counts)
        if found is None:
            made = TextKernel(self._text, self._function, self._others, counts)
            found = self._with_subgroups.setdefault(counts, made)
        return found

    def _new_launcher(self, grid: Any) -> Callable[..., Event | None]:
        """Return a launcher; ``grid`` may be a pair of grid and subgroups."""
        if not isinstance(grid, tuple):
            return super()._new_launcher(grid)
        sizes, *rest = cast("tuple[Any, ...]", grid)
        if not any(isinstance(each, tuple | list) for each in (sizes, *rest)):
            return super()._new_launcher(cast("GridSpec", grid))
        if len(rest) != 1:
            problem = f"`{self.name}` was given {len(rest) + 1} grids"
            help_ = "write kernel[grid] or kernel[grid, subgroups]"
            raise LaunchError(problem, "X0802", help_)
        return self._keep_launcher(grid, self.with_subgroups(rest[0]).at(fixed(sizes)))

    @errors_at_caller
    def ir(self, stage: str = pipeline.FIRST_STAGE, *args: Any, **options: Any) -> str:
        """Return the text of a stage, of the module after a pass, or of the code.

        Args:
            stage: the name of a stage or pass, or such as ``"llvm"``, ``"asm"``.
            args: as in a launch, or none: then only the types are used.
            options: ``backend``, ``target`` and ``subgroups`` (a tuple).
        """
        shows = partial(compiler.has_stage, stage)
        kernel, given, backend, target = self._asked(args, options, shows)
        module = kernel._module(aliases_of(given.signature))
        wanted = (given.signature, backend, target, stage)
        try:
            return compiler.ir_at_stage(module, *wanted)
        except Exception as error:
            raise self._shown(refused(error, backend.name)) from None

    @errors_at_caller
    def explain(self, *args: Any, **options: Any) -> report.Explanation:
        """Return what the compiler did with each line; arguments as for `ir`."""
        kernel, given, backend, target = self._asked(args, options, None)
        artifact = kernel._compiled(given, backend, target)
        lines = self._text.split("\n")
        made_by = backend.name, target, artifact
        return report.explained(self.name, FILE, lambda _, n: lines[n - 1], *made_by)

    @errors_at_caller
    def stats(
        self, *args: Any, grid: GridSpec | None = None, **options: Any
    ) -> report.Stats:
        """Return sizes and times of the code; arguments are those of `explain`.

        If there are arrays, the estimates are about a launch with them.
        """
        kernel, given, backend, target = self._asked(args, options, None)
        artifact = kernel._load(given, backend, target).artifact
        sizes = None if grid is None or not args else fixed(grid)
        where = self.name, backend.name, target
        return report.stats(*where, artifact, sizes, given.args if args else None)

    @errors_at_caller
    def warmup(self, **options: Any) -> None:
        """Compile for any arguments of these types; options as for `explain`."""
        kernel, given, backend, target = self._asked((), options, None)
        kernel._load(given, backend, target).complete()

    @errors_at_caller
    def bind(
        self, *args: Any, subgroups: GridSpec | None = None, **options: Any
    ) -> Plan:
        """Do the same as `Kernel.bind`, with so many subgroups."""
        return super(TextKernel, self.with_subgroups(subgroups)).bind(*args, **options)

    @errors_at_caller
    def interpret(
        self, *args: Any, subgroups: GridSpec | None = None, **options: Any
    ) -> None:
        """Do the same as `Kernel.interpret`, with so many subgroups."""
        super(TextKernel, self.with_subgroups(subgroups)).interpret(*args, **options)

    def grid_of(self, function: GridFunction, args: Args, keywords: Keywords) -> Grid:
        """Refuse the function: arguments of a text kernel have no names."""
        return fixed(function)

    def _no_grid(self, what: str, instead: str) -> LaunchError:
        text = f"`{self.name}` was {what} without a grid"
        return LaunchError(text, code="X0802", help=f"write {instead}")

    def _asked(
        self,
        args: Args,
        options: dict[str, Any],
        shows: Callable[[BackendBase], bool] | None,
    ) -> tuple[TextKernel, Specialization, BackendBase, str]:
        """Return kernel, specialisation (of arguments or types), backend and target."""
        kernel = self.with_subgroups(options.pop("subgroups", None))
        self._check_options(options)
        machine = options.get("target")
        asked = options.get("backend"), args
        backend = choose_backend(*asked, target=machine, shows=shows)
        target = choose_target(backend, machine)
        if args:
            given = bind(self.name, self.names, self._types, args)
        else:
            given = for_any(self.names, self._types)
        return kernel, given, backend, target

    def _shortcut(
        self, prepared: Prepared, args: Args, keywords: Keywords, state: object
    ) -> Shortcut | None:
        if keywords:
            return None
        _, place, (loaded, _, _) = prepared
        stored = prepared.stored
        fast = shortcut_entry(loaded, args, stored, place, True)
        if fast is None:
            return None
        written = tuple((index, self.names[index]) for index in stored)
        run = _behind_types(fast, self._types, args)
        return Shortcut(run, len(args), {}, (), (), state, None, written)

    def prepare(self, args: Args, keywords: Keywords) -> Prepared:
        """Check a call, and find or compile its code; do not run it.

        Raises:
            LaunchError: the call is wrong.
            IRError: the backend cannot run an operation of the text.
        """
        problem = why_not_launchable(self.name, self._function.function_type)
        if problem is not None:
            raise problem
        self._check_options(keywords)
        backend = choose_backend(keywords.get("backend"), args)
        given = bind(self.name, self.names, self._types, args)
        place = find_place(backend, keywords.get("queue"), self.names, given.args)
        target = choose_target(backend, keywords.get("target"))
        if keywords.get("target") is None:
            target = target_at(backend, place)
        loaded = self._load(given, backend, target)
        check_stored(self.names, given.args, loaded.stored)
        return Prepared(given, place, Found(loaded, None, ""))

    def for_any_arguments(self) -> tuple[ModuleOp, Signature]:
        """Return a module with only this kernel, and a signature from its types.

        Raises:
            LaunchError: a launch cannot give an argument, or the function has results.
        """
        problem = why_not_launchable(self.name, self._function.function_type)
        if problem is not None:
            raise at_caller(problem) from None
        module = self._module([-1] * len(self.names))
        found = for_any(self.names, self._types).signature
        return module, with_sizes(found, self._types)

    def _check_options(self, options: Keywords) -> None:
        for name in options.keys() - {"backend", "target", "queue", "wait"}:
            raise LaunchError(
                f"`{self.name}` was given `{name}=`, which is no option of a launch",
                code="X0804",
                help="arguments of a text kernel are given by position; its options "
                "are `backend=`, `target=`, `queue=` and `wait=`",
            )

    def _load(self, given: Specialization, backend: BackendBase, target: str) -> Loaded:
        key = backend.name, target, config.of_code, given.signature
        with self._lock.held():
            found = self._loaded.get(key)
            if found is None:
                found = self._compile(given, backend, target)
                self._loaded[key] = found
        return found

    def _compile(
        self, given: Specialization, backend: BackendBase, target: str
    ) -> Loaded:
        options = (given.signature, self._subgroups)
        key = text_digest(self._text, self.qualified_name, options, backend, target)
        cache = kernel_cache(backend)
        artifact = None if cache is None else cache.load(key)
        if artifact is None:
            artifact = self._compiled(given, backend, target)
            if cache is not None:
                cache.store(key, artifact)
        return Loaded(artifact, backend, given, self._load)

    def _compiled(
        self, given: Specialization, backend: BackendBase, target: str
    ) -> Artifact:
        refuse_if_forbidden(self.name)
        module = self._module(aliases_of(given.signature))
        make = compiler.compile_module
        try:
            return make(module, given.signature, backend, target, FILE)
        except Exception as error:
            raise self._shown(refused(error, backend.name)) from None

    def _module(self, aliases: Sequence[int]) -> ModuleOp:
        """Return a module with only this kernel."""
        counts = self._subgroups or self._default_subgroups()
        module = launch_form(self._function, self._others, self.names, aliases, counts)
        stage = kernel_attributes.stage_of(module)
        if self._is_lowered:
            self._check_aliases(aliases)
            if stage is None:
                problem = "printed after a pass: texts go on only from a stage"
                raise error_at(self._text, self._function, problem, "X0705")
        if stage is not None:
            return module
        try:
            LegalizeTextPass().rewrite(module)
        except LocatedVerifyException as error:
            raise error_at(self._text, error.op, error.problem, "X0705") from None
        return module

    def _check_aliases(self, aliases: Sequence[int]) -> None:
        """Check that the same arrays are identical as when the text was lowered."""
        known = ints_of(self._function.attributes.get(kernel_attributes.ALIAS_GROUPS))
        if aliases and list(aliases) != list(known):
            raise LaunchError(
                f"`{self.name}` cannot be launched: it was lowered for arrays of which "
                "others are the same",
                code="X0819",
                help="print its text for arguments like these",
            )

    def _default_subgroups(self) -> Grid:
        for map_ in used_maps(self._function):
            return prod(map_.sg_layout), 1, 1
        known = {**self._function.properties, **self._function.attributes}
        layout = ints_of(known.get(kernel_attributes.SUBGROUPS))
        if len(layout) == 2:
            return layout[1], layout[0], 1
        for name in ("known_block_size", "gpu.known_block_size"):
            if name in known:
                x, y, z = (*ints_of(known[name]), 1, 1, 1)[:3]
                if kernel_attributes.STAGE in known:  # XeGPU counts lanes
                    x //= kernel_attributes.LANES
                return x, y, z
        return 1, 1, 1

    def _shown(self, error: XetlError) -> XetlError:
        """Add the text's line to an error about an operation of the text."""
        if error.file == FILE and error.line is not None:
            error.source_line = self._text.split("\n")[error.line - 1]
        return error
