"""Containers that may have to be native: where they are made, and what is asked of them.

A list that is written down, or made by a call, is native if it was found that it has to be
(`kinds`). Of Python's own ones that is found here, when Python can't go on with them: an
index or a key that is traced, an order that depends on traced values.
"""

from __future__ import annotations

import bisect
import heapq
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from types import BuiltinFunctionType, GeneratorType
from typing import Any

import numpy as np

from ..arrays.table import LAZY
from ..control.choices import choose_by_key, length_of
from ..control.unions import Union, possible
from ..core.constants import is_traced, is_undecided
from ..core.trace import current_trace
from . import folds, heaps, tables
from .arrays import GrownArray
from .elements.varied import is_array
from .kinds import (
    CLASSES,
    Kind,
    Site,
    current,
    inherit,
    is_outside,
    kind_of,
    make_classes_native,
    make_native,
)
from .objects import Object, born
from .packed import Packed
from .sequences import List, Tuple
from .sets import FrozenSet, Set
from .stand_ins import Container, native
from .walking import walk, walked

_ONE = 2  # references to an object that one container has: its own, and that of who counts
LONG = 16  # numbers of a range from which a native list is filled by a loop
HASHED = (set, dict, Counter, OrderedDict)  # no place for traced numbers, but as native ones
_ASKING = frozenset(
    "get pop popleft popitem setdefault add discard remove index count insert sort move_to_end".split()
)

_ITERATORS = (GeneratorType, map, filter, zip, enumerate, reversed)
_TAKING = frozenset(
    "copy extend extendleft update union intersection difference symmetric_difference issubset "
    "issuperset isdisjoint intersection_update difference_update symmetric_difference_update "
    "subtract".split()
)


PASSING: set[Any] = set()  # modules between the user's code and what it calls


def site_of(depth: int = 2) -> tuple[Any, int]:
    """Where in the user's code a container is made."""
    frame = sys._getframe(depth)
    while frame.f_globals.get("__name__") in PASSING and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def made(container: Any) -> Any:
    """A container that was written down."""
    return native_if_wanted(container, site_of())


def made_class(cls: Any) -> Any:
    """A class that the function defines, under the name that it has in the user's."""
    if isinstance(cls, type):
        code = sys._getframe(1).f_code
        cls.__qualname__ = f"{code.co_qualname}.<locals>.{cls.__name__}"
    kinds = current()
    if kinds is not None and type(cls) is type:
        kinds.meet(cls, site_of())
    return cls


def made_set(items: tuple[Any, ...]) -> Any:
    """`{a, b}`"""
    return _hashed(set, items, items)


def made_of_parts(name: str, stars: str, parts: tuple[Any, ...], site: Site) -> Any:
    """`[*a, b]` and `{*a, b}`: `stars` says which parts are run over."""
    cls = list if name == "list" else set
    kinds = current()
    many = [x for x, star in zip(parts, stars, strict=True) if star == "*"]
    single = tuple(x for x, star in zip(parts, stars, strict=True) if star != "*")
    kind = None if kinds is None else kinds.sites.get(site)
    grows = any(_hashes_traced(x) if cls is set else _is_any_length(x) for x in many)
    hashed = cls is set and _has_traced(single)
    if kinds is None or (kind is None and not (grows or hashed or any(map(_is_native, many)))):
        into: Any = cls()
    else:
        kind = kind or kinds.sites.setdefault(site, Kind(cls))
        into = CLASSES[cls](kind)
    for x, star in zip(parts, stars, strict=True):
        if star != "*":
            into.append(x) if cls is list else into.add(x)
        elif cls is list:
            into.extend(x)
        else:
            into.update(x)
    return native_if_wanted(into, site)


def made_dict(items: tuple[Any, ...]) -> Any:
    """`{a: b, c: d}`, of pairs."""
    return _hashed(dict, items, [key for key, _ in items])


