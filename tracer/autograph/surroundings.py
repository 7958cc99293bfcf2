"""What functions that a branch or loop calls may change: attributes, elements of containers, closures.

    while model.error() > tol:      # the statement itself assigns to nothing,
        model.step()                # but `step` says self.w = ..., self.n += 1

A `Surroundings` is a snapshot of every *slot* that is reached from the names which a statement reads:
attributes of objects of the user's classes, elements of lists, dicts and sets, and the cells that
functions close over. What differs after the statement was traced is merged or carried as variables are.

Arrays that NumPy made have no such slots. Where a called function assigns numbers to elements of one,
which happens while it is traced, whatever the condition says, the function is traced again, and
they are traced arrays.
"""

from __future__ import annotations

import functools
import io
import itertools
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from types import (
    BuiltinFunctionType,
    CellType,
    EllipsisType,
    FunctionType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any
from zlib import crc32

import numpy as np

from ...ir.record import record
from ..captures.paths import is_user_module
from ..containers.kinds import inherit
from ..control.unions import Union
from ..core.sharing import trace_again
from ..core.tracers import Tracer
from ..messages import errors
from ..messages.errors import complain
from .syntax.nodes import HELPERS
from .variables import Undefined, is_own_array, put, refill

_LIMIT = 5000  # objects looked at: what lies behind them is not tracked
_PLAIN = (
    *(Tracer, Undefined, type, str, bytes, bool, int, float, complex, NoneType, EllipsisType),
    *(slice, range, frozenset, ModuleType, BuiltinFunctionType, np.ndarray, np.generic, np.dtype),
)
_STATES: dict[type, Callable[[Any], Any]] = {  # objects that change and are no trees
    bytearray: bytes,
    array: lambda x: (x.typecode, x.tobytes()),
    io.StringIO: lambda x: (x.getvalue(), x.tell()),
    io.BytesIO: lambda x: (x.getvalue(), x.tell()),
    itertools.count: repr,
    itertools.cycle: lambda x: repr(x.__reduce__()),
    **dict.fromkeys(map(type, (iter([]), iter(()), iter(range(0)), iter(""))), length_hint),
    **dict.fromkeys((type(iter({})), type(iter(set()))), length_hint),
}
_KNOWN = (__name__.partition(".")[0], "numpy")  # whose objects do not change, or as is known


@record
class Slot:
    """Where a value is kept. `kind` is "attribute" (`key` of `holder`), "item", "cell" or "content" (of
    a list that changes its length, or of a set)."""

    kind: str
    holder: Any
    key: Any
    name: str

    def __hash__(self) -> int:
        return hash((self.kind, id(self.holder), repr(self.key)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Slot) or self.kind != other.kind:
            return False
        return self.holder is other.holder and bool(self.key == other.key)

    def get(self) -> Any:
        holder = self.holder
        try:
            if self.kind == "attribute":
                return getattr(holder, self.key)
            if self.kind == "cell":
                return holder.cell_contents
            if self.kind == "item":
                return holder[self.key]
            content = holder.copy()
            inherit(holder, content)
            return content
        except (AttributeError, KeyError, IndexError, ValueError):
            return Undefined(self.name)

    def put(self, value: Any) -> None:
        holder, missing = self.holder, type(value) is Undefined
        if self.kind == "attribute":
            put(holder, self.key, value)
        elif self.kind == "content":
            refill(holder, value)
        elif self.kind == "cell":
            holder.cell_contents = value
        elif not missing:
            holder[self.key] = value
        elif isinstance(holder, dict):
            holder.pop(self.key, None)


class Surroundings:
    """The slots reached from named values, and what they hold now."""

    def __init__(self, roots: Iterable[tuple[str, Any]]) -> None:
        self.saved: list[tuple[str, Any, Any, str]] = []  # kind, holder, a copy of it, name
        self.complete = True  # nothing was met that may change in ways that are not seen
        seen: set[int] = set()
        waiting = list(roots)[::-1]
        while waiting and len(seen) < _LIMIT:
            name, x = waiting.pop()
            if is_own_array(x) and x.flags.writeable and id(x) not in seen:
                seen.add(id(x))
                self.saved.append(("array", x, _checksum(x), name))
            if id(x) not in seen and not isinstance(x, _PLAIN):
                seen.add(id(x))
                waiting += self._enter(name, x)
        self.complete &= not waiting

    def _enter(self, name: str, x: Any) -> list[tuple[str, Any]]:
        """Note the slots in `x`; returns what they hold."""
        if isinstance(x, (list, dict, set, tuple, deque)):
            if not isinstance(x, tuple):
                self.saved.append(("set" if isinstance(x, set) else "items", x, x.copy(), name))
            pairs = x.items() if isinstance(x, dict) else enumerate(x)
            return [(f"{name}[{key!r}]", value) for key, value in pairs]
        if type(x) is Union:
            return [(name, option) for option in x.options.values()]
        if isinstance(x, FunctionType):
            return self._cells(x) if is_user_module(x.__globals__.get("__name__")) else []
        if isinstance(x, MethodType):
            return [(name.rpartition(".")[0] or name, x.__self__), (name, x.__func__)]
        if isinstance(x, functools.partial):
            return [(name, x.func), (name, x.args), (name, x.keywords)]
        if type(x) in _STATES or type(x).__module__ == "queue":
            self.saved.append(("state", x, _state(x), name))
            self.complete = False
            return []
        if not is_user_module(type(x).__module__):
            self.complete &= str(type(x).__module__).partition(".")[0] in _KNOWN
            return []
        content = dict(_attributes(x))
        self.saved.append(("attributes", x, content, name))
        methods = (f for kind in type(x).__mro__ for f in list(vars(kind).items()))
        functions = [(key, f) for key, f in methods if isinstance(f, FunctionType)]
        return [*functions, *((f"{name}.{key}", value) for key, value in content.items())]

    def _cells(self, function: FunctionType) -> list[tuple[str, Any]]:
        variables = []
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for variable, cell in cells:
            if variable.startswith(HELPERS):
                continue
            value = _content(variable, cell)
            self.saved.append(("cell", cell, value, variable))
            variables.append((variable, value))
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        variables += [(f"a default of {function.__name__}", x) for x in defaults]
        names = function.__code__.co_names
        of_globals = ((n, function.__globals__[n]) for n in names if n in function.__globals__)
        return variables + [(n, x) for n, x in of_globals if not isinstance(x, ModuleType)]

    def changes(self) -> list[tuple[Slot, Any]]:
        """The slots that hold something else now, with what they held."""
        return [change for entry in self.saved for change in _differences(*entry)]

    def restore(self) -> None:
        for slot, old in self.changes():
            slot.put(old)


def _attributes(x: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(x, "__dict__", {}).items()
    for kind in type(x).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(x, name):
                yield name, getattr(x, name)


def _content(name: str, cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return Undefined(name)


def _checksum(x: np.ndarray[Any, Any]) -> int:
    return crc32(x.reshape(-1).view(np.uint8).data if x.flags.c_contiguous else x.tobytes())


def _state(x: Any) -> Any:
    return _STATES[type(x)](x) if type(x) in _STATES else list(x.queue)


def _differences(kind: str, holder: Any, old: Any, name: str) -> Iterator[tuple[Slot, Any]]:
    if kind == "cell":
        now = _content(name, holder)
        if now is not old and not (type(now) is type(old) is Undefined):
            yield Slot("cell", holder, None, name), old
    elif kind == "set":
        if holder != old:
            yield Slot("content", holder, None, name), old
    elif kind == "array":
        if _checksum(holder) != old:
            trace_again()
            complain(
                errors.OuterMutationError,
                f"{name}, an array that NumPy made, is assigned into by what a branch or loop that "
                "depends on a traced value calls",
                "pass the array to the jitted function, or make it of traced values.",
            )
    elif kind == "state":
        if _state(holder) != old:
            complain(
                errors.OuterMutationError,
                f"{name}, of type {type(holder).__name__}, is changed in a branch or loop that depends "
                "on a traced value",
                "keep what changes there in variables, lists, dicts, arrays or attributes.",
            )
    elif isinstance(holder, (list, deque)):
        if len(holder) != len(old):
            yield Slot("content", holder, None, name), old
        else:
            for i, (a, b) in enumerate(zip(holder, old, strict=True)):
                if a is not b:
                    yield Slot("item", holder, i, f"{name}[{i}]"), b
    else:
        now = holder if kind == "items" else dict(_attributes(holder))
        for key in dict.fromkeys([*old, *now]):
            if key not in old or key not in now or old[key] is not now[key]:
                before = old[key] if key in old else Undefined(f"{name}.{key}")
                if kind == "items":
                    yield Slot("item", holder, key, f"{name}[{key!r}]"), before
                else:
                    yield Slot("attribute", holder, key, f"{name}.{key}"), before
