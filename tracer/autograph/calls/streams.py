"""Functions of iterators in Python, to be transformed: `filter` and its kin, which are generator
expressions, and those of `itertools` and `functools` whose loops a traced value may end."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from operator import add
from typing import Any

from ...containers import growing
from ...containers.growing import PASSING
from ...containers.walking import walked
from ...messages import errors
from ..iteration import enumerate_, zip_
from ..logic import all_, and_, any_, not_, truth
from ..users.operators import twin
from ..variables import in_graph
from .generators import Loop, Stream, serve_streams, taken


def filtered(test: Any, items: Any) -> Any:
    """`filter`"""
    return (x for x in items if test(x))


def filtered_by_truth(items: Any) -> Any:
    """`filter(None, items)`"""
    return (x for x in items if x)


def filtered_false(test: Any, items: Any) -> Any:
    """`itertools.filterfalse`"""
    return (x for x in items if not test(x))


def filtered_false_by_truth(items: Any) -> Any:
    """`itertools.filterfalse(None, items)`"""
    return (x for x in items if not x)


def compressed(items: Any, wanted: Any) -> Any:
    """`itertools.compress`"""
    return (x for x, is_wanted in zip(items, wanted, strict=False) if is_wanted)


def mapped(function: Any, items: Any) -> Any:
    """`map`"""
    return (function(x) for x in items)


def mapped_of_tuples(function: Any, items: Any) -> Any:
    """`itertools.starmap`"""
    return (function(*x) for x in items)


def flattened(iterables: Any) -> Any:
    """`itertools.chain.from_iterable`"""
    return (x for items in iterables for x in items)


def listed(items: Any) -> list[Any]:
    """`[*items]`"""
    found = []
    for x in items:
        found.append(x)
    return found


def accumulated(items: Any, function: Any) -> Any:
    """`itertools.accumulate` of a list."""
    found: list[Any] = []
    if len(items) > 0:
        total = items[0]
        found.append(total)
        for k in range(1, len(items)):
            total = function(total, items[k])
            found.append(total)
    return (x for x in found)


def accumulated_from(items: Any, function: Any, total: Any) -> Any:
    """The same, with an `initial` value."""
    found = [total]
    for x in items:
        total = function(total, x)
        found.append(total)
    return (x for x in found)


def reduced(function: Any, items: Any) -> Any:
    """`functools.reduce` of a list."""
    if len(items) == 0:
        raise TypeError("reduce() of empty iterable with no initial value")
    total = items[0]
    for k in range(1, len(items)):
        total = function(total, items[k])
    return total


def reduced_from(function: Any, items: Any, total: Any) -> Any:
    """The same, with an initial value."""
    for x in items:
        total = function(total, x)
    return total


def first_of(items: Any) -> Any:
    """`next`"""
    for x in items:
        return x
    raise StopIteration


def first_or(items: Any, default: Any) -> Any:
    """`next` with a default."""
    for x in items:
        return x
    return default


def contains(items: Any, wanted: Any) -> Any:
    """`wanted in items`"""
    return any(x is wanted or x == wanted for x in items)


def any_of(items: Any) -> Any:
    """`any`"""
    return any(x for x in items)


def all_of(items: Any) -> Any:
    """`all`"""
    return all(x for x in items)


# What is called for them


def filter_(test: Any, items: Any) -> Any:
    """`filter`"""
    return twin(filtered_by_truth)(items) if test is None else twin(filtered)(test, items)


def filterfalse_(test: Any, items: Any) -> Any:
    """`itertools.filterfalse`"""
    if test is None:
        return twin(filtered_false_by_truth)(items)
    return twin(filtered_false)(test, items)


def compress_(data: Any, selectors: Any) -> Any:
    """`itertools.compress`"""
    return twin(compressed)(data, selectors)


class _Carrying(Stream):
    """A stream whose loop has a variable of its own: whether all that came was as is asked, or how many
    came."""

    def __init__(self, items: Any, lazily: Callable[[Any], Any], first: Any) -> None:
        super().__init__(items, lazily)
        self.value = first

    def set(self, value: Any) -> None:
        self.value = value

    def goes_on(self) -> Any:
        """Whether another item is wanted."""
        return True

    def loop(self, loop: Loop) -> None:
        more = loop.more
        if more is None and type(self).goes_on is not _Carrying.goes_on:
            loop.more = self.goes_on
        elif more is not None:
            loop.more = lambda: and_(self.goes_on(), more)
        loop.state = loop.state.joined("what an iterator keeps", lambda: self.value, self.set)
        loop.begin()


class TakenWhile(_Carrying):
    """`itertools.takewhile`"""

    def __init__(self, test: Any, items: Any) -> None:
        super().__init__(items, partial(itertools.takewhile, test), True)
        self._test = test

    def goes_on(self) -> Any:
        return self.value

    def step(self, item: Any, loop: Loop) -> None:
        self.value = truth(self._test(item))
        loop.when(self.value, lambda: loop.body(item))


class DroppedWhile(_Carrying):
    """`itertools.dropwhile`"""

    def __init__(self, test: Any, items: Any) -> None:
        super().__init__(items, partial(itertools.dropwhile, test), True)
        self._test = test

    def step(self, item: Any, loop: Loop) -> None:
        loop.when(self.value, lambda: self.set(truth(self._test(item))))
        loop.when(not_(self.value), lambda: loop.body(item))


class Enumerated(_Carrying):
    """`enumerate` of a stream."""

    def __init__(self, items: Stream, start: Any = 0) -> None:
        super().__init__(items, lambda items: enumerate(items, start), start)

    def step(self, item: Any, loop: Loop) -> None:
        number = self.value
        self.value = number + 1
        loop.body((number, item))


class Sliced(_Carrying):
    """`itertools.islice` of a stream."""

    def __init__(self, items: Stream, *ends: Any) -> None:
        super().__init__(items, lambda items: itertools.islice(items, *ends), 0)
        part = slice(*ends)
        self._start, self._stop, self._step = part.start or 0, part.stop, part.step or 1

    def goes_on(self) -> Any:
        return self._stop is None or self.value < self._stop

    def step(self, item: Any, loop: Loop) -> None:
        past = self.value - self._start
        self.value = self.value + 1
        loop.when((past >= 0) & (past % self._step == 0), lambda: loop.body(item))


class Chained(Stream):
    """`itertools.chain` of streams, and what else is run over."""

    def __init__(self, *items: Any) -> None:
        super().__init__(items, lambda items: itertools.chain(*items))

    def loop(self, loop: Loop) -> None:
        for k, items in enumerate(self.items):
            run = partial(loop.run, items, loop)
            if k and loop.more is not None:
                loop.when(truth(loop.more()), run)
            else:
                run()

    def step(self, item: Any, loop: Loop) -> None:
        loop.body(item)


class Consumer:
    """The body of the loop over what a generator function yields: called with each item, it says whether
    the loop has ended."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self.state = loop, loop.state

    def __call__(self, item: Any) -> Any:
        self._loop.body(item)
        return False if self._loop.more is None else not_(self._loop.more())