def _hashed(cls: type, items: Any, keys: Any) -> Any:
    """A set or a dict that was written down: a native one where keys are traced."""
    kinds = current()
    if kinds is None:
        return cls(items)
    site = site_of(3)
    kind = kinds.sites.get(site)
    if kind is None and _has_traced(tuple(keys)):
        kind = kinds.sites[site] = Kind(cls)
    if kind is None:
        return native_if_wanted(cls(items), site)
    into = CLASSES[cls](kind)
    into.add_all(items)
    return into


def native_if_wanted(container: Any, site: Site) -> Any:
    """A container that was made at a site: a native one, if those of the site are."""
    kinds = current()
    if kinds is None or type(container) not in CLASSES:
        return container
    kind = kinds.sites.get(site)
    if kind is not None and kind.cls is type(container):
        return native(container, kind)
    kinds.births[id(container)] = site
    return container


def given(results: list[Any], site: Any) -> Any:
    """The only one of `results`, which a function that is not transformed has returned: if nobody else
    has it, a container is one that it has made."""
    kinds = current()
    if kinds is None or type(results[0]) not in CLASSES or sys.getrefcount(results[0]) > _ONE:
        return results.pop()
    container = results.pop()
    if id(container) in kinds.births:
        return container
    if isinstance(container, (list, deque)) and container and type(container[0]) in CLASSES:
        for i in range(len(container)):
            inner, container[i] = [container[i]], None
            container[i] = given(inner, (*site, "element"))
    return native_if_wanted(container, site)


def attributes_made(x: Any, site: Any, is_users: Callable[[Any], bool]) -> None:
    """Containers in the attributes of an object that has just been made are as `given`, if its
    `__init__` was not transformed; objects of users' classes are, too, that nobody else has."""
    if current() is not None:
        content = attributes_of(x)
        for name in list(content):
            results = [content.pop(name)]
            if is_users(results[0]) and sys.getrefcount(results[0]) <= _ONE:
                attributes_made(results[0], (*site, name), is_users)
                born(results[0])
            content[name] = given(results, (*site, name))


def attributes_of(x: Any) -> dict[str, Any]:
    """What the attributes of an object hold that has just been made."""
    found = x.attrs if type(x) is Object else getattr(x, "__dict__", None)
    return {} if found is None else found


def added_to(cls: Any, number: int) -> Any:
    """What the function adds to a container of a class that was there before it: a new one, whose site
    is the number of that."""
    return native_if_wanted(cls(), ("outside", number))


def repeated(container: Any, times: Any) -> Any:
    """`[x] * n`, written down."""
    kinds = current()
    if kinds is None or type(container) is not list:
        return container * times
    site = site_of()
    kind = kinds.sites.get(site)
    if kind is not None:
        return native(container, kind) * times
    if is_traced(times):
        kinds.births[id(container)] = site
        make_native([container])
    whole = container * times
    if type(whole) is list:
        kinds.births[id(whole)] = site
    return whole


# Calls that make containers, and what is called with them


def _maker(cls: Any) -> Callable[..., Any]:
    """What is called in place of a class of containers."""

    def make(*args: Any, **options: Any) -> Any:
        kinds = current()
        if kinds is None:
            return cls(*args, **options)
        site = site_of()
        position = 1 if cls is defaultdict else 0
        items = args[position] if len(args) > position else ()
        if cls is list and isinstance(items, Packed):
            return items.copy()
        if cls in HASHED and type(items) in _ITERATORS:  # read once: what is in it may be traced
            items = [*items]
            args = (*args[:position], items, *args[position + 1 :])
        many = walked(items) is not None and (cls in HASHED or not is_traced(items))
        if many or (cls in HASHED and isinstance(items, (list, tuple)) and keys_traced(cls, items)):
            empty = cls(*args[:position], *(((),) if options else ()), **options)
            # What the items were listed in may be of this call, too.
            kind = kinds.sites.setdefault((*site, cls), kind_of(empty))
            into = CLASSES[cls](kind)
            into.add_all(items)
            return into
        return native_if_wanted(cls(*args, **options), site)

    return make


