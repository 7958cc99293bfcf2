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
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from ...containers.comprehensions import comprehended, comprehended_parts
from ...containers.growing import PASSING
from ...containers.kinds import CLASSES
from ...containers.stand_ins import Container
from ...messages import errors
from ...messages.errors import complain


class Stream:
    """An iterator of Python's that `lazily` makes of `items`, and the loop that it stands for."""

    asks = True  # whether its conditions may be traced
    is_broken = False  # whether a traced number of items was taken

    def __init__(self, items: Any, lazily: Callable[[Any], Any]) -> None:
        self.items, self._lazily = items, lazily
        self._python: Any = None
        self.is_new = True

    def begun(self) -> Any:
        """Python's."""
        if self.is_broken:
            complain(
                errors.TransformError,
                "an iterator is asked for more of which `next` has taken the first that met a traced "
                "condition",
                "make a list of it, [*items], and index that.",
            )
        if self.is_new:
            self.is_new, self._python = False, self._lazily(self.items)
        return self._python

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self.begun())

    def begins_anew(self) -> bool:
        """Go back to the beginning, if whatever it is made of can be run over once more."""
        parts = self.items if isinstance(self.items, tuple) else (self.items,)
        again = [
            x.begins_anew() if isinstance(x, Stream) else not isinstance(x, Iterator) for x in parts
        ]
        self.is_new = all(again)
        return self.is_new

    def ended(self) -> None:
        """All of it was taken."""
        self.is_new, self._python = False, iter(())

    def has(self, x: Any) -> Any:
        """`x in self`"""
        return _served[1](self, x) if self.is_new and self.asks else x in self.begun()

    def taken(self) -> Any:
        """All of it, as a list."""
        return _served[0](self) if self.is_new else self.begun()

    def over(
        self, run: Any, choose: Any, body: Callable[[Any], Any], more: Any, state: Any
    ) -> None:
        """`for item in self: body(item)`, by `run(iterable, body, more, state)` for each of the loops
        and `choose(test, then, otherwise, state)`."""
        self.ended()
        self.loop(Loop(self, run, choose, body, more, state))

    def loop(self, loop: Loop) -> None:
        loop.begin()

    def step(self, item: Any, loop: Loop) -> None:
        """What is done with an item."""
        raise NotImplementedError


_served: list[Callable[..., Any]] = []  # `streams`, which lies above, puts them here


class Loop:
    """The loop over what a stream is made of."""

    def __init__(
        self, stream: Stream, run: Any, choose: Any, body: Any, more: Any, state: Any
    ) -> None:
        self.stream, self._run, self._choose = stream, run, choose
        self.body, self.more, self.state = body, more, state

    @property
    def __code__(self) -> Any:  # which tells loops apart
        return self.body.__code__, type(self.stream), getattr(self.stream, "site", None)

    def begin(self) -> None:
        self.run(self.stream.items, self)

    def run(self, items: Any, body: Any) -> None:
        """A loop."""
        self._run(items, body, self.more, self.state, False)

    def when(self, test: Any, then: Callable[[], Any]) -> None:
        """A branch of an iteration."""
        self._choose(test, then, lambda: None, self.state.of_iteration())

    def __call__(self, item: Any) -> None:
        self.stream.step(item, self)


class Generated(Stream):
    """A generator expression. `listed` makes a list of the elements for some items (of generators, where
    there are `several` loops), `when` one of what is asked of them."""

    def __init__(
        self,
        site: Any,
        items: Any,
        lazily: Callable[[Any], Any],
        listed: Callable[[Any], Any],
        when: Callable[[Any], Any] | None,
        several: bool,
    ) -> None:
        super().__init__(items, lazily)
        self.site, self._listed, self._when, self._several = site, listed, when, several
        self.asks = when is not None or several

    def __getattr__(self, name: str) -> Any:
        if name in ("send", "throw", "close"):
            return getattr(self.begun(), name)
        raise AttributeError(f"'generator' object has no attribute {name!r}")

    def taken(self) -> Any:
        if not self.is_new:
            return self.begun()
        self.ended()
        lazily, listed = self._lazily, self._listed
        make: Any = comprehended
        if self._several:
            listed, make = lambda items: [*map(taken, self._listed(items))], comprehended_parts
        items = taken(self.items)
        return make(items, lambda items: [*lazily(items)], listed, self._when, site=self.site)

    def step(self, item: Any, loop: Loop) -> None:
        def then() -> None:
            (found,) = self._listed((item,))
            if self._several:
                loop.run(found, loop.body)
            else:
                loop.body(found)

        if self._when is None:
            then()
        else:
            loop.when(self._when((item,))[0], then)


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
    kind = type(function)
    if kind in (FunctionType, BuiltinFunctionType, type) and function in _TAKE_ALL:
        return True
    if kind not in (BuiltinFunctionType, MethodType):
        return False
    name, owner = getattr(function, "__name__", ""), function.__self__
    if name == "fromkeys":
        return type(owner) is type and owner in CLASSES
    return name in _METHODS and (
        isinstance(owner, Container) or type(owner) in CLASSES or type(owner) in (frozenset, str)
    )


def with_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes all of an iterator, for streams."""

    def call(*args: Any, **options: Any) -> Any:
        return function(*map(taken, args), **{name: taken(x) for name, x in options.items()})

    return call


def taken(x: Any) -> Any:
    """All of a stream as a list; other values as they are."""
    return x.taken() if isinstance(x, Stream) else x


def serve_streams(listed: Callable[[Any], Any], contains: Callable[[Any, Any], Any]) -> None:
    """Let `listed` make a list of a stream, and `contains` look for a value in it."""
    _served[:] = [listed, contains]


PASSING.add(__name__)
