"""Guards: what a compiled function assumes about the world outside, checked at each call.

Before a function is traced, `free_variables.find_free_variables` lists the outside values that its
code reads. Arrays among them become hidden inputs (`captured_variables.CapturedVariables`), so
their elements may change freely. Everything else is remembered here and compared at each call; a
value that has changed is traced anew. What a value is made of, and what of it is compared, `frozen`
says.

Arrays that cannot be hidden inputs (in attributes of classes, in objects inside of a list) are compared
by content. Large ones are better passed as arguments.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from ...ir.record import record
from ..data.closures import closure_key
from .frozen import Identity, freeze
from .paths import ABSENT, Path


@record
class Guard:
    """One value that a compiled function assumes. `how` is it compared: "" by content, "is" by identity
    (or it is a function that does the same), "code" of a function by its code; "absent" is nothing where
    something could be."""

    path: Path
    value: Any
    frozen: Any
    shown: str  # how it looked
    how: str = ""

    @staticmethod
    def of(path: Path, value: Any, how: str = "") -> Guard:
        frozen = None if how else freeze(value)
        if how == "code":
            frozen = value.__code__
        elif how == "is" and type(value) is FunctionType:
            frozen = closure_key(value)
        return Guard(path, value, frozen, "" if how == "absent" else show(value), how)

    @property
    def by_identity(self) -> bool:
        return self.how == "is" or (not self.how and isinstance(self.frozen, Identity))

    def holds(self) -> bool:
        now = self.path.find()
        if now is ABSENT or self.how == "absent":
            return now is ABSENT and self.how == "absent"
        if self.how == "code":
            return now is self.value and now.__code__ is self.frozen
        if self.by_identity:
            return now is self.value or self._does_the_same(now)
        return bool(freeze(now) == self.frozen)

    def _does_the_same(self, now: Any) -> bool:
        known = self.how == "is" and self.frozen is not None and type(now) is FunctionType
        return known and closure_key(now) == self.frozen

    def change(self) -> str:
        """What to tell the user: `lr` changed from 0.1 to 0.2."""
        now = self.path.find()
        if now is ABSENT:
            return f"`{self.path}` is gone"
        if self.how == "absent":
            return f"`{self.path}` is new"
        if self.shown == show(now):
            return f"`{self.path}` ({self.shown}) has changed inside"
        return f"`{self.path}` changed from {self.shown} to {show(now)}"


class _Shorten(reprlib.Repr):
    def repr_ndarray(self, array: Any, level: int) -> str:
        return f"{type(array).__name__} {array.dtype}{list(array.shape)}"

    repr_DeviceArray = repr_ndarray  # which fetches no elements

    def repr_instance(self, value: Any, level: int) -> str:
        if issubclass(type(value), (FunctionType, type)):  # a proxy may ask for what is gone
            return getattr(value, "__qualname__", repr(value))
        return super().repr_instance(value, level)


show = _Shorten().repr


class SourceText:
    """Python source under construction, with the objects that it refers to by made-up names."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self._variables: dict[int, str] = {}

    def name(self, value: Any) -> str:
        variable = self._variables.get(id(value))
        if variable is None:
            variable = self._variables[id(value)] = f"v{len(self.names)}"
            self.names[variable] = value
        return variable

    def read(self, path: Path) -> str:
        """An expression for the current value at `path`."""
        root = self.name(path.root)
        if path.kind == "global":
            root = f"{root}[{path.name!r}]"
        elif path.kind == "cell":
            root = f"{root}.cell_contents"
        elif path.kind == "object":
            root = f"{root}()"
        return ".".join((root, *path.attrs))

    def compile(self, name: str) -> Callable[[], Any]:
        namespace = dict(self.names)
        exec("\n".join(self.lines), namespace)
        function: Callable[[], Any] = namespace[name]
        return function


def write_guards(source: SourceText, guards: Iterable[Guard], indent: str) -> None:
    """Lines that `return None` when a guard does not hold."""
    for guard in guards:
        value, kind = source.name(guard.value), type(guard.value)
        if guard.how == "absent":
            line = f"if not {source.name(guard)}.holds(): return None"
        elif guard.how == "code":
            code = source.name(guard.frozen)
            line = f"if {source.read(guard.path)}.__code__ is not {code}: return None"
        elif guard.how == "is" and guard.frozen is not None:
            now = source.read(guard.path)
            line = f"if {now} is not {value} and not {source.name(guard)}.holds(): return None"
        elif guard.by_identity or guard.value is None:
            line = f"if {source.read(guard.path)} is not {value}: return None"
        elif kind in (bool, int, str):
            line = (
                f"if (x := {source.read(guard.path)}) is not {value} and "
                f"(x.__class__ is not {kind.__name__} or x != {value}): return None"
            )
        else:
            frozen = source.name(guard.frozen)
            read = source.read(guard.path)
            line = f"if {source.name(freeze)}({read}) != {frozen}: return None"
        source.lines.append(indent + line)
