"""Generator expressions: Python's iterators, and the loops that they stand for.

    deque(v * 2 for v in x if v > 0)        deque([v * 2 for v in x if v > 0])
                                     ->
    for v in (w for w in x if w > 0):       for w in x:
        s += v                                  if w > 0: s += w

What takes all of them at once is given the list, which may be a native one; a `for` statement has the
loop around its body. Whoever else asks for elements gets Python's, whose conditions must be ordinary.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from types import BuiltinFunctionType, MethodType
from typing import Any

import numpy as np

from ...containers.comprehensions import comprehended, comprehended_parts
from ...containers.growing import PASSING
from ...containers.kinds import CLASSES
from ...containers.stand_ins import Container


class Generated(Iterator[Any]):
    """A generator expression over `items`: `lazily` makes Python's, `listed` a list of the elements for
    some items (of generators, where there are `several` loops), `when` one of what is asked of them."""

    def __init__(
        self,
        site: Any,
        items: Any,
        lazily: Callable[[Any], Any],
        listed: Callable[[Any], Any],
        when: Callable[[Any], Any] | None,
        several: bool,
    ) -> None:
        self._site, self._items, self._lazily = site, items, lazily
        self._listed, self._when, self._several = listed, when, several
        self._python: Any = None
        self.is_new = True

    def _begun(self) -> Any:
        if self.is_new:
            self.is_new, self._python = False, self._lazily(self._items)
        return self._python

    def __next__(self) -> Any:
        return next(self._begun())

    def __getattr__(self, name: str) -> Any:
        if name in ("send", "throw", "close"):
            return getattr(self._begun(), name)
        raise AttributeError(f"'generator' object has no attribute {name!r}")

    def taken(self) -> Any:
        """All of it, as a list."""
        if not self.is_new:
            return self
        self.is_new, self._python = False, iter(())
        lazily, listed = self._lazily, self._listed
        make: Any = comprehended
        if self._several:
            listed, make = lambda items: [*map(taken, self._listed(items))], comprehended_parts
        items = taken(self._items)
        return make(items, lambda items: [*lazily(items)], listed, self._when, site=self._site)

    def over(
        self, run: Any, choose: Any, body: Callable[[Any], Any], more: Any, state: Any
    ) -> None:
        """`for item in self: body(item)`, by `run(iterable, body, more, state)` for each of the loops
        and `choose(test, then, otherwise, state)`."""
        self.is_new, self._python = False, iter(())
        run(self._items, _Loop(self, run, choose, body, more, state), more, state, False)

    def step(self, item: Any, loop: _Loop) -> None:
        """What is done with an item."""

        def then() -> None:
            (found,) = self._listed((item,))
            if self._several:
                loop.run(found, loop.body, loop.more, loop.state, False)
            else:
                loop.body(found)

        if self._when is None:
            then()
        else:
            loop.choose(self._when((item,))[0], then, lambda: None, loop.state)


class _Loop:
    """The body of a loop over what a generator expression runs over."""

    def __init__(
        self, generated: Generated, run: Any, choose: Any, body: Any, more: Any, state: Any
    ) -> None:
        self.generated, self.run, self.choose = generated, run, choose
        self.body, self.more, self.state = body, more, state

    @property
    def __code__(self) -> Any:  # which tells loops apart
        return self.body.__code__, self.generated._site

    def __call__(self, item: Any) -> None:
        self.generated.step(item, self)


_TAKE_ALL: frozenset[Any] = frozenset(
    (
        *(list, tuple, set, frozenset, dict, deque, Counter, OrderedDict, defaultdict),
        *(sum, min, max, sorted, math.prod, math.fsum, np.fromiter, functools.reduce),
        *(heapq.nlargest, heapq.nsmallest),
    )
)
_METHODS = frozenset(
    "extend extendleft update subtract union intersection difference symmetric_difference "
    "intersection_update difference_update symmetric_difference_update issubset issuperset "
    "isdisjoint join".split()
)


def takes_all(function: Any) -> bool:
    """Whether it asks an iterator for everything at once."""
    if isinstance(function, (BuiltinFunctionType, MethodType)):
        owner: Any = function.__self__
        if isinstance(owner, Container) or type(owner) in (*CLASSES, frozenset, str):
            return function.__name__ in _METHODS
    return isinstance(function, Hashable) and function in _TAKE_ALL


def with_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes all of an iterator, for generator expressions."""

    def call(*args: Any, **options: Any) -> Any:
        return function(*map(taken, args), **{name: taken(x) for name, x in options.items()})

    PASSING.add(call.__code__)
    return call


def taken(x: Any) -> Any:
    """All of a generator expression as a list; other values as they are."""
    return x.taken() if type(x) is Generated else x
