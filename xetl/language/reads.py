"""Record the Python values outside of a kernel that its compilation reads.

A *read* is a question with its answer, for example the attribute ``CONST`` of the
object of an earlier read. The compiled code depends only on the answers, so they are
part of the keys of caches. Asking again shows whether code is still valid: another
process follows the questions from the kernel, and a launch looks where the values were
found (`xetl.runtime.executables`).
"""

from __future__ import annotations

import builtins
import hashlib
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any, NamedTuple, cast

import numpy as np

from xetl.language.contents import content, is_fixed, is_opaque, is_plain
from xetl.language.dtypes import DType
from xetl.language.operation import Function, operation_name


class Question(NamedTuple):
    """The place of a value.

    Attributes:
        owner: the number of the object that has the value: the kernel is 0,
            compile-time arguments come next, then the answers of earlier questions.
        kind: name, default, attribute, item, contains, or element (of a sequence).
        key: a name, or the text of an index (see `Reads._text_of`).
    """

    owner: int
    kind: str
    key: str


class Captured(NamedTuple):
    """A value and the place where it was found, for the check at each launch.

    Attributes:
        test: an expression of ``{o}``, ``{k}`` and ``{v}``: owner, key and value.
        owner: a namespace, a closure cell, or any object.
        key: an index, or None.
        value: the value that was found.
    """

    test: str
    owner: Any
    key: object
    value: object


class UnreadableError(Exception):
    """A value cannot be distinguished from another one later; the message says why."""


class Reads:
    """The reads of one compilation; with ``follow``, its questions are asked again.

    Attributes:
        questions: the questions in the order they were asked.
        answers: a text for each question; objects have numbers.
        captured: the places of the values, for the check at each launch.

    Raises:
        Exception: any exception that the objects of a user raise on access.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        constants: Mapping[str, object],
        follow: Sequence[Question] | None = None,
    ) -> None:
        self.questions: list[Question] = []
        self.answers: list[str] = []
        self.captured: list[Captured] = []
        self._objects: list[Any] = []
        self._shown: list[str] = []
        self._numbers: dict[int, int] = {}
        self._known: dict[Question, Any] = {}
        for name, value in {"": function, **constants}.items():
            self._add(value, name)
        if follow is None:
            for number, value in enumerate(constants.values(), 1):
                self._look_inside(value, number)
        for question in follow or ():
            self._answer(question)

    # Asking ----------------------------------------------------------------------

    def name(self, function: Callable[..., Any], name: str) -> Any:
        """Return the value of a global or closure name; a KeyError if there is none."""
        return self._ask(self._number(function), "name", name)

    def attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of an object that is known when compiling."""
        is_known = id(owner) in self._numbers
        if is_fixed(owner):
            value = getattr(owner, name)
            if is_fixed(value) or not is_known:
                return value
        elif type(owner) in (list, tuple) and not is_known:  # made by the kernel
            return getattr(owner, name)
        return self._ask(self._number(owner), "attribute", name)

    def item(self, owner: Any, index: Any) -> Any:
        """Return an element of an object that is known when compiling."""
        if is_plain(owner) or type(owner) in (list, tuple):
            return owner[index]  # known as a whole
        return self._ask(self._number(owner), "item", repr(self._text_of(index)))

    def contains(self, owner: Any, value: Any) -> bool:
        """Whether ``value in owner``."""
        if not is_opaque(owner):
            return value in owner
        key = repr(self._text_of(value))
        return self._ask(self._number(owner), "contains", key)

    def defaults(self, function: Any) -> dict[str, Any]:
        """Return the defaults of the parameters of a function."""
        code, values = function.__code__, function.__defaults__ or ()
        places = code.co_varnames[: code.co_argcount]
        names = places[len(places) - len(values) :]
        keys: dict[str, object] = {name: i for i, name in enumerate(names)}
        keys |= {name: name for name in function.__kwdefaults__ or ()}
        number = self._number(function) if keys else 0
        return {n: self._ask(number, "default", repr(key)) for n, key in keys.items()}

    # Results -----------------------------------------------------------------------

    def digest(self, base: str) -> str:
        """Return a key of the answers and of ``base``: all other inputs of the code."""
        texts = (base, *map(repr, map(tuple, self.questions)), *self.answers)
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def functions(self) -> list[Any]:
        """Return the Python functions that were read, the kernel first."""
        found = {id(fn): fn for fn in map(_unmarked, self._objects)}
        functions = (fn for fn in found.values() if isinstance(fn, FunctionType))
        return [fn for fn in functions if operation_name(fn) is None]

    def values(self) -> dict[str, str]:
        """Return the reads as the user writes them, each with its value in words."""
        found: dict[str, str] = {}
        start = len(self._objects) - len(self.questions)
        for shown, value in zip(self._shown[start:], self._objects[start:]):
            if isinstance(value, ModuleType) or (callable(value) and is_fixed(value)):
                continue
            text = content(value).partition("\n")[0]
            if type(value) in (list, tuple) and not is_opaque(value):
                text = f"{type(value).__name__} {value!r}"
            found[shown] = text
        return found

    # Implementation ------------------------------------------------------------------

    def _ask(self, owner: int, kind: str, key: str) -> Any:
        question = Question(owner, kind, key)
        if question not in self._known:
            number = len(self._objects)
            self._known[question] = value = self._answer(question)
            self._look_inside(value, number)
        return self._known[question]

    def _answer(self, question: Question) -> Any:
        """Look a value up, and record question, answer and place."""
        owner = self._objects[question.owner]
        index, shown = self._index(question)
        value, expression, place = _LOOK[question.kind](owner, index)
        is_lasting = True
        if question.kind in ("attribute", "item", "contains"):
            again = _LOOK[question.kind](owner, index)[0]
            is_lasting = again is value
            if not is_lasting and content(again) != content(value):
                raise UnreadableError(f"`{shown}` is another value each time")
        self._add(value, shown, is_lasting=is_lasting)
        number = self._numbers.get(id(value), "") if is_lasting else ""
        self.questions.append(question)
        self.answers.append(f"{content(value)} #{number}")
        if expression is None:
            pass
        elif is_lasting:
            test = f"{expression} is {{v}}"
            self.captured.append(Captured(test, place, index, value))
        else:
            test = f"content({expression}) == {{v}}"
            self.captured.append(Captured(test, place, index, content(value)))
        self._watch(value)
        return value

    def _add(self, value: Any, shown: str, *, is_lasting: bool = True) -> None:
        """Number an object, unless each access makes a new one (not ``is_lasting``)."""
        if is_lasting and not is_plain(value):
            self._numbers.setdefault(id(value), len(self._objects))
            if isinstance(value, Function):
                self._numbers.setdefault(id(_unmarked(value)), len(self._objects))
        self._objects.append(value)
        self._shown.append(shown)

    def _number(self, value: Any) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            kind = type(value).__name__
            raise UnreadableError(f"this object of type {kind} is made at each look")
        return number

    def _look_inside(self, value: Any, number: int) -> None:
        """Number the objects in a sequence, for reads of their contents."""
        if isinstance(value, list | tuple):
            for index, each in enumerate(cast("list[Any]", value)):
                if not is_plain(each):
                    self._ask(number, "element", repr(index))

    def _watch(self, value: Any) -> None:
        """Record the elements of a list, which may be set in place."""
        if isinstance(value, list):
            items = tuple(cast("list[Any]", value))
            test = f"len({{o}}) == {len(items)} and all(map(is_, {{o}}, {{v}}))"
            self.captured.append(Captured(test, value, None, items))

    def _index(self, question: Question) -> tuple[Any, str]:
        """Return the key of a question as an object, and its form as users write it."""
        owner, key = self._shown[question.owner], question.key
        if question.kind == "name":
            return key, key
        if question.kind == "attribute":
            return key, f"{owner}.{key}"
        index = self._object_of(literal_eval(key))
        if question.kind == "contains":
            return index, f"{index!r} in {owner}"
        return index, f"{owner}[{index!r}]"

    def _text_of(self, index: Any) -> Any:
        """Return an index for `literal_eval`: objects as numbers, dtypes by name."""
        kind: Any = cast("object", type(index))
        if isinstance(index, np.generic):
            return ("", cast("np.generic[Any]", index).item())
        if kind in (type(None), bool, int, float, str, bytes):
            return ("", index)
        if isinstance(index, DType):
            return ("dtype", index.name)
        if kind is tuple and id(index) not in self._numbers:
            return ("tuple", [self._text_of(each) for each in index])
        if kind is slice:
            parts = (index.start, index.stop, index.step)
            return ("slice", [self._text_of(part) for part in parts])
        return ("object", self._number(index))

    def _object_of(self, text: Any) -> Any:
        """Return the index of a text of `_text_of`."""
        if not isinstance(text, tuple):  # of an element or a default
            return text
        kind, value = cast("tuple[str, Any]", text)
        if kind == "":
            return value
        if kind == "dtype":
            return DType.of(value)
        if kind == "object":
            return self._objects[value]
        items = map(self._object_of, value)
        return tuple(items) if kind == "tuple" else slice(*items)