def _frozen(cls: Any) -> Callable[..., Any]:
    """`tuple` or `frozenset`, of what is known at run time only."""
    own, mutable = (Tuple, list) if cls is tuple else (FrozenSet, set)

    def make(*args: Any, **options: Any) -> Any:
        kinds = current()
        if kinds is None or options or len(args) != 1 or isinstance(args[0], own):
            return args[0] if args and isinstance(args[0], own) else cls(*args, **options)
        (items,) = args
        found = walked(items)
        grows = found is not None and (cls is frozenset or not isinstance(found[0], int))
        if cls is frozenset and isinstance(items, (list, tuple)):
            grows = keys_traced(set, items)
        if not grows:
            return cls(items)
        into = CLASSES[mutable](kinds.sites.setdefault((*site_of(), cls), Kind(mutable)))
        into.add_all(items)
        return own.of(into)

    return make


def _of_keys(cls: Any) -> Callable[..., Any]:
    """`dict.fromkeys`"""

    def make(items: Any, value: Any = None) -> Any:
        kinds = current()
        is_list = isinstance(items, (list, tuple))
        is_traced_list = is_list and keys_traced(set, items)
        if kinds is None or not (is_traced_list or walked(items) is not None):
            return cls.fromkeys(items, value)
        site = site_of()
        into = CLASSES[cls](kinds.sites.setdefault(site, kind_of(cls())))
        if is_list:
            into.add_all([(item, value) for item in items])
        else:
            walk(items, lambda item: into.__setitem__(item, value))
        return into

    return make


def keys_traced(cls: Any, items: Any) -> bool:
    """Whether what is hashed is traced, of elements or of pairs."""
    if cls in (set, Counter):
        return _has_traced(items)
    pairs = [pair for pair in items if isinstance(pair, (list, tuple)) and len(pair) == 2]
    return len(pairs) == len(items) and _has_traced([pair[0] for pair in pairs])


def iter_(*args: Any) -> Any:
    """`iter`"""
    return folds.Iterator(args[0]) if len(args) == 1 and _is_native(args[0]) else iter(*args)


def next_(iterator: Any, *default: Any) -> Any:
    """`next`"""
    if isinstance(iterator, folds.Iterator):
        return iterator.take(*default)
    return next(iterator, *default)


def len_(x: Any) -> Any:
    """`len`; of an array whose length is a value a traced int."""
    if type(x) is Union:
        return length_of(x)
    if type(x) in LAZY and x.ndim:
        return x.shape[0]
    return x.length() if _is_native(x) else len(x)


def _is_native(x: Any) -> bool:
    return isinstance(x, (Container, tables.View, GrownArray))


def _is_any_length(x: Any) -> bool:
    """Whether it is an array whose length is a value."""
    return type(x) in LAZY and walked(x) is not None and not isinstance(x.shape[0], int)


def sorted_(items: Any, *, key: Any = None, reverse: Any = False) -> Any:
    """`sorted`"""
    site = site_of()
    if key is None and isinstance(reverse, bool) and _is_short(items):
        ordered = np.sort(items)
        return native_if_wanted([*(ordered[::-1] if reverse else ordered)], site)
    items = _of_array(items, site)
    kinds = current()
    if kinds is not None and (type(items) is tuple or hasattr(items, "__next__")):
        items = [*items]
    if _is_nobodys(items) and _compares_traced(items if key is None else [*map(key, items)]):
        kinds = current()
        assert kinds is not None
        listed = List(kinds.kind_at(site))
        listed.extend(items)
        items = listed
    ordered = _sorted(items, key=key, reverse=reverse)
    return native_if_wanted(ordered, site)


def _is_nobodys(items: Any) -> bool:
    """Whether it is a list that a library made, or that was just made here: no trace that begins anew
    would have a native one in its place."""
    kinds = current()
    return kinds is not None and type(items) is list and id(items) not in kinds.births


def _is_short(items: Any) -> bool:
    """Whether it is a traced array of a few integers, which are known to be in one order only."""
    if (
        current() is None
        or not is_traced(items)
        or items.ndim != 1
        or items.dtype.kind not in "iub"
    ):
        return False
    return type(items) not in LAZY and items.shape[0] <= LONG


def _of_array(items: Any, site: tuple[Any, int]) -> Any:
    """The elements of a traced array, or what is run over by number, as a native list; other items as
    they are."""
    if current() is None or _is_native(items) or isinstance(items, range) or walked(items) is None:
        return items
    return list_of(items, site)


