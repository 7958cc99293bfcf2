"""The places of a tree: what holds what, and the path of each.

A path is written as in Python, without the tree's own name: `model.layers[0].w`, `['a key'].x`.
Containers are dicts, lists, tuples, and objects, whose parts are their attributes. Generators and
what has `state()` and `restore(state)` are leaves, and so are arrays and plain values.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import numpy as np

import jitney as jt

GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_LISTS = (list, tuple, deque)
_DICTS = (dict, OrderedDict, defaultdict)
_STATIC = (
    *(type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType),
    *(functools.partial, np.ufunc, np.dtype, slice, types.EllipsisType, enum.Enum, PurePath),
)


class Kind(enum.Enum):
    """What stands at a place."""

    PLAIN = "plain"
    ARRAY = "array"
    GENERATOR = "generator"
    STATEFUL = "stateful"
    DICT = "dict"
    LIST = "list"
    TUPLE = "tuple"
    OBJECT = "object"
    STATIC = "static"
    UNKNOWN = "unknown"


DEEPEST = 100  # levels
CONTAINERS = frozenset({Kind.DICT, Kind.LIST, Kind.TUPLE, Kind.OBJECT})


def kind_of(value: Any) -> Kind:
    """The kind of a value."""
    cls = type(value)
    if cls in _PLAIN:
        return Kind.PLAIN
    if is_array(value):
        return Kind.ARRAY
    if isinstance(value, GENERATORS):
        return Kind.GENERATOR
    if cls in _DICTS:
        return Kind.DICT
    if cls in (list, deque):
        return Kind.LIST
    if cls is tuple:
        return Kind.TUPLE
    if isinstance(value, _STATIC) or cls.__module__.startswith("jitney.tracer."):
        return Kind.STATIC
    if callable(getattr(value, "state", None)) and callable(getattr(value, "restore", None)):
        return Kind.STATEFUL
    if isinstance(value, tuple) and hasattr(cls, "_fields"):
        return Kind.OBJECT
    if cls.__module__ == "builtins" or not (hasattr(value, "__dict__") or slots(cls)):
        return Kind.UNKNOWN
    return Kind.OBJECT


def is_array(value: Any) -> bool:
    """Whether it is an array: NumPy's, a scalar of NumPy's, one on a device, a Variable, a spec."""
    if isinstance(value, (np.ndarray, np.generic)):
        return True
    return isinstance(value, (jt.DeviceArray, jt.ShapeDtype)) or is_variable(value)


def is_variable(value: Any) -> bool:
    """Whether it is a `jt.Variable`."""
    return isinstance(value, jt.Variable)


def is_module(value: Any) -> bool:
    """Whether it is an `nn.Module`, whose numbers and texts are settings."""
    return isinstance(value, jt.nn.Module)


def parts(value: Any, kind: Kind) -> list[tuple[Any, Any]]:
    """The keys and values in a container."""
    if kind is Kind.DICT:
        return list(value.items())
    if kind is not Kind.OBJECT:
        return list(enumerate(value))
    if isinstance(value, tuple):
        return list(zip(type(value)._fields, value, strict=True))  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        extra = [name for name in getattr(value, "__dict__", {}) if name not in names]
        return [(name, getattr(value, name)) for name in names + extra if hasattr(value, name)]
    names = [*getattr(value, "__dict__", {}), *slots(type(value))]
    return [(name, getattr(value, name)) for name in names if hasattr(value, name)]


def slots(cls: type) -> tuple[str, ...]:
    """The attributes that instances have in slots."""
    found: list[str] = []
    for base in reversed(cls.__mro__):
        own = vars(base).get("__slots__", ())
        found += [own] if isinstance(own, str) else own
    return tuple(name for name in found if name not in ("__dict__", "__weakref__"))


def arrays(tree: Any) -> Iterator[tuple[str, Any]]:
    """The arrays in a tree with their paths, modules and other objects taken apart.

    >>> [path for path, _ in jt.train.arrays({"layers": [np.ones(2), {"w": np.ones(3)}]})]
    ['layers[0]', 'layers[1].w']
    """
    return ((path, value) for path, value in leaves(tree) if kind_of(value) is Kind.ARRAY)


def leaves(value: Any, path: str = "", in_module: bool = False) -> Iterator[tuple[str, Any]]:
    """The places that a checkpoint may have values for."""
    kind = kind_of(value)
    if kind in CONTAINERS:
        check_depth(path, value)
        inside = in_module or is_module(value)
        for key, part in parts(value, kind):
            yield from leaves(part, child(path, key, kind), inside)
    elif kind not in (Kind.STATIC, Kind.UNKNOWN) and (
        not in_module or kind is not Kind.PLAIN or value is None
    ):
        yield path, value


def child(path: str, key: Any, kind: Kind) -> str:
    """The path of a part."""
    if isinstance(key, str) and key.isidentifier():
        return f"{path}.{key}" if path else key
    return f"{path}[{key!r}]"


def check_depth(path: str, value: Any) -> None:
    """ValueError for a place that lies deeper than any should."""
    if path.count(".") + path.count("[") > DEEPEST:
        start = path[:40].rpartition(".")[0] or path[:40]
        raise ValueError(
            f"{start}... lies deeper than {DEEPEST} levels, or contains itself: it ends in a "
            f"{type(value).__qualname__}"
        )


def shown(path: str) -> str:
    """The path as messages say it."""
    return path or "the tree itself"


class Renaming:
    """Names to names: `{"my_v2": "v2"}` renames `my_v2` and all below it (`my_v2.w`, `my_v2[0]`);
    `*` stands for any text, which goes where the other name has its `*`."""

    def __init__(self, names: dict[str, str]) -> None:
        self._rules = []
        for old, new in names.items():
            if new.count("*") not in (0, old.count("*")):
                raise ValueError(
                    f"{new!r} has another number of * than {old!r}: give as many, or none"
                )
            self._rules.append((old, _pattern(old), new))
        self._unused = set(names)

    def __call__(self, name: str) -> str:
        for old, pattern, new in self._rules:
            if match := pattern.fullmatch(name):
                self._unused.discard(old)
                *stars, rest = match.groups()
                if "*" in new:
                    pieces = new.split("*")
                    new = pieces[0] + "".join(a + b for a, b in zip(stars, pieces[1:], strict=True))
                return (new + rest).removeprefix("." if not new else "")
        return name

    @property
    def unused(self) -> list[str]:
        """What no name fitted."""
        return sorted(self._unused)


def matches(name: str, patterns: Any) -> bool:
    """Whether a name is one of the patterns (a text, several, or a function of the name), or below
    one."""
    if patterns is None:
        return True
    if callable(patterns):
        return bool(patterns(name))
    several = [patterns] if isinstance(patterns, str) else patterns
    return any(_pattern(pattern).fullmatch(name) for pattern in several)


@functools.lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    body = "(.*?)".join(map(re.escape, text.split("*")))
    return re.compile(body + r"((?:[.\[].*)?)", re.DOTALL)


def nearest(name: str, names: Iterator[str] | list[str]) -> str:
    """A hint: the names that are most alike."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(names), n=2, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
