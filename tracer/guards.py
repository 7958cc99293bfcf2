"""Guards: what a compiled function assumes about the world outside, checked at each call.

Before a function is traced, `reads.find_reads` lists the outside values that its code reads. Arrays
among them become hidden inputs (`outside.Outside`), so their elements may change freely. Everything
else is remembered here and compared at each call; a value that has changed is traced anew.

- Numbers, strings, None, dtypes: by type and value (1, 1.0 and True differ, and so do 0.0 and -0.0).
- Tuples, lists, sets and dicts: by content, order included.
- Objects of the user's classes: by class and by all attributes, recursively; a path that reads one
  attribute is guarded by that attribute alone.
- Functions: by identity and code, with their defaults; other objects by identity.
- Arrays that cannot be hidden inputs (in attributes of classes, in objects inside of a list): by
  content. Large ones are better passed as arguments.

The module `reads` says what cannot be seen.
"""

from __future__ import annotations

import enum
import math
import reprlib
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..ir.record import record
from .reads import Path, is_user_module

_PLAIN = frozenset({type(None), bool, int, str, bytes, range, type(Ellipsis)})
_DEPTH = 12  # containers and objects deeper than that are compared by identity


class Identity:
    """Equal to the same object only. Keeps it alive, so that its address is not used again."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value


def freeze(value: Any, depth: int = 0) -> Any:
    """A snapshot of `value` that compares equal to a later one if nothing in it has changed."""
    cls = type(value)
    if cls in _PLAIN:
        return (cls, value)
    if cls is float:
        return (cls, value if value == value else "nan", math.copysign(1.0, value))
    if cls is complex:
        return (cls, freeze(value.real), freeze(value.imag))
    if isinstance(value, np.ndarray):
        return (Identity(value), value.dtype, value.shape, value.strides, value.tobytes())
    if isinstance(value, np.generic):
        return (cls, value.tobytes())
    if isinstance(value, (np.dtype, enum.Enum)):
        return (cls, value)
    if isinstance(value, FunctionType):
        defaults = freeze((value.__defaults__, value.__kwdefaults__), depth + 1)
        return (Identity(value), Identity(value.__code__), defaults)
    if isinstance(value, (type, ModuleType)) or depth > _DEPTH:
        return Identity(value)
    if isinstance(value, dict):
        items = ((freeze(k, depth + 1), freeze(v, depth + 1)) for k, v in value.items())
        return (cls, tuple(items))
    if isinstance(value, (list, tuple)):
        return (cls, tuple(freeze(item, depth + 1) for item in value))
    if isinstance(value, (set, frozenset)):
        return (cls, value.copy())
    if is_random_state(value):
        return (Identity(value), random_state(value))
    if callable(value) and hasattr(value, "__wrapped__"):
        return Identity(value)
    if is_user_module(cls.__module__):
        attributes = attributes_of(value)
        if attributes is not None:
            frozen = ((k, freeze(v, depth + 1)) for k, v in attributes.items())
            return (cls, tuple(frozen))
    return Identity(value)


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Instance attributes, from the dictionary and from slots; None if it has neither."""
    found = dict(getattr(value, "__dict__", {}))
    slots = [s for cls in type(value).__mro__ for s in _slots(cls)]
    for name in slots:
        try:
            found[name] = getattr(value, name)
        except AttributeError:
            continue
    return found if slots or hasattr(value, "__dict__") else None


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(
        f"_{cls.__name__.lstrip('_')}{n}" if n.startswith("__") and not n.endswith("__") else n
        for n in names
        if n not in ("__weakref__", "__dict__")
    )


def is_random_state(value: Any) -> bool:
    """Whether `value` is one of NumPy's random generators."""
    return type(value).__module__.startswith("numpy.random") and (
        hasattr(value, "bit_generator") or hasattr(value, "get_state")
    )


def random_state(value: Any) -> str:
    if hasattr(value, "bit_generator"):
        return repr(value.bit_generator.state)
    return repr(value.get_state(legacy=False))


@record
class Guard:
    """One value that a compiled function assumes."""

    path: Path
    value: Any
    frozen: Any
    shown: str  # how it looked
    by_identity: bool = False

    @staticmethod
    def of(path: Path, value: Any, by_identity: bool = False) -> Guard:
        frozen = Identity(value) if by_identity else freeze(value)
        return Guard(path, value, frozen, show(value), by_identity)

    def holds(self) -> bool:
        try:
            now = self.path.read()
        except (KeyError, ValueError, AttributeError, TypeError):
            return False
        if self.by_identity:
            return now is self.value
        return bool(freeze(now) == self.frozen)

    def change(self) -> str:
        """What to tell the user: `lr` changed from 0.1 to 0.2."""
        try:
            now = show(self.path.read())
        except (KeyError, ValueError, AttributeError, TypeError):
            return f"`{self.path}` is gone"
        if self.shown == now:
            return f"`{self.path}` ({now}) has changed inside"
        return f"`{self.path}` changed from {self.shown} to {now}"


class _Shorten(reprlib.Repr):
    def repr_ndarray(self, array: Any, level: int) -> str:
        return f"ndarray {array.dtype}{list(array.shape)}"

    def repr_instance(self, value: Any, level: int) -> str:
        if isinstance(value, (FunctionType, type)):
            return getattr(value, "__qualname__", repr(value))
        return super().repr_instance(value, level)


show = _Shorten().repr


class Source:
    """Python source under construction, with the objects that it refers to by made-up names."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self._known: dict[int, str] = {}

    def name(self, value: Any) -> str:
        found = self._known.get(id(value))
        if found is None:
            found = self._known[id(value)] = f"v{len(self.names)}"
            self.names[found] = value
        return found

    def read(self, path: Path) -> str:
        """An expression for the current value at `path`."""
        root = self.name(path.root)
        if path.kind == "global":
            root = f"{root}[{path.name!r}]"
        elif path.kind == "cell":
            root = f"{root}.cell_contents"
        else:
            root = f"{root}()"
        return ".".join((root, *path.attrs))

    def compile(self, name: str) -> Callable[[], Any]:
        namespace = dict(self.names)
        exec("\n".join(self.lines), namespace)
        function: Callable[[], Any] = namespace[name]
        return function


def write_guards(source: Source, guards: Iterable[Guard], indent: str) -> None:
    """Lines that `return None` when a guard does not hold."""
    for guard in guards:
        read, kind = source.read(guard.path), type(guard.value)
        if guard.by_identity or guard.value is None or isinstance(guard.frozen, Identity):
            line = f"if {read} is not {source.name(guard.value)}: return None"
        elif kind in (bool, int, str):
            value = source.name(guard.value)
            line = (
                f"if (x := {read}) is not {value} and "
                f"(x.__class__ is not {kind.__name__} or x != {value}): return None"
            )
        elif kind is FunctionType and not (guard.value.__defaults__ or guard.value.__kwdefaults__):
            value, code = source.name(guard.value), source.name(guard.value.__code__)
            line = f"if (x := {read}) is not {value} or x.__code__ is not {code}: return None"
        else:
            frozen = source.name(guard.frozen)
            line = f"if {source.name(freeze)}({read}) != {frozen}: return None"
        source.lines.append(indent + line)
