"""Snapshots of Python values, which tell later whether anything in them has changed.

`freeze` takes a value apart as far as it goes, without running code of the user: containers of all
kinds by content, order included; objects by class and by all attributes; classes by what their
namespaces hold; functions by identity, code, defaults and attributes, or by code and constants where
that is all that they are (`data.closures`); iterators by where they are.
Numbers count by type and value (1, 1.0 and True differ, and so do 0.0 and -0.0). What has no inside
that Python shows (locks, open files, objects of ours) counts by identity.

A snapshot is flat, a list of tokens in the order of the walk, so values may be nested as deeply as
they like, and may contain themselves.
"""

from __future__ import annotations

import _random
import array
import enum
import functools
import itertools
import struct
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..data.closures import closure_key, names_of
from .paths import is_user_module

Content = tuple[Any, Iterable[Any]]
"""What a value is by itself (to be compared with ==), and the values that it holds."""

_PLAIN = frozenset({type(None), bool, int, str, bytes, type(Ellipsis), type(NotImplemented)})
IMMUTABLE = (*_PLAIN, float, complex, np.dtype, np.generic, np.ufunc, type, ModuleType)
_NUMPYS: type = type(np.sum)  # what NumPy's functions are
_NAMESPACE_NOISE = frozenset(
    "__dict__ __weakref__ __doc__ __annotations__ __dataclass_fields__ __dataclass_params__ "
    "__abstractmethods__ _abc_impl __annotate_func__ __annotations_cache__".split()
)
_OPAQUE = ("logging", __name__.partition(".")[0])  # packages whose objects have state of their own


