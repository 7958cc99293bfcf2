"""Containers, and functions around functions, taken apart for a fingerprint: `WALKS` by exact type."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import CellType, GenericAlias, MethodType
from typing import TYPE_CHECKING, Any, ForwardRef

from .purity_allow_list import Unkeyable

if TYPE_CHECKING:
    from .fingerprint import Fingerprint


def sequence(key: Fingerprint, value: Any) -> None:
    """A list or tuple: its type, its length and the elements."""
    key.put(type(value).__name__, str(len(value)))
    for item in value:
        key.value(item)


def _deque(key: Fingerprint, value: Any) -> None:
    key.put(str(value.maxlen))
    sequence(key, value)


def mapping(key: Fingerprint, value: Any) -> None:
    """A dict: its type, and keys and values in order."""
    base = OrderedDict if isinstance(value, OrderedDict) else dict
    key.put(type(value).__name__, str(base.__len__(value)))
    for name, item in base.items(value):
        key.value(name)
        key.value(item)


def _default_dict(key: Fingerprint, value: Any) -> None:
    key.value(value.default_factory)
    mapping(key, value)


def set_of_plain(key: Fingerprint, value: Any) -> None:
    """A set of numbers and strings, in an order that all processes have; else Unkeyable."""
    if not all(type(item) in (bool, int, float, str, bytes) for item in value):
        raise Unkeyable("a set of objects, whose order is chance")
    items = [f"{type(item).__name__} {item!r}" for item in value]
    if any(type(item) in (str, bytes) for item in value):
        items.sort()  # their hashes differ from process to process
    key.put(type(value).__name__, *items)


def cell(key: Fingerprint, value: CellType) -> None:
    """What a closure's cell holds."""
    try:
        content = value.cell_contents
    except ValueError:
        key.put("empty cell")
    else:
        key.put("cell")
        key.value(content)


def _method(key: Fingerprint, value: MethodType) -> None:
    key.put("method")
    key.value(value.__self__)
    key.value(value.__func__)


def _partial(key: Fingerprint, value: Any) -> None:
    key.put("partial")
    key.value(value.func)
    key.value(value.args)
    key.value(value.keywords)


def _wrapper(key: Fingerprint, value: Any) -> None:
    """A classmethod, a staticmethod."""
    key.put(type(value).__name__)
    key.value(value.__wrapped__)


def _cache(key: Fingerprint, value: Any) -> None:
    """What lru_cache gives. Results in it are of the time when they were asked for."""
    if not value.cache_info().currsize:
        key.empty_caches.add(id(value))
    elif id(value) not in key.trusted:
        raise Unkeyable("results in an lru_cache")
    _wrapper(key, value)


def _property(key: Fingerprint, value: Any) -> None:
    key.put(type(value).__name__)
    for function in (value.fget, value.fset, value.fdel):
        key.value(function)


def _cached_property(key: Fingerprint, value: Any) -> None:
    key.put("cached_property")
    key.value(value.func)


def _generic(key: Fingerprint, value: Any) -> None:
    key.put("generic", repr(value))
    key.value(value.__origin__)


def _forward(key: Fingerprint, value: ForwardRef) -> None:
    key.put("forward", value.__forward_arg__)


WALKS: dict[type, Callable[[Fingerprint, Any], None]] = {
    list: sequence,
    tuple: sequence,
    deque: _deque,
    dict: mapping,
    OrderedDict: mapping,
    defaultdict: _default_dict,
    set: set_of_plain,
    frozenset: set_of_plain,
    CellType: cell,
    MethodType: _method,
    functools.partial: _partial,
    functools._lru_cache_wrapper: _cache,
    functools.cached_property: _cached_property,
    classmethod: _wrapper,
    staticmethod: _wrapper,
    property: _property,
    GenericAlias: _generic,
    ForwardRef: _forward,
}
