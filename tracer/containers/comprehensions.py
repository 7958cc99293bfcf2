"""Comprehensions whose items are native, or whose results have to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..control.control import cond
from ..core.constants import is_undecided
from .growing import HASHED, LONG, keys_traced, native_if_wanted, site_of
from .kinds import CLASSES, Again, Kind, current
from .packed import Packed
from .walking import Numbered, walk, walked

_list_by_loop: list[Callable[..., Any]] = []  # autograph, which lies above, puts it here


def serve_listing(by_loop: Callable[..., Any]) -> None:
    """Let `by_loop(length, item, listed, site, packed, unseen)` make a list in a loop, or give None."""
    _list_by_loop[:] = [by_loop]


def comprehended(
    items: Any,
    make: Callable[[Any], Any],
    listed: Callable[[Any], Any],
    when: Callable[[Any], Any] | None = None,
    into: Any = None,
    *,
    site: Any = None,
) -> Any:
    """`[f(x) for x in items if p(x)]`, which is `make(items)`: for native items, or a native result, a
    loop. `listed` makes a list of what goes in of some items, `when` one of what is asked of them. The
    list goes to the function `into`, and nowhere else."""
    kinds = current()
    if kinds is None:
        return make(items)
    site = site or site_of()
    kind, found = kinds.sites.get(site), walked(items)
    cls = type(make(()))
    if cls is list and kind is None and when is None and site not in kinds.written:
        numbers = _numbered(items) if type(items) is range else found
        if numbers is not None and isinstance(numbers[0], int):
            packed, unseen = getattr(items, "packed", False), _makes_array(into)
            listing = _list_by_loop[0](*numbers, listed, site, packed, unseen)
            if listing is not None:
                return native_if_wanted(listing, site) if type(listing) is list else listing
    many = found is not None and (not isinstance(found[0], int) or cls in HASHED)
    if kind is not None and type(items) is range and len(items) > LONG:
        found, many = _numbered(items), True
    if not many and kind is None and when is None:
        return native_if_wanted(make(items), site)
    if many:
        assert found is not None
        items = Numbered(*found)
        kind = kind or kinds.sites.setdefault(site, Kind(cls))
    into = [] if kind is None else CLASSES[kind.cls](kind)
    walk(items, lambda x: _put_in(into, (x,), listed, when, site, cls))
    if kind is not None:
        return into
    return native_if_wanted(into if cls is list else cls(into), site)


def comprehended_parts(
    items: Any,
    make: Callable[[Any], Any],
    listed: Callable[[Any], Any],
    when: Callable[[Any], Any] | None = None,
    *,
    site: Any = None,
) -> Any:
    """`[y for x in items if p(x) for y in f(x)]`, which is `make(items)`. `listed` makes a list of the
    lists of what goes in of some items."""
    kinds = current()
    if kinds is None:
        return make(items)
    site = site or site_of()
    kind, cls = kinds.sites.get(site), type(make(()))
    found = walked(items)
    if kind is None and found is not None:  # one after the other, if they are few
        length, item = found
        if not isinstance(length, int) or (length > LONG and isinstance(items, Packed)):
            kind = kinds.sites.setdefault(site, Kind(cls))
        else:
            items = map(item, range(length))
    elif type(items) is range and len(items) > LONG and kind is not None:
        items = Numbered(*_numbered(items))
    into = [] if kind is None else CLASSES[kind.cls](kind)
    walk(items, lambda x: _put_in(into, (x,), lambda one: listed(one)[0], when, site, cls))
    if kind is not None:
        return into
    if cls in HASHED and keys_traced(cls, into):
        kinds.sites[site] = Kind(cls)
        raise Again
    return native_if_wanted(into if cls is list else cls(into), site)


def _numbered(numbers: range) -> Any:
    """The numbers of a range by their places."""
    return len(numbers), lambda i: i * numbers.step + numbers.start


_OF_LISTS = (np.array, np.asarray, np.stack, np.vstack, np.sum, np.mean, np.max, np.min, np.prod)


def _makes_array(function: Any) -> bool:
    """Whether a function makes an array of a list that it is given, and does as much with the array."""
    return any(function is f for f in _OF_LISTS)


def _put_in(into: Any, one: Any, listed: Any, when: Any, site: Any, cls: type) -> None:
    """Add what one item gives, if it is wanted."""

    def add() -> None:
        found = listed(one)
        if type(into) is not list:
            into.add_all(found)
        elif walked(found) is None:
            into.extend(found)
        else:
            turn_native()

    def turn_native() -> None:
        kinds = current()
        assert kinds is not None
        kinds.sites[site] = Kind(cls)
        raise Again

    wanted = True if when is None else when(one)[0]
    if not is_undecided(wanted):
        if wanted:
            add()
    elif type(into) is list:
        turn_native()
    else:
        cond(wanted, add, lambda: None)
