"""Code that nothing traced can reach: it may run as Python, as it was written.

    def is_prime(n):                 # called with numbers of Python's; reads `range` and nothing else
        for d in range(2, n): ...

Such code is *closed*: it calls only closed code and what is known to be pure, and whatever it is given
and finds outside is made of Python's own values. What has effects on the world (`print`), makes
arrays or draws random numbers is not closed, as compiled functions do that anew at each call.
"""

from __future__ import annotations

import builtins
import functools
import gc
import itertools
import opcode
from collections import Counter, OrderedDict, defaultdict, deque
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    EllipsisType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

import numpy as np

from ...ir.record import field, record
from .bytecode import NameUse, accesses
from .frozen import PROXIES
from .paths import is_user_module
from .purity_allow_list import is_pure_builtin, is_pure_module

_SCALARS = frozenset({int, float, complex, bool, str, bytes, range, NoneType, EllipsisType}) | {
    kind for kind in vars(np).values() if isinstance(kind, type) and issubclass(kind, np.generic)
}
_SEQUENCES = frozenset({list, tuple, set, frozenset, deque})
_DICTS = frozenset({dict, OrderedDict, defaultdict, Counter})
_EMPTY: list[Any] = [[], (), "", {}, set(), range(0), {}.keys(), {}.values(), {}.items()]
_ITERATORS = frozenset(  # which hold what they run over, and nothing else
    [type(iter(x)) for x in _EMPTY]
    + [type(reversed(x)) for x in _EMPTY if hasattr(x, "__reversed__")]
    + [type(x) for x in _EMPTY[-3:]]
    + [enumerate, zip, reversed]
    + [itertools.count, itertools.chain, itertools.islice, itertools.product, itertools.repeat]
    + [itertools.combinations, itertools.permutations, itertools.pairwise, itertools.cycle]
)
_ALSO_PURE = frozenset("setattr delattr hash bin hex oct ascii getattr hasattr".split())
_SPECIAL = frozenset("__init__ __class__ __name__ __len__ __next__ __iter__ __contains__".split())
_RAISES = opcode.opmap["RAISE_VARARGS"]
_LAZY = 0x20 | 0x80 | 0x200  # flags of generators and coroutines
_MANY = 200  # functions and classes looked into for one
_CACHED = type(functools.lru_cache(abs))
_MISSING: Any = object()


class Uses:
    """What a code object, with those inside of it, loads by name."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.globals: set[tuple[str, tuple[str, ...]]] = set()
        self.raises = False
        self.known = self._scan(code)  # whether nothing is in it that cannot be followed

    def _scan(self, code: CodeType) -> bool:
        self.raises |= _RAISES in code.co_code[::2]
        if code.co_flags & _LAZY & ~0x20:
            return False
        name = ""
        attrs: tuple[str, ...] = ()
        for use, loaded in [*accesses(code), (NameUse.NONE, "")]:
            if use is NameUse.ATTRIBUTE:
                if loaded.startswith("__") and loaded not in _SPECIAL:
                    return False
                attrs = (*attrs, loaded)
                continue
            if name:
                self.globals.add((name, attrs))
            name, attrs = (loaded if use is NameUse.GLOBAL else ""), ()
            if use is NameUse.IMPORT and not is_pure_module(loaded):
                return False
        return all(self._scan(c) for c in code.co_consts if isinstance(c, CodeType))


@record(frozen=False)
class Closed:
    """What a closed function or class needs to stay so: `names` stand for what they did (a namespace, a
    name, the value), and what is at `data` (places, and names there) consists of Python's own values."""

    names: list[tuple[Any, str, Any]] = field(default_factory=list)
    data: list[tuple[Any, str]] = field(default_factory=list)
    codes: set[CodeType] = field(default_factory=set)
    raises: bool = False

    def stands(self) -> bool:
        return all(_value_at(namespace, name) is value for namespace, name, value in self.names)


_uses: dict[int, Uses] = {}  # by the id of the code, which they keep


class ClosedCode:
    """What is known of functions and classes while one function is traced."""

    def __init__(self) -> None:
        self.known: dict[Any, tuple[Any, Closed | None]] = {}  # by id
        self.asked: set[Any] = set()
        self.tries: dict[CodeType, int] = {}  # loops that are not closed

    def closed(self, x: Any, room: int, key: Any = None) -> Closed | None:
        """What is known of a closed function, or of a class whose methods are; None of others. In the
        containers that it finds outside no more than `room` elements are looked at. Functions with one
        `key` are one."""
        key = id(x) if key is None else key
        _, known = self.known.get(key, (x, None))
        if key not in self.known or (known is not None and not known.stands()):
            known = _Judge().judged(x)
            self.known[key] = x, known
        if known is None or not known.data or key in self.asked:  # it finds itself
            return known
        self.asked.add(key)
        try:
            data = [found for place in known.data if (found := _value_at(*place)) is not _MISSING]
            return known if self.consists_of_data(data, room) else None
        finally:
            self.asked.discard(key)

    def consists_of_data(self, x: Any, room: int) -> bool:
        """Whether a value, with all that can be reached from it, is Python's own: numbers, texts,
        containers and iterators of such, closed functions, objects of closed classes. False, too, where
        more than `room` elements would have to be looked at."""
        waiting, seen = [x], set[int]()
        while waiting:
            x = waiting.pop()
            kind = type(x)
            if kind in _SCALARS or id(x) in seen:
                continue
            seen.add(id(x))
            room -= 1
            if kind in _SEQUENCES:
                room -= len(x)
                waiting += _unless_scalars(x, room)
            elif kind in _DICTS:
                room -= len(x)
                waiting += [getattr(x, "default_factory", None), *_unless_scalars(x, room)]
                waiting += _unless_scalars(x.values(), room)
            elif kind in _ITERATORS:
                waiting += gc.get_referents(x)
            elif kind in PROXIES:
                return False
            elif isinstance(x, (FunctionType, type)) and _is_users(x):
                if self.closed(x, room) is None:
                    return False
            elif isinstance(x, BuiltinFunctionType) and not isinstance(x.__self__, ModuleType):
                waiting.append(x.__self__)
            elif isinstance(x, MethodType) or (not _is_code(x) and _is_users(kind)):
                waiting += gc.get_referents(x)
            elif not _is_code(x) or not _is_pure(x):
                return False
            if room < 0:
                return False
        return True