class Yielded(Stream):
    """What a generator function gives: `called(consumer)` is the function as a plain one, which calls
    it with each item (`syntax.yielding`)."""

    def __init__(self, generator: Any, called: Callable[[Consumer], None]) -> None:
        super().__init__((), lambda _: generator)
        self._called = called

    def __getattr__(self, name: str) -> Any:
        if name in ("send", "throw", "close"):
            return getattr(self.begun(), name)
        raise AttributeError(f"'generator' object has no attribute {name!r}")

    def loop(self, loop: Loop) -> None:
        self._called(Consumer(loop))


class Zipped(Stream):
    """`zip` of streams: lists of all for who takes all; else Python's, item by item."""

    def __init__(self, *items: Any, **options: Any) -> None:
        super().__init__(items, lambda items: zip(*items, **options))  # noqa: B905
        self._options = options

    def taken(self) -> Any:
        if not self.is_new:
            return self.begun()
        self.ended()
        return zip_(*map(taken, self.items), **self._options)

    def loop(self, loop: Loop) -> None:
        loop.run(self._lazily(self.items), loop.body)


def pairwise_(items: Any) -> Any:
    """`itertools.pairwise`, of what is known at run time only."""
    items = taken(items)
    found = walked(items)
    if found is None or isinstance(found[0], int):
        return itertools.pairwise(items)
    return zip_(items, items[1:])