# A value, the expression that finds it (None: nothing can change it) and its `{o}`.
_Found = tuple[Any, str | None, Any]


def _unmarked(value: Any) -> Any:
    return cast("Any", value).fn if isinstance(value, Function) else value


def _name(marked: Any, name: str) -> _Found:
    function = _unmarked(marked)
    free = function.__code__.co_freevars
    if name in free:
        cell = function.__closure__[free.index(name)]
        try:
            return cell.cell_contents, "{o}.cell_contents", cell
        except ValueError:  # the enclosing function has not assigned it yet
            raise KeyError(name) from None
    scope = function.__globals__
    if name in scope:
        value = scope[name]
        # `np` is never rebound, and a check would cost time in nearly every kernel.
        lasts = isinstance(value, ModuleType) and is_fixed(value)
        return value, None if lasts else "{o}[{k}]", scope
    return vars(builtins)[name], None, None


def _default(marked: Any, key: int | str) -> _Found:
    function = _unmarked(marked)
    if isinstance(key, int):
        return function.__defaults__[key], "{o}.__defaults__[{k}]", function
    return function.__kwdefaults__[key], "{o}.__kwdefaults__[{k}]", function


_LOOK: dict[str, Callable[[Any, Any], _Found]] = {
    "name": _name,
    "attribute": lambda owner, name: (getattr(owner, name), f"{{o}}.{name}", owner),
    "item": lambda owner, index: (owner[index], "{o}[{k}]", owner),
    "contains": lambda owner, key: (key in owner, "({k} in {o})", owner),
    # Changes of elements: see `Reads._watch`.
    "element": lambda owner, index: (list(owner)[index], None, None),
    "default": _default,
}