class _Judge:
    def __init__(self) -> None:
        self.result = Closed()
        self.waiting: list[Any] = []

    def judged(self, x: Any) -> Closed | None:
        """What is known of `x` and of all functions and classes that it reaches."""
        seen: dict[int, Any] = {}
        self.waiting.append(x)
        while self.waiting:
            x = self.waiting.pop()
            if id(x) in seen:
                continue
            seen[id(x)] = x
            if len(seen) > _MANY or not (self._class if isinstance(x, type) else self._function)(x):
                return None
        return self.result

    def _function(self, function: FunctionType) -> bool:
        code = function.__code__
        uses = _uses.get(id(code))
        if uses is None:
            uses = _uses[id(code)] = Uses(code)
        if not uses.known:
            return False
        result = self.result
        result.codes.add(code)
        result.raises |= uses.raises
        result.names.append((function, "__code__", code))
        defaults = [(function, name) for name in ("__defaults__", "__kwdefaults__")]
        result.data += [place for place in defaults if _value_at(*place) is not None]
        cells = [
            (cell, "")
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
            if not name.startswith("_jt_")  # of a twin
        ]
        return all(self._note(*place) for place in cells) and all(
            self._global(function.__globals__, name, attrs) for name, attrs in uses.globals
        )

    def _global(self, namespace: Any, name: str, attrs: tuple[str, ...]) -> bool:
        if name not in namespace:
            self.result.names.append((namespace, name, _MISSING))
            namespace = vars(builtins)
        for attr in attrs:
            value = namespace.get(name)
            if not isinstance(value, ModuleType):
                break
            self.result.names.append((namespace, name, value))
            namespace, name = vars(value), attr
        return self._note(namespace, name)

    def _note(self, namespace: Any, name: str) -> bool:
        """Whether what is found there is closed; the user's functions and classes are entered later."""
        x = _value_at(namespace, name)
        if x is _MISSING and isinstance(namespace, CellType):
            self.result.data.append((namespace, name))
            return True
        if x is _MISSING:
            return False
        if type(x) is _CACHED:
            self.result.names.append((namespace, name, x))
            namespace, name, x = x, "__wrapped__", x.__wrapped__
        if hasattr(type(x), "__jitney_target__"):  # a jitted function, which others call as it is
            self.result.names.append((namespace, name, x))
            namespace, name, x = x, "__jitney_target__", x.__jitney_target__
        if isinstance(x, (staticmethod, classmethod)):
            namespace, name, x = x, "__func__", x.__func__
        if isinstance(x, property):
            accessors = [n for n in ("fget", "fset", "fdel") if getattr(x, n) is not None]
            return all(self._note(x, n) for n in accessors)
        if not _is_code(x):
            self.result.data.append((namespace, name))
            return True
        self.result.names.append((namespace, name, x))
        if _is_users(x):
            self.waiting.append(x)
            return True
        return _is_pure(x)

    def _class(self, cls: type) -> bool:
        """A class of the user's all of whose methods are closed."""
        if type(cls) is not type:
            return False
        for base in cls.__mro__:
            if not is_user_module(base.__module__):
                if is_pure_module(base.__module__):
                    continue
                return False
            for name, member in list(vars(base).items()):
                if isinstance(member, (MemberDescriptorType, GetSetDescriptorType)):
                    continue
                if name.startswith("__") and not isinstance(member, FunctionType):
                    continue
                if not self._note(vars(base), name):
                    return False
        return True


def _value_at(namespace: Any, name: str) -> Any:
    """What is in a cell, under a name in a namespace, or an attribute of a function."""
    if isinstance(namespace, CellType):
        try:
            return namespace.cell_contents
        except ValueError:  # empty
            return _MISSING
    if isinstance(namespace, (dict, MappingProxyType)):
        return namespace.get(name, _MISSING)
    return getattr(namespace, name, _MISSING)


def _is_code(x: Any) -> bool:
    return isinstance(x, (FunctionType, type, BuiltinFunctionType, ModuleType))


def _is_users(x: Any) -> bool:
    if isinstance(x, FunctionType):
        return is_user_module(x.__globals__.get("__name__"))
    return isinstance(x, type) and is_user_module(x.__module__)


def _is_pure(x: Any) -> bool:
    """Whether it is a function, class or module of Python's that has no effect."""
    if isinstance(x, ModuleType):
        return is_pure_module(x.__name__)
    if isinstance(x, BuiltinFunctionType) and not isinstance(x.__self__, ModuleType):
        return False
    module = x.__module__
    if module == "builtins":
        return is_pure_builtin(x.__name__) or x.__name__ in _ALSO_PURE
    return isinstance(module, str) and is_pure_module(module)


def _unless_scalars(values: Any, room: int) -> Any:
    return () if room < 0 or set(map(type, values)) <= _SCALARS else values