def of_stream(function: Any, own: Any, place: int = 0) -> Callable[..., Any]:
    """A function of an iterator, for streams, which stand at a place among the arguments."""

    def call(*args: Any, **options: Any) -> Any:
        is_single = function is not map or len(args) == 2
        if is_single and any(isinstance(x, Stream) for x in args[place:]):
            return own(*args, **options)
        return function(*args, **options)

    return call


def ending(function: Any, own: Any) -> Callable[..., Any]:
    """`takewhile` or `dropwhile`."""

    def call(test: Any, items: Any) -> Any:
        is_pythons = isinstance(items, Iterator) and not isinstance(items, Stream)
        if is_pythons or not in_graph():
            return function(test, items)
        return own(test, items)

    return call


def accumulate_(function: Any) -> Callable[..., Any]:
    """`itertools.accumulate`, where it is known at run time only how many there are."""

    def call(items: Any, func: Any = None, *, initial: Any = None) -> Any:
        items = taken(items)
        if walked(items) is None:
            return function(items, func, initial=initial)
        if initial is not None:
            return twin(accumulated_from)(items, func or add, initial)
        return twin(accumulated)(items, func or add)

    return call


def reduce_(function: Any) -> Callable[..., Any]:
    """`functools.reduce`, the same."""

    def call(f: Any, items: Any, *initial: Any) -> Any:
        found = walked(items)
        if found is None or isinstance(found[0], int):
            return function(f, items, *initial)
        return twin(reduced_from if initial else reduced)(f, items, *initial)

    return call


def searching(plain: Any, own: Any) -> Callable[..., Any]:
    """`any` or `all`."""

    def call(items: Any) -> Any:
        if isinstance(items, Stream) and items.is_new and items.asks:
            return twin(own)(items)
        return plain(items)

    return call


def next_(iterator: Any, *default: Any) -> Any:
    """`next`: the loop up to the first, where it has conditions that Python cannot ask."""
    if not isinstance(iterator, Stream) or not iterator.is_new or not iterator.asks:
        return growing.next_(iterator, *default)
    try:
        return next(iterator, *default)
    except (errors.TransformError, errors.TracerBoolError):
        if not iterator.begins_anew():
            raise
    found = twin(first_or)(iterator, *default) if default else twin(first_of)(iterator)
    iterator.is_broken = True
    return found


STREAMS: dict[Any, Callable[..., Any]] = {
    filter: filter_,
    itertools.filterfalse: filterfalse_,
    itertools.compress: compress_,
    itertools.takewhile: ending(itertools.takewhile, TakenWhile),
    itertools.dropwhile: ending(itertools.dropwhile, DroppedWhile),
    itertools.accumulate: accumulate_(itertools.accumulate),
    functools.reduce: reduce_(functools.reduce),
    any: searching(any_, any_of),
    all: searching(all_, all_of),
    next: next_,
    enumerate: of_stream(enumerate_, Enumerated),
    zip: of_stream(zip_, Zipped),
    itertools.pairwise: pairwise_,
    map: of_stream(map, lambda *args: twin(mapped)(*args), 1),
    itertools.starmap: of_stream(itertools.starmap, lambda *args: twin(mapped_of_tuples)(*args), 1),
    itertools.islice: of_stream(itertools.islice, Sliced),
    itertools.chain: of_stream(itertools.chain, Chained),
    itertools.chain.from_iterable: of_stream(
        itertools.chain.from_iterable, lambda items: twin(flattened)(items)
    ),
}
serve_streams(lambda stream: twin(listed)(stream), lambda items, x: twin(contains)(items, x))
PASSING.add(__name__)