def list_of(items: Any, site: Site) -> List:
    """A native list of what can be run over by number."""
    kinds = current()
    assert kinds is not None
    made = List(kinds.sites.setdefault(site, kind_of([])))
    made.extend(items)
    return made


def _sorted(items: Any, *, key: Any = None, reverse: Any = False) -> Any:
    if not _is_native(items):
        if current() is not None and type(items) in CLASSES and _compares_traced(items):
            make_native([items])
        return sorted(items, key=key, reverse=reverse)
    if key is None and isinstance(items, tables.View) and items.what == "items":
        form = items.table.kind.value
        if form is not None and form.holds_containers:
            key = itemgetter(0)  # keys differ: what they lead to is never compared
    ordered = _listed(items, any_order=key is None)
    ordered.sort(key=key, reverse=reverse)
    return ordered


def _listed(items: Any, any_order: bool = False) -> List | Packed:
    """A list of native items."""
    if isinstance(items, tables.View):
        return items.listed()
    if isinstance(items, (List, Packed)):
        return items.copy()
    if isinstance(items, GrownArray):
        return items.items.copy()
    into = List(items.kind.derived("list", list))
    into.extend(items.unordered() if any_order and isinstance(items, Set) else items)
    return into


def _has_traced(items: Any) -> bool:
    parts = (*items, *items.values()) if isinstance(items, dict) else items
    if not isinstance(parts, (list, tuple, set, deque)):
        return False
    return any(_is_open(x) or (isinstance(x, tuple) and _has_traced(x)) for x in parts)


def _is_open(x: Any) -> bool:
    """Whether run time decides what it is."""
    return is_undecided(x) or type(x) is Union


def _compares_traced(items: Any) -> bool:
    """Whether an order of items is one of traced values: of users' objects, too, native ones then."""
    if _has_traced(items):
        return True
    kinds = current()
    if kinds is None or not isinstance(items, (list, tuple)):
        return False
    found = [x for x in items if kinds.born.get(id(x)) is x]
    make_classes_native([x for x in found if any(map(is_undecided, vars(x).values()))])
    return any(isinstance(x, Container) for x in items)


def _of_heap(function: Any) -> Callable[..., Any]:
    """A function of `heapq` or `bisect`."""

    def call(container: Any, *args: Any, **options: Any) -> Any:
        if isinstance(container, List):
            return getattr(heaps, function.__name__)(container, *args, **options)
        if type(container) is list and (_compares_traced(args) or _compares_traced(container)):
            make_native([container])
        with may_be_missing(container):
            return function(container, *args, **options)

    return call


def _ends_of(function: Any, reverse: bool) -> Callable[..., Any]:
    """`heapq.nlargest` (reverse), `heapq.nsmallest`: the first of a sorted list."""

    def call(n: Any, items: Any, key: Any = None) -> Any:
        items = _of_array(items, site_of())
        if type(items) in CLASSES and (_compares_traced(items) or is_undecided(n)):
            make_native([items])
        if not _is_native(items):
            return function(n, items, key)
        ordered = _sorted(items, key=key, reverse=reverse)
        return ordered[: n if isinstance(n, int) and n >= 0 else np.maximum(n, 0)]

    return call


def _method(function: BuiltinFunctionType) -> Any:
    """A method of one of Python's containers: what is looked up by a traced value needs a native one."""
    container = function.__self__

    def call(*args: Any, **options: Any) -> Any:
        if function.__name__ == "get" and type(container) is dict and is_undecided(args[0]):
            chosen = choose_by_key(container, args[0], *(args[1:2] or (None,)))
            if chosen is not None:
                return chosen[0]
        if function.__name__ == "get" and type(args[0]) is Union:
            return _use[0](function, *args)
        asks = function.__name__ in ("index", "count", "remove") and _has_traced(container)
        orders = function.__name__ == "sort" and _compares_traced(container)
        if asks or orders or _has_traced(args):
            make_native([container])
        with may_be_missing(container):
            return function(*args, **options)

    return call


