"""A kernel that was written as text: ``lib["k"][grid, subgroups](*args)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from traceback import walk_tb
from typing import Any, cast

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Attribute, Operation

from xetl import compiler, pipeline
from xetl.backend import Artifact, BackendBase, Event, Place
from xetl.dialects.base import ints_of
from xetl.dialects.kernel_attributes import (
    ALIAS_GROUPS,
    STAGE,
    STORED,
    SUBGROUPS,
    stage_of,
)
from xetl.dialects.launch_form import launch_form
from xetl.dialects.text import FILE, Function, error_at, location_of, qualified_name
from xetl.dialects.verify import LocatedVerifyException
from xetl.dialects.xetile.used_maps import used_maps
from xetl.errors import IRError, LaunchError, XetlError
from xetl.language.signature import Signature
from xetl.locks import ForkSafeLock
from xetl.runtime import interpret, report
from xetl.runtime.cache import disk_cache
from xetl.runtime.call_site import at_caller, errors_at_caller
from xetl.runtime.executables import Loaded, choose_target, target_at
from xetl.runtime.fingerprint import text_digest
from xetl.runtime.grid import Grid, GridSpec, fixed
from xetl.runtime.launcher import Plan
from xetl.runtime.overlap import check_stored
from xetl.runtime.placement import choose_backend, find_place, run, shortcut_entry
from xetl.runtime.specialize import Specialization
from xetl.runtime.tensors import hide_from_dynamo
from xetl.runtime.text_arguments import (
    aliases_of,
    bind,
    for_any,
    why_not_launchable,
    with_sizes,
)
from xetl.runtime.text_shortcuts import TextShortcut, remember, shortcut
from xetl.settings import config, launch_state
from xetl.transforms.legalize_text import LegalizeTextPass


def refused(error: Exception, backend: str) -> XetlError:
    """An `IRError` for whatever stopped a lowering.

    Passes are written for what the front end makes. Where a text has something else,
    the operation they were looking at is found in the frames of the error.
    """
    if isinstance(error, XetlError) and not error.code.startswith("X09"):
        return error
    reason = getattr(error, "message", "") or str(error) or type(error).__name__
    op = _operation_of(error)
    if op is None:
        return IRError(
            f"backend `{backend}` cannot run this text: {reason}", code="X0705"
        )
    place = location_of(op)
    assert place is not None
    return IRError(
        f"backend `{backend}` cannot run `{op.name}` here: {reason}",
        code="X0705",
        file=FILE,
        line=place[0],
        column=place[1],
        length=len(op.name),
        help="backend `reference` runs every operation",
    )


def _operation_of(error: BaseException) -> Operation | None:
    """The operation that the innermost frame with one was looking at."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        for value in frame.f_locals.values():
            if isinstance(value, Operation) and _is_of_text(value):
                return value
    return None


def _is_of_text(op: Operation) -> bool:
    location = op.location
    return isinstance(location, FileLineColLoc) and location.filename.data == FILE


_OPTIONS = ("backend", "target", "queue", "wait")
_LANES = 16
"""Of a subgroup."""