class Identity:
    """Equal to the same object only. Keeps it alive, so that its address is not used again."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value


class _Identities:
    """Equal to the same objects in the same order only."""

    __slots__ = ("ids", "values")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = tuple(values)
        self.ids = tuple(map(id, self.values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identities) and self.ids == other.ids


PROXIES = (weakref.ProxyType, weakref.CallableProxyType)
_DISPATCHER = type(np.sum)  # of NumPy's functions that arrays of others may replace


def freeze(value: Any) -> Any:
    """A snapshot of `value` that compares equal to a later one if nothing in it has changed; an
    `Identity` if there is nothing that it could look into."""
    cls = type(value)
    if cls in _PLAIN:
        return (cls, value)
    if _is_opaque(value):
        return Identity(value)
    tokens: list[Any] = []
    for item, content in walk(value):
        tokens.append(type(item))
        tokens.append(content)
    return tokens


def walk(value: Any, arrays: bool = True) -> Iterator[tuple[Any, Any]]:
    """All that a value is made of, each with what it is by itself; what was met before, and could
    lead round in a circle, with its number. Without `arrays` these are left out."""
    numbers: dict[int, int] = {}
    alive: list[Any] = []
    left = [value]
    while left:
        item = left.pop()
        cls = type(item)
        if cls in _PLAIN:
            yield item, item
            continue
        if not arrays and cls is np.ndarray and not item.dtype.hasobject:
            continue
        if cls in PROXIES:  # whoever asks for its class asks an object that may be gone
            yield None, Identity(item)
            with suppress(ReferenceError):
                left.append(item.__init__.__self__)  # what it stands for
            continue
        number = numbers.get(id(item))
        if number is not None:
            yield None, number
            continue
        if not isinstance(item, (float, complex, np.generic)):
            numbers[id(item)] = len(alive)
            alive.append(item)
        own, parts = content_of(item, cls)
        yield item, own
        left += reversed(list(parts))


def can_change(value: Any) -> bool:
    """Whether anything in a value could change, or lead to code that reads what changes."""
    fixed = (*_PLAIN, float, complex, range, slice, tuple, frozenset, np.dtype)
    return any(type(part) not in fixed and not _is_opaque(part) for part, _ in walk(value))


def content_of(value: Any, cls: type) -> Content:
    """What a value is by itself, and what it holds. Runs no code of the user."""
    take = _CONTENT.get(cls)
    if take is not None:
        return take(value)
    if isinstance(value, ModuleType):
        return _module(value)
    if _is_opaque(value):
        return Identity(value), ()
    if is_random_state(value):
        return Identity(value), ()  # its state goes on by itself
    attributes = None if isinstance(value, type) else attributes_of(value)
    base = next((base for base in cls.__mro__ if base in _CONTENT or _is_reducible(base)), None)
    take = _CONTENT.get(base) if base in _CONTENT else None
    own, parts = take(value) if take else _reduced(value, base) if base else (None, ())
    if isinstance(value, type):
        return own, parts
    more = list((attributes or {}).items())
    user = (cls,) if is_user_module(cls.__module__) else ()
    names = tuple(name for name, _ in more)
    return (own, names), (*parts, *(content for _, content in more), *user)


def _is_opaque(value: Any) -> bool:
    """Whether only the identity of a value can be compared."""
    cls = type(value)
    if cls in PROXIES:
        return False
    if cls is FunctionType:
        return not is_user_function(value)
    if cls is types.BuiltinFunctionType:
        return value.__self__ is None or isinstance(value.__self__, ModuleType)
    if isinstance(value, type):
        return not is_user_module(value.__module__)
    if isinstance(value, ModuleType):
        return not is_user_module(value.__name__)
    if isinstance(value, (np.ufunc, _DISPATCHER, types.CodeType, types.WrapperDescriptorType)):
        return True
    if cls in _CONTENT:
        return False
    top = cls.__module__.partition(".")[0] if isinstance(cls.__module__, str) else ""
    if top in _OPAQUE and not is_user_module(cls.__module__):
        return True
    has_content = any(base in _CONTENT or _is_reducible(base) for base in cls.__mro__)
    return not has_content and not is_random_state(value) and attributes_of(value) is None


def is_user_function(function: FunctionType) -> bool:
    """Whether the code of a function is the user's: a wrapper has the name of what it wraps, but
    globals of its own."""
    return is_user_module(function.__globals__.get("__name__"))


# Numbers, and containers


def _scalar(value: np.generic[Any]) -> Content:
    return (value.dtype, value.tobytes()), ()


def _whole(convert: Callable[[Any], Any]) -> Callable[[Any], Content]:
    return lambda value: (convert(value), ())


def _items(base: Any) -> Callable[[Any], Content]:
    """The items, also where a subclass has an `__iter__` of its own."""

    def take(value: Any) -> Content:
        items = list(base.__iter__(value))
        return len(items), items

    return take


def _deque(value: deque[Any]) -> Content:
    items = list(deque.__iter__(value))
    return (value.maxlen, len(items)), items


def _dict(value: dict[Any, Any]) -> Content:
    return dict.__len__(value), list(itertools.chain.from_iterable(dict.items(value)))


def _ordered(value: OrderedDict[Any, Any]) -> Content:
    return dict.__len__(value), list(itertools.chain.from_iterable(OrderedDict.items(value)))


def _default_dict(value: defaultdict[Any, Any]) -> Content:
    length, parts = _dict(value)
    return length, [value.default_factory, *parts]


def _proxy(value: Any) -> Content:
    return len(value), list(itertools.chain.from_iterable(value.items()))


def _slice(value: Any) -> Content:
    return None, (value.start, value.stop, value.step)


def _view(value: memoryview) -> Any:
    try:
        return value.format, value.shape, value.strides, value.readonly, value.tobytes()
    except ValueError:
        return "released"


def _array(value: np.ndarray[Any, Any]) -> Content:
    layout = value.dtype, value.shape, value.strides
    if value.dtype.hasobject:
        return (Identity(value), *layout), [np.asarray(value).tolist()]
    return (Identity(value), *layout, value.tobytes()), ()


# Code


def _function(value: FunctionType) -> Content:
    if not is_user_function(value):
        return Identity(value), ()
    key = closure_key(value)
    if key is not None:
        return key, ()
    own = {
        name: attribute for name, attribute in list(value.__dict__.items()) if name != "__wrapped__"
    }
    parts = value.__defaults__, value.__kwdefaults__, own
    same = _Identities((value, value.__code__))
    return (same, names_of(value)), [part for part in parts if part]


def _method(value: Any) -> Content:
    return None, (value.__self__, value.__func__)


def _builtin(value: Any) -> Content:
    """A function of C, or a method of an object of a builtin type."""
    owner = value.__self__
    if owner is None or isinstance(owner, ModuleType):
        return Identity(value), ()
    return value.__name__, (owner,)


def _wrapper(value: Any) -> Content:
    return None, (value.__wrapped__,)


def _property(value: property) -> Content:
    return None, (value.fget, value.fset, value.fdel)


def _partial(value: functools.partial[Any]) -> Content:
    return None, (value.func, value.args, value.keywords)


def _cache(value: Any) -> Content:
    """What is in the cache cannot be seen, but when something came in."""
    info = value.cache_info()
    return (info.misses, info.currsize), (value.__wrapped__,)


def _class(cls: type) -> Content:
    """What the namespaces of a user's class, of its bases and its metaclass hold: by identity, and by
    content what can change inside."""
    own: list[Any] = [cls]
    names: list[str] = []
    for base in cls.__mro__:
        if is_user_module(base.__module__):
            content = {k: v for k, v in list(vars(base).items()) if k not in _NAMESPACE_NOISE}
            own += base, base.__name__, base.__qualname__, vars(base).get("__doc__")
            own += content.values()
            names += content
            own += (v.__code__ for v in content.values() if type(v) is FunctionType)
    meta = [type(cls)] if is_user_module(type(cls).__module__) else []
    return (_Identities(own), names), [*(member for _, member in data_of(cls)), *meta]


def data_of(cls: type) -> Iterator[tuple[str, Any]]:
    """The attributes of a user's class that can change inside, its bases' included. Functions can, too:
    they have defaults and attributes."""
    for base in cls.__mro__:
        if is_user_module(base.__module__):
            listed = isinstance(base, enum.EnumMeta)  # keeps lists of its members, to find them by
            for name, member in list(vars(base).items()):
                internal = name in _NAMESPACE_NOISE or (listed and name[0] == name[-1] == "_")
                method = type(member) is FunctionType and name[:2] != "__"
                if method or (not internal and changes_inside(member)):
                    yield name, member


def changes_inside(member: Any) -> bool:
    """Whether the attribute of a class is data that can change while it stays the same object."""
    if isinstance(member, (*IMMUTABLE, FunctionType, staticmethod, classmethod, property)):
        return False
    return is_user_module(type(member).__module__) or not hasattr(type(member), "__get__")


def _module(value: ModuleType) -> Content:
    if not is_user_module(value.__name__):
        return Identity(value), ()
    return _namespace(Namespace(vars(value)))


class Namespace:
    """What is in a module, for code that looks into it as a whole (`globals()`, `eval`)."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names


