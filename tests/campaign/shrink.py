"""Makes a case with a fault small: fewer statements, simpler values, smaller extents.

Each step proposes simpler cases; one that shows a fault of the same kind is kept
(delta debugging: Zeller, Hildebrandt, IEEE TSE 28, 2002; over the syntax tree as in
Misherghi, Su, "HDD", ICSE 2006). Where numbers are wrong, only such steps are taken
as cannot lead to a kernel that leaves its result open: values become other ones of
their type, and the interpreter's checks look for races and what nobody wrote.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from time import monotonic

from tests.campaign.cases import Array, Case
from tests.campaign.check import Fault

Try = Callable[[Case, bool], Fault | None]
Edit = Callable[[], Case]
"""A simpler case, which is only made when it is tried."""


class Shrinker:
    """Shrinks one case as long as it has seconds and tries left."""

    def __init__(
        self, case: Case, fault: Fault, run: Try, tries: int = 400, seconds: float = 90
    ) -> None:
        self.case, self.fault = case, fault
        self._run, self._left = run, tries
        self._until = monotonic() + seconds
        self._strict = fault.kind == "wrong number" and self._shows(case, strict=True)

    def shrink(self) -> Case:
        """The smallest case found."""
        steps = (runs, statements, values, subexpressions, literals, arguments)
        before = None
        while before != self.case:
            before = self.case
            for step in steps:
                if step is not subexpressions or self.fault.kind != "wrong number":
                    self._take(step)
        return self.case

    def _take(self, step: Callable[[Case], Iterator[Edit]]) -> None:
        """Keep what a step proposes, from where it stood, until nothing is kept."""
        at = 0
        while True:
            for number, edit in enumerate(step(self.case)):
                if number < at:
                    continue
                candidate = edit()
                if candidate != self.case and self._shows(candidate, self._strict):
                    self.case, at = candidate, number
                    break
            else:
                return

    def _shows(self, case: Case, strict: bool) -> bool:
        if self._left <= 0 or monotonic() > self._until:
            return False
        self._left -= 1
        found = self._run(case, strict)
        if found is None or found.kind != self.fault.kind:
            return False
        self.fault = found
        return True


def runs(case: Case) -> Iterator[Edit]:
    """One run instead of many, of fewer programs."""
    if len(case.runs) > 1:
        yield from (partial(replace, case, runs=(each,)) for each in case.runs)
    for dim, size in enumerate(case.grid):
        if size > 1:
            grid = (*case.grid[:dim], 1, *case.grid[dim + 1 :])
            yield partial(replace, case, grid=grid)
    if case.same:
        yield partial(replace, case, same=False)


def statements(case: Case) -> Iterator[Edit]:
    """Without some statements, the last first; bodies without their loop or branch."""
    places = _places(_tree(case))
    for size in (8, 3, 1):
        for last in reversed(range(len(places))):
            yield partial(_without, case, last, size)
    for number, (block, at) in enumerate(places):
        if isinstance(block[at], ast.If | ast.For | ast.While):
            yield partial(_unwrapped, case, number)


def _without(case: Case, last: int, size: int) -> Case:
    tree = _tree(case)
    block, at = _places(tree)[last]
    del block[max(at + 1 - size, 0) : at + 1]
    return _with(case, tree)


def _unwrapped(case: Case, number: int) -> Case:
    tree = _tree(case)
    block, at = _places(tree)[number]
    inner = block[at]
    if isinstance(inner, ast.If | ast.For | ast.While):
        block[at : at + 1] = inner.body + inner.orelse
    return _with(case, tree)


def values(case: Case) -> Iterator[Edit]:
    """Variables that are another one, or 1."""
    known = case.variables or {}
    found = [(name, ast.unparse(node.value)) for name, node in _assigned(_tree(case))]
    for number, (name, old) in reversed(list(enumerate(found))):
        if name not in known:
            continue
        value = known[name]
        earlier = {n for n, _ in found[:number] if n in known} - {name}
        texts = [
            other
            for other in sorted(earlier)
            if replace(known[other], name=name) == value
        ][:2]
        one = "True" if value.dtype == "i1" else "1"
        texts.append(f"xetile.full({value.shape}, {one}, xetile.{value.dtype})")
        for text in texts:
            if text != old and (len(text) < len(old) or text.isidentifier()):
                yield partial(_set, case, number, text)


def _set(case: Case, number: int, text: str) -> Case:
    """With another value in one of the assignments."""
    tree = _tree(case)
    _assigned(tree)[number][1].value = ast.parse(text, mode="eval").body
    return _with(case, tree)


def subexpressions(case: Case) -> Iterator[Edit]:
    """Part of an expression in place of it."""
    for number, node in enumerate(_expressions(_tree(case))):
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                yield partial(_hoisted, case, number, part)


def _hoisted(case: Case, number: int, part: ast.expr) -> Case:
    tree = _tree(case)
    return _with(case, _Replace(_expressions(tree)[number], part).visit(tree))


def literals(case: Case) -> Iterator[Edit]:
    """Smaller extents and numbers, everywhere where they stand; and offsets of 0."""
    nodes = list(ast.walk(_tree(case)))
    found = {n.value for n in nodes if isinstance(n, ast.Constant)}
    integers = [each for each in found if type(each) is int and each > 1]
    for old in sorted(integers, reverse=True):
        for new in sorted({1, 2, 3, old // 2, old - 1}):
            if 0 < new < old:
                yield partial(_scaled, case, old, new)
    for node in nodes:
        if isinstance(node, ast.List):
            zeros = "[" + ", ".join("0" for _ in node.elts) + "]"
            text = ast.unparse(node)
            if text != zeros:
                source = case.source.replace(text, zeros)
                yield partial(replace, case, source=source)


def arguments(case: Case) -> Iterator[Edit]:
    """Without unused parameters; smaller and simpler arrays."""
    function = _function(_tree(case))
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    for name in case.parameters():
        if name not in used:
            yield partial(_without_parameter, case, name)
    for name, array in case.arrays.items():
        for simpler in _simpler(array):
            yield partial(replace, case, arrays={**case.arrays, name: simpler})


def _without_parameter(case: Case, name: str) -> Case:
    tree = _tree(case)
    arguments = _function(tree).args
    arguments.args = [each for each in arguments.args if each.arg != name]
    kept = {n: array for n, array in case.arrays.items() if n != name}
    return replace(_with(case, tree), arrays=kept)


def _simpler(array: Array) -> Iterator[Array]:
    if array.layout != "rows":
        yield replace(array, layout="rows")
    if array.fill is not None:
        yield replace(array, fill=None)
    for dim, size in enumerate(array.shape):
        for new in sorted({1, size // 2, size - 1}):
            if 0 < new < size:
                shape = (*array.shape[:dim], new, *array.shape[dim + 1 :])
                yield replace(array, shape=shape)


def _tree(case: Case) -> ast.Module:
    return ast.parse(case.source)


def _with(case: Case, tree: ast.AST) -> Case:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While):
            node.body = node.body or [ast.Pass()]
    return replace(case, source=ast.unparse(tree) + "\n")


def _function(tree: ast.Module) -> ast.FunctionDef:
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def _places(tree: ast.Module) -> list[tuple[list[ast.stmt], int]]:
    """Each statement of the kernel: the block it stands in, and where."""
    found: list[tuple[list[ast.stmt], int]] = []

    def visit(block: list[ast.stmt]) -> None:
        for at, node in enumerate(block):
            found.append((block, at))
            for inner in ("body", "orelse"):
                visit(getattr(node, inner, None) or [])

    visit(_function(tree).body)
    return found


def _assigned(tree: ast.Module) -> list[tuple[str, ast.Assign]]:
    """The assignments to one name, as they stand."""
    found: list[tuple[str, ast.Assign]] = []
    for block, at in _places(tree):
        match block[at]:
            case ast.Assign(targets=[ast.Name(id=name)]) as node:
                found.append((name, node))
            case _:
                pass
    return found


def _expressions(tree: ast.Module) -> list[ast.expr]:
    """What operations compute, the outermost first."""
    kinds = (ast.Call, ast.BinOp, ast.UnaryOp, ast.IfExp)
    function = _function(tree)
    return [node for node in ast.walk(function) if isinstance(node, kinds)]


def _scaled(case: Case, old: int, new: int) -> Case:
    """The case with another number in place of one, and of its multiples."""
    tree = _tree(case)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            if node.value == old:
                node.value = new
            elif old > 4 and node.value and node.value % old == 0:
                node.value = node.value // old * new
    variables = {
        name: replace(value, shape=tuple(_swap(n, old, new) for n in value.shape))
        for name, value in (case.variables or {}).items()
    }
    return replace(_with(case, tree), variables=variables)


def _swap(size: int, old: int, new: int) -> int:
    if size == old:
        return new
    return size // old * new if old > 4 and size % old == 0 else size


class _Replace(ast.NodeTransformer):
    """Puts a node in another one's place."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, copy.deepcopy(new)

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else super().visit(node)