class TextKernel:
    """A function of a text; ``str()`` is the text in canonical form.

    Attributes:
        name: its name in the text.
        qualified_name: with the names of the modules around it, ``module::name``.
        names: of its arguments.
    """

    def __init__(
        self, text: str, function: Function, others: Sequence[Function]
    ) -> None:
        self.name = function.sym_name.data
        self.qualified_name = qualified_name(function)
        self._text = text
        self._function = function
        self._others = [other for other in others if other is not function]
        self._is_lowered = STORED in function.attributes
        self._types: Sequence[Attribute] = function.function_type.inputs.data
        if self._is_lowered:
            self._types = self._types[:-3]  # the grid is given in brackets
        arguments = function.body.blocks[0].args
        self.names = [
            argument.name_hint or f"argument {index}"
            for index, argument in enumerate(arguments[: len(self._types)])
        ]
        self.shortcuts: tuple[TextShortcut, ...] = ()
        self._loaded: dict[object, Loaded] = {}
        self._lock = ForkSafeLock()

    def __repr__(self) -> str:
        return f"<xetl text kernel {self.name}>"

    def __str__(self) -> str:
        return str(self._function)

    def __getitem__(self, grid: Any) -> TextLauncher:
        """The kernel with a grid, or with a grid and the subgroups of a workgroup."""
        try:
            if isinstance(grid, tuple) and any(
                isinstance(each, tuple | list) for each in cast("tuple[Any, ...]", grid)
            ):
                sizes, *rest = cast("tuple[Any, ...]", grid)
                if len(rest) != 1:
                    raise LaunchError(
                        f"`{self.name}` was given {len(rest) + 1} grids",
                        code="X0802",
                        help="write kernel[grid] or kernel[grid, subgroups]",
                    )
                return TextLauncher(self, fixed(sizes), fixed(rest[0]))
            return TextLauncher(self, fixed(cast("GridSpec", grid)), None)
        except XetlError as error:
            raise at_caller(error) from None

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """There is no launch without a grid."""
        try:
            self._sizes(None, "called", f'lib["{self.name}"][grid](...)')
        except XetlError as error:
            raise at_caller(error) from None

    @errors_at_caller
    def ir(self, stage: str = pipeline.FIRST_STAGE, *args: Any, **options: Any) -> str:
        """The text of a stage, of what a pass leaves, or ``"llvm"``, ``"asm"``.

        Args:
            stage: its name.
            args: as in a launch, or none: then the types have to do.
            options: ``backend``, ``target`` and ``subgroups`` (a tuple).
        """
        shows = partial(compiler.has_stage, stage)
        given, counts, backend, target = self._asked(args, options, shows)
        module = self._module(aliases_of(given.signature), counts)
        wanted = (given.signature, backend, target, stage)
        try:
            return compiler.ir_at_stage(module, *wanted)
        except Exception as error:
            raise self._shown(refused(error, backend.name)) from None

    @errors_at_caller
    def explain(self, *args: Any, **options: Any) -> report.Explanation:
        """What became of each line: raised to BRGEMM, packed, or why not.

        Args:
            args: as in a launch, or none: then the types have to do.
            options: ``backend``, ``target`` and ``subgroups`` (a tuple).
        """
        given, counts, backend, target = self._asked(args, options, None)
        artifact = self._compiled(given, counts, backend, target)
        where = self.name, FILE, self._text.split("\n")
        return report.explain_text(*where, backend.name, target, artifact)

    @errors_at_caller
    def stats(
        self, *args: Any, grid: GridSpec | None = None, **options: Any
    ) -> report.Stats:
        """Sizes and times, those of a launch if there are arrays; as for `explain`."""
        asked = self._asked(args, options, None)
        artifact = self._load(*asked).artifact
        given, _, backend, target = asked
        sizes = None if grid is None or not args else fixed(grid)
        where = self.name, backend.name, target
        return report.stats(*where, artifact, sizes, given.args if args else None)

    @errors_at_caller
    def warmup(self, **options: Any) -> None:
        """Compile for any arguments of these types; options as for `explain`."""
        self._load(*self._asked((), options, None))

    @errors_at_caller
    def bind(
        self,
        *args: Any,
        grid: GridSpec | None = None,
        subgroups: GridSpec | None = None,
        **options: Any,
    ) -> Plan:
        """Check and compile now; calling the plan launches with the same arguments."""
        sizes = self._sizes(grid, "bound", "bind(..., grid=...)")
        counts = None if subgroups is None else fixed(subgroups)
        given, place, loaded = self._prepared(counts, args, options)
        waits = options.get("wait", True)
        return Plan(loaded, sizes, given, given.values, place, waits)

    def interpret(
        self,
        *args: Any,
        grid: GridSpec | None = None,
        subgroups: GridSpec | None = None,
        check: str = interpret.ALL,
        **options: Any,
    ) -> None:
        """Run in the interpreter, as `xetl.runtime.kernel.Kernel.interpret` does.

        Raises:
            CheckError: the first thing found; all arrays are as they were.
        """
        try:
            checks = interpret.checks_of(check)
            interpret.refuse_other_backend(options)
            sizes = self._sizes(grid, "interpreted", "interpret(..., grid=...)")
            counts = None if subgroups is None else fixed(subgroups)
            chosen = {**options, **interpret.OPTIONS}
            given, _, loaded = self._prepared(counts, args, chosen)
            interpret.run_checked(loaded, sizes, given.args, checks)
        except XetlError as error:
            raise at_caller(self._shown(error)) from None

    def _sizes(self, grid: GridSpec | None, what: str, instead: str) -> Grid:
        if grid is None:
            raise LaunchError(
                f"`{self.name}` was {what} without a grid",
                code="X0802",
                help=f"write {instead}",
            )
        return fixed(grid)

    def _asked(
        self,
        args: Sequence[Any],
        options: dict[str, Any],
        shows: Callable[[BackendBase], bool] | None,
    ) -> tuple[Specialization, Grid | None, BackendBase, str]:
        """What to compile for: arguments or their types, subgroups, and the machine."""
        subgroups = options.pop("subgroups", None)
        self._check_options(options)
        machine = options.get("target")
        asked = options.get("backend"), args
        backend = choose_backend(*asked, target=machine, shows=shows)
        target = choose_target(backend, machine)
        counts = None if subgroups is None else fixed(subgroups)
        if args:
            given = bind(self.name, self.names, self._types, args)
        else:
            given = for_any(self.names, self._types)
        return given, counts, backend, target

    def launch(
        self,
        grid: Grid,
        subgroups: Grid | None,
        args: Sequence[Any],
        options: dict[str, Any],
    ) -> Event | None:
        """Run the kernel; every check is done here.

        Raises:
            LaunchError: the call is wrong; nothing was written.
            IRError: the backend cannot run an operation of the text.
        """
        state = launch_state()
        given, place, loaded = self._prepared(subgroups, args, options)
        waits = options.get("wait", True)
        event = run(loaded, grid, given.args, place, waits)
        entry = partial(shortcut_entry, loaded, args, sorted(loaded.stored), place)
        fast = None
        if not options and loaded.deserves_shortcut():
            fast = entry(True)
        if fast is not None:
            new = shortcut(fast, subgroups, state, self._types, args)
            self.shortcuts = remember(self.shortcuts, new)
        return event

    def _prepared(
        self, subgroups: Grid | None, args: Sequence[Any], options: dict[str, Any]
    ) -> tuple[Specialization, Place | None, Loaded]:
        """Check a call, and find or make the code for it; nothing runs."""
        problem = why_not_launchable(self.name, self._function.function_type)
        if problem is not None:
            raise problem
        self._check_options(options)
        backend = choose_backend(options.get("backend"), args)
        given = bind(self.name, self.names, self._types, args)
        place = find_place(backend, options.get("queue"), self.names, given.args)
        target = choose_target(backend, options.get("target"))
        if options.get("target") is None:
            target = target_at(backend, place)
        loaded = self._load(given, subgroups, backend, target)
        check_stored(self.names, given.args, loaded.stored)
        return given, place, loaded

    def for_any_arguments(self) -> tuple[ModuleOp, Signature]:
        """A module with this kernel alone, and what its types say of its arguments.

        Raises:
            LaunchError: it takes or gives what no launch can.
        """
        problem = why_not_launchable(self.name, self._function.function_type)
        if problem is not None:
            raise at_caller(problem) from None
        module = self._module([-1] * len(self.names), None)
        found = for_any(self.names, self._types).signature
        return module, with_sizes(found, self._types)

    def _check_options(self, options: dict[str, Any]) -> None:
        for name in options.keys() - set(_OPTIONS):
            raise LaunchError(
                f"`{self.name}` was given `{name}=`, which is no option of a launch",
                code="X0804",
                help="arguments of a text kernel are given by position; its options "
                "are `backend=`, `target=`, `queue=` and `wait=`",
            )

    def _load(
        self,
        given: Specialization,
        subgroups: Grid | None,
        backend: BackendBase,
        target: str,
    ) -> Loaded:
        key = (backend.name, target, config.of_code, given.signature, subgroups)
        with self._lock.held():
            found = self._loaded.get(key)
            if found is None:
                found = self._compile(given, subgroups, backend, target)
                self._loaded[key] = found
        return found

    def _compile(
        self,
        given: Specialization,
        subgroups: Grid | None,
        backend: BackendBase,
        target: str,
    ) -> Loaded:
        options = (given.signature, subgroups)
        key = text_digest(self._text, self.qualified_name, options, backend, target)
        cache = disk_cache() if backend.cacheable and not config.dump else None
        artifact = None if cache is None else cache.load(key)
        if artifact is None:
            artifact = self._compiled(given, subgroups, backend, target)
            if cache is not None:
                cache.store(key, artifact)
        return Loaded(artifact, backend, given.signature)

    def _compiled(
        self,
        given: Specialization,
        subgroups: Grid | None,
        backend: BackendBase,
        target: str,
    ) -> Artifact:
        if config.compiling_forbidden:
            raise LaunchError(
                f"`{self.name}` would have to be compiled, "
                "which `xetl.no_compile()` forbids",
                code="X0815",
            )
        module = self._module(aliases_of(given.signature), subgroups)
        make = compiler.compile_module
        try:
            return make(module, given.signature, backend, target, FILE)
        except Exception as error:
            raise self._shown(refused(error, backend.name)) from None

    def _module(self, aliases: Sequence[int], subgroups: Grid | None) -> ModuleOp:
        """A module with this kernel alone."""
        counts = subgroups or self._default_subgroups()
        module = launch_form(self._function, self._others, self.names, aliases, counts)
        if self._is_lowered:
            self._check_aliases(aliases)
        if stage_of(module) is not None:
            return module
        try:
            LegalizeTextPass().rewrite(module)
        except LocatedVerifyException as error:
            raise error_at(self._text, error.op, error.problem, "X0705") from None
        return module

    def _check_aliases(self, aliases: Sequence[int]) -> None:
        """A text that was lowered holds for arrays that are apart as they were then."""
        known = ints_of(self._function.attributes.get(ALIAS_GROUPS))
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
        layout = ints_of(known.get(SUBGROUPS))
        if len(layout) == 2:
            return layout[1], layout[0], 1
        for name in ("known_block_size", "gpu.known_block_size"):
            if name in known:
                x, y, z = (*ints_of(known[name]), 1, 1, 1)[:3]
                # XeGPU counts lanes.
                return (x // _LANES if STAGE in known else x), y, z
        return 1, 1, 1

    def _shown(self, error: XetlError) -> XetlError:
        """An error about an operation of the text with the text's line."""
        if error.file == FILE and error.line is not None:
            lines = self._text.split("\n")
            error.source_line = lines[error.line - 1]
        return error


class TextLauncher:
    """A text kernel with a grid; call it with the arguments."""

    __slots__ = ("_grid", "_kernel", "_subgroups")

    def __init__(self, kernel: TextKernel, grid: Grid, subgroups: Grid | None) -> None:
        self._kernel = kernel
        self._grid = grid
        self._subgroups = subgroups

    def __call__(self, *args: Any, **options: Any) -> Event | None:
        """Launch the kernel on ``args``.

        Args:
            args: by position.
            options: ``backend=``, ``target=``, ``queue=``, ``wait=``.

        Returns:
            With ``wait=False`` an event to wait for, else None.
        """
        kernel = self._kernel
        try:
            if kernel.shortcuts and not options:
                state = launch_state()
                for known in kernel.shortcuts:
                    if (
                        known.subgroups == self._subgroups
                        and known.state == state
                        and known.run(self._grid, args)
                    ):
                        return None
            return kernel.launch(self._grid, self._subgroups, args, options)
        except XetlError as error:
            raise at_caller(error) from None


hide_from_dynamo(TextKernel.__getitem__, TextLauncher.__call__)