def _namespace(value: Namespace) -> Content:
    """All names, but for functions, classes and modules, which do not change by themselves."""
    names = {k: v for k, v in value.names.items() if not k.startswith("__")}
    fixed = (FunctionType, type, ModuleType, types.BuiltinFunctionType)
    parts = [v for v in names.values() if not isinstance(v, fixed)]
    return (_Identities(names.values()), tuple(names)), parts


# Others


def _generator(value: Any) -> Content:
    frame = value.gi_frame
    if frame is None:
        return "finished", ()
    return (Identity(value), frame.f_lasti), list(frame.f_locals.values())


def _view_of(value: Any) -> Content:
    return len(value), list(value)


def _reference(value: Any) -> Content:
    return None, (value(),)


def _is_reducible(cls: type) -> bool:
    """Whether objects of a class of Python's own say what they are made of: iterators, dates."""
    modules = ("builtins", "itertools", "collections", "datetime", "zoneinfo", "decimal")
    return cls.__module__ in modules and "__reduce__" in vars(cls) and cls is not object


def _reduced(value: Any, base: Any) -> Content:
    if base is itertools.count:
        return repr(value), ()
    try:
        made = base.__reduce__(value)
    except Exception:
        return Identity(value), ()
    return None, [made] if isinstance(made, tuple) else [Identity(value)]


