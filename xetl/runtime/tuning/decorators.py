"""``@xetl.autotune`` and ``@xetl.heuristics``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from xetl.errors import LaunchError, did_you_mean
from xetl.runtime.call_site import errors_at_caller
from xetl.runtime.kernel import Kernel
from xetl.runtime.parameters import Args, Keywords, Parameters
from xetl.runtime.tuning.config import (
    DECLARED_WRONG,
    Config,
    Heuristic,
    all_configs,
    check_names,
)
from xetl.runtime.tuning.kernel import CompletedKernel
from xetl.runtime.tuning.trials import Options
from xetl.runtime.tuning.tuner import Tuner

_PRUNE = ("perf_model", "top_k", "early_config_prune")

Hook = Callable[..., object]


@errors_at_caller
def autotune(
    configs: Iterable[Config | Keywords] | None = None,
    key: Sequence[str] = (),
    prune_configs_by: Keywords | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = True,
    *,
    budget_s: float = 20.0,
    **spaces: Args,
) -> Callable[[Kernel], CompletedKernel]:
    """Choose constants of a kernel by measuring; written above ``@xetile.kernel``.

    The first launch with new values of ``key``, new dtypes, or on another machine
    times the configs on copies of the arrays that the kernel writes; only the launch
    itself writes the user's arrays. The results of each config are compared with those
    of the first; a config that differs is dropped with a warning. The best config is
    stored on disk (`xetl.config.tuned_dir`).

    Args:
        configs: the configs, such as ``[xetl.Config(BM=64, BN=64)]``.
        key: names of arguments that decide which config is best: a number counts by its
            value, an array by its shape.
        prune_configs_by: ``early_config_prune(configs, arguments)`` returns the configs
            to try; ``perf_model(**arguments)`` estimates a time, and only the ``top_k``
            best (a number, or a fraction of all) are tried.
        reset_to_zero: names of arrays that are filled with zeros before each trial.
        restore_value: names of arrays that get their elements back before each trial.
        pre_hook: called with the arguments by name before each trial.
        post_hook: called with the same and ``exception=None`` after each trial.
        warmup: milliseconds for which a config runs before it is timed.
        rep: milliseconds for which it is timed.
        use_cuda_graph: must be false: there are no such graphs.
        do_bench: a function that times: ``do_bench(call, quantiles=(0.5, 0.2, 0.8))``.
        cache_results: whether the best config is stored on disk.
        budget_s: seconds for all trials; configs not tried by then are left out.
        spaces: values of constants, ``BM=[64, 128]``: all combinations are configs.

    Raises:
        LaunchError: an argument is wrong, or names no parameter of the kernel.
    """
    prune = _checked(prune_configs_by, use_cuda_graph, budget_s)
    listed = all_configs(configs, spaces)
    options = Options(
        budget_s,
        (warmup or 0.0) / 1e3,
        Options.rep if rep is None else rep / 1e3,
        _names(reset_to_zero, "reset_to_zero"),
        _names(restore_value, "restore_value"),
        do_bench,
    )
    names = _names(key, "key")

    @errors_at_caller
    def decorate(kernel: Kernel) -> CompletedKernel:
        fn = _checked_kernel(kernel, "autotune").fn
        tuner = Tuner(fn, listed, names, options, prune, cache_results)
        return CompletedKernel(kernel, tuner, None, (pre_hook, post_hook))

    return decorate


def heuristics(values: Mapping[str, Heuristic]) -> Callable[[Kernel], CompletedKernel]:
    """Compute constants of a kernel from its arguments; above ``@xetile.kernel``.

    Args:
        values: for the name of each constant a function of the arguments by name, such
            as ``{"EVEN": lambda args: args["A"].shape[1] % 64 == 0}``. It also sees the
            constants of configs and of the functions before it. A constant that a
            launch gives is not computed.

    Raises:
        LaunchError: an argument is wrong, or names no parameter of the kernel.
    """

    @errors_at_caller
    def decorate(kernel: Kernel) -> CompletedKernel:
        fn = _checked_kernel(kernel, "heuristics").fn
        if not isinstance(cast("object", values), Mapping) or not all(
            callable(each) for each in values.values()
        ):
            problem = "`heuristics` takes functions by the name of a constant"
            help_ = 'write {"EVEN": lambda args: args["A"].shape[1] % 64 == 0}'
            raise LaunchError(problem, DECLARED_WRONG, help_)
        check_names(Parameters.of(fn), values, "the heuristics")
        return CompletedKernel(kernel, None, values)

    return decorate


def _checked_kernel(kernel: object, decorator: str) -> Kernel:
    if isinstance(kernel, Kernel):
        return kernel
    name = getattr(kernel, "__name__", type(kernel).__name__)
    problem = f"`{decorator}` was put above `{name}`, which is no kernel"
    help_ = f"write @xetl.{decorator}(...) in the line above @xetile.kernel"
    raise LaunchError(problem, DECLARED_WRONG, help_)


def _checked(prune: Keywords | None, graph: bool, budget: float) -> Keywords:
    if graph:
        problem = "`use_cuda_graph=True` of `autotune`: there are no such graphs here"
        raise LaunchError(problem, DECLARED_WRONG, "leave it out")
    is_number = isinstance(cast("object", budget), int | float)
    if not is_number or not budget > 0:
        problem = f"`budget_s` of `autotune` is {budget!r}"
        raise LaunchError(problem, DECLARED_WRONG, "it is a number of seconds")
    for name in prune or {}:
        if name not in _PRUNE:
            problem = f"`prune_configs_by` of `autotune` has no `{name}`"
            help_ = did_you_mean(name, _PRUNE) or f"it has {', '.join(_PRUNE)}"
            raise LaunchError(problem, DECLARED_WRONG, help_)
    return prune or {}


def _names(given: Sequence[str] | None, what: str) -> tuple[str, ...]:
    listed = cast("Sequence[object]", given or ())
    if isinstance(given, str) or not all(isinstance(n, str) for n in listed):
        problem = f"`{what}` of `autotune` is {given!r}, but must be a list of names"
        raise LaunchError(problem, DECLARED_WRONG, f'write {what}=["M", "N"]')
    return tuple(given or ())