def _taking(function: BuiltinFunctionType) -> Any:
    """A method that takes other containers, or copies: with native ones it has to be a native one's."""
    container = function.__self__

    def call(*args: Any, **options: Any) -> Any:
        hashes = type(container) in HASHED
        if any(_is_native(x) or (_hashes_traced(x) if hashes else _is_any_length(x)) for x in args):
            make_native([container])
        result = function(*args, **options)
        inherit(container, result)
        return result

    return call


def _hashes_traced(x: Any) -> bool:
    """Whether elements of what a set or a dict takes in are traced."""
    return is_traced(x) or _is_any_length(x) or _has_traced(x)


def joined(container: Any, other: Any) -> None:
    """Before `container += other`: one of Python's takes no native ones in, nor of any length."""
    if type(container) in CLASSES and (_is_native(other) or _is_any_length(other)):
        make_native([container])


def replaced(function: Any) -> Any:
    """What is called in place of a builtin function or class; None for others."""
    try:
        found = _CALLS.get(function)
    except TypeError:  # unhashable
        found = None
    if found is not None:
        return found
    owner = getattr(function, "__self__", None)
    if type(owner) in CLASSES and current() is not None:
        if function.__name__ in _ASKING:
            return _method(function)
        if function.__name__ in _TAKING:
            return _taking(function)
    return None


_CALLS: dict[Any, Callable[..., Any]] = {
    len: len_,
    iter: iter_,
    next: next_,
    heapq.nsmallest: _ends_of(heapq.nsmallest, False),
    heapq.nlargest: _ends_of(heapq.nlargest, True),
    sorted: sorted_,
    **{cls.fromkeys: _of_keys(cls) for cls in (dict, OrderedDict)},
    **{cls: _frozen(cls) for cls in (tuple, frozenset)},
    **{cls: _maker(cls) for cls in (list, dict, set, deque, Counter, defaultdict, OrderedDict)},
    **{
        getattr(heapq, name): _of_heap(getattr(heapq, name))
        for name in ("heappush", "heappop", "heapify", "heapreplace", "heappushpop")
    },
    **{
        getattr(module, name): _of_heap(getattr(module, name))
        for module, names in (
            (bisect, ("bisect_left", "bisect_right", "insort_left", "insort_right")),
        )
        for name in names
    },
}


@contextmanager
def may_be_missing(container: Any) -> Iterator[None]:
    """What one of Python's lacks while a branch or loop is traced a native one may have at run time."""
    try:
        yield
    except (IndexError, KeyError, ValueError):
        trace = current_trace()
        if trace is not None and trace.conditional:
            make_native([container])
        raise


def look_up(container: Any, index: Any, reads: bool = False) -> None:
    """Before `container[index]`: one of Python's, with a traced index or key, has to be native. A list
    that was there before the call may be an array where code `reads` it."""
    if type(index) is Union:
        if type(container) in CLASSES and not has_all(container, index):
            make_native([container])
        elif type(container) in CLASSES and any(type(x) in CLASSES for x in container.values()):
            make_native([container])  # what is read is one of several containers
        return
    if type(container) in CLASSES and (is_undecided(index) or isinstance(index, (tuple, slice))):
        parts = (index.start, index.stop) if isinstance(index, slice) else index
        if reads and any(map(is_array, container)):
            return  # which array is read is better known while tracing
        may_be_array = reads and type(container) is list and is_outside(container)
        if (is_undecided(index) or _has_traced(parts)) and not may_be_array:
            make_classes_native(
                [*(container.values() if isinstance(container, dict) else container)]
            )
            make_native([container])


def has_all(container: Any, key: Union) -> bool:
    """Whether one of Python's has all that a key may be: which one is meant is a branch then."""
    options = [key.options[n] for n in possible(key)]
    try:
        return isinstance(container, dict) and all(option in container for option in options)
    except TypeError:
        return False


_use: list[Callable[..., Any]] = []  # autograph, which lies above, puts it here


def serve_use(use: Callable[..., Any]) -> None:
    """Let `use(function, *operands)` call a function with each option of unions among the operands."""
    _use[:] = [use]