ATOMS: dict[type, Callable[[Any], Any]] = {
    bool: bool,
    int: int.__pos__,
    str: lambda value: str.__getitem__(value, slice(None)),
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    float: lambda value: struct.pack("d", value),
    complex: lambda value: struct.pack("dd", value.real, value.imag),
    bytearray: bytes,
    array.array: lambda value: (value.typecode, value.tobytes()),
    memoryview: _view,
}
"""What values hold, of classes that hold nothing that could be taken apart further."""

_CONTENT: dict[type, Callable[[Any], Content]] = {
    **{cls: _whole(take) for cls, take in ATOMS.items()},
    np.generic: _scalar,
    np.dtype: _whole(lambda value: value),
    np.ndarray: _array,
    list: _items(list),
    tuple: _items(tuple),
    set: _items(set),
    frozenset: _items(frozenset),
    deque: _deque,
    dict: _dict,
    OrderedDict: _ordered,
    defaultdict: _default_dict,
    types.MappingProxyType: _proxy,
    range: _slice,
    slice: _slice,
    FunctionType: _function,
    MethodType: _method,
    types.BuiltinFunctionType: _builtin,
    types.MethodWrapperType: _builtin,
    staticmethod: _wrapper,
    classmethod: _wrapper,
    property: _property,
    functools.partial: _partial,
    functools._lru_cache_wrapper: _cache,
    types.GeneratorType: _generator,
    weakref.ref: _reference,
    type({}.keys()): _view_of,
    type({}.values()): _view_of,
    type({}.items()): _view_of,
    type: _class,
    Namespace: _namespace,
}


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Instance attributes, from the dictionary and from slots; None if it has neither."""
    own = own_dictionary(value)
    slots = _SLOTS.get(type(value))
    if slots is None:
        slots = _SLOTS[type(value)] = [
            (name, vars(cls).get(name)) for cls in type(value).__mro__ for name in _slots(cls)
        ]
    if not slots:
        return None if own is _NOTHING else own.copy()
    attributes = dict(own)
    for name, member in slots:
        if isinstance(member, types.MemberDescriptorType):
            try:
                attributes[name] = member.__get__(value)
            except AttributeError:
                continue
    return attributes


# The slots of instances of a class, its own and those of its bases, with their descriptors.
_SLOTS: weakref.WeakKeyDictionary[type, list[tuple[str, Any]]] = weakref.WeakKeyDictionary()


_NOTHING: dict[str, Any] = {}


def own_dictionary(value: Any) -> dict[str, Any]:
    """The dictionary of an object, also where the class makes `__dict__` something else."""
    try:
        dictionary = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return _NOTHING
    return dictionary if isinstance(dictionary, dict) else _NOTHING


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(
        f"_{cls.__name__.lstrip('_')}{n}" if n.startswith("__") and not n.endswith("__") else n
        for n in names
        if n not in ("__weakref__", "__dict__")
    )


def is_random_state(value: Any) -> bool:
    """Whether `value` is one of NumPy's or Python's random generators."""
    if isinstance(value, _random.Random):
        return True
    return str(type(value).__module__).startswith("numpy.random") and (
        hasattr(value, "bit_generator") or hasattr(value, "get_state")
    )


def random_state(value: Any) -> str:
    """The state of a random generator, as text."""
    if isinstance(value, _random.Random):
        return repr(_random.Random.getstate(value))
    if hasattr(value, "bit_generator"):
        return repr(value.bit_generator.state)
    return repr(value.get_state(legacy=False))
