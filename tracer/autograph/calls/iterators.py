"""`itertools`' iterators over what is known by numbers, and `np.ndindex`, as the loops they stand for.

    for i, j in product(range(n), range(m)):        for i in range(n):
        ...                                  ->         for j in range(m): ...

The loops are run by whoever runs loops: written out, or as ops. Whoever asks such an iterator for
elements gets Python's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from operator import index, length_hint
from typing import Any

import numpy as np

from ..iteration import Items, at_places, range_
from ..variables import in_graph, is_traced

Level = Callable[[tuple[Any, ...]], Any]
_MANY = 16  # elements from which those of an array that NumPy made are perhaps a loop


class Nested(Iterator[Any]):
    """An iterator of Python's, and the loops that it stands for: each of `levels` gives what the next
    loop runs over, `item` the element for what the loops have come to."""

    def __init__(
        self, python: Any, length: int, levels: Sequence[Level], item: Callable[..., Any]
    ) -> None:
        self.python, self.length, self.levels, self.item = python, length, levels, item
        self.is_new = True

    def __next__(self) -> Any:
        self.is_new = False
        return next(self.python)

    def __length_hint__(self) -> int:
        return length_hint(self.python, 0)

    def over(self, run: Callable[..., None], body: Callable[[Any], Any], *rest: Any) -> None:
        """`for item in self: body(item)`, by `run(iterable, body, *rest)` for each of the loops."""
        self.is_new, self.python = False, iter(())
        _Loop(self, run, body, rest, ()).begin()


class _Loop:
    """One of the loops, as the body of the one around it."""

    def __init__(
        self, nest: Nested, run: Any, body: Any, rest: tuple[Any, ...], places: tuple[Any, ...]
    ) -> None:
        self.nest, self.run, self.body, self.rest, self.places = nest, run, body, rest, places

    @property
    def __code__(self) -> Any:  # which tells loops apart
        return self.body.__code__, len(self.places)

    def begin(self) -> None:
        level = self.nest.levels[len(self.places)]
        self.run(level(self.places), self, *self.rest, False)

    def __call__(self, place: Any) -> None:
        places = (*self.places, place)
        if len(places) == len(self.nest.levels):
            self.body(self.nest.item(*places))
        else:
            _Loop(self.nest, self.run, self.body, self.rest, places).begin()


def nested(iterable: Any) -> Nested | None:
    """The loops that something stands for that is run over; None where Python has to."""
    if not in_graph():
        return None
    if isinstance(iterable, Nested):
        return iterable if iterable.is_new else None
    if type(iterable) is np.ndarray and iterable.ndim == 1 and len(iterable) >= _MANY:
        at = at_places(iterable)
        return None if at is None else _over(iter(iterable), len(iterable), at)
    return None


def _over(python: Any, length: Any, at: Callable[[Any], Any]) -> Nested:
    hint = length if isinstance(length, int) else 0
    return Nested(python, hint, [lambda _: range_(length)], at)


def product_(*pools: Any, repeat: Any = 1) -> Any:
    """`itertools.product`"""
    pools = tuple(pool if hasattr(pool, "__len__") else tuple(pool) for pool in _known(pools))
    if not in_graph() or is_traced(repeat) or any(isinstance(p, Items) for p in pools):
        return itertools.product(*pools, repeat=repeat)
    pools = pools * index(repeat)
    if not pools:
        return itertools.product()
    length = int(np.prod([len(pool) for pool in pools], dtype=object))
    levels = [lambda _, pool=pool: pool for pool in pools]
    return Nested(_lazily(itertools.product, *pools), length, levels, lambda *items: items)


def _known(pools: tuple[Any, ...]) -> list[Any]:
    return [
        pool if is_traced(pool) or not isinstance(pool, Iterator) else [*pool] for pool in pools
    ]


def _lazily(make: Any, *args: Any) -> Iterator[Any]:
    """Python's iterator, made when it is asked for the first element: it takes its pools at once."""
    yield from make(*args)


def _combined(make: Any, step: int) -> Callable[..., Any]:
    """`combinations`, or with replacement (no `step` from one place to the next)."""

    def call(iterable: Any, r: Any) -> Any:
        at = at_places(iterable) if in_graph() else None
        if at is None or is_traced(r) or index(r) < 1:
            return make(iterable, r)
        n, count = len(iterable), index(r)

        def level(k: int) -> Level:
            last = n - step * (count - 1 - k)
            return lambda places: range_(places[-1] + step if places else 0, last)

        def item(*places: Any) -> Any:
            return tuple(at(i) for i in places)

        levels = [level(k) for k in range(count)]
        return Nested(_lazily(make, iterable, count), max(n, 0) ** count, levels, item)

    return call


def repeat_(x: Any, *times: Any) -> Any:
    """`itertools.repeat`"""
    if not times or not in_graph():
        return itertools.repeat(x, *times)
    (count,) = times
    if not is_traced(count):
        count = max(index(count), 0)
        return _over(itertools.repeat(x, count), count, lambda i: x)
    return Nested(
        _lazily(lambda: itertools.repeat(x, count)), 0, [lambda _: range_(count)], lambda i: x
    )


def ndindex_(*shape: Any) -> Any:
    """`np.ndindex`"""
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = (*shape[0],)
    traced = any(map(is_traced, shape))
    if (
        not in_graph()
        or not shape
        or not (traced or all(isinstance(n, int) and n >= 0 for n in shape))
    ):
        return np.ndindex(*shape)
    length = 0 if traced else int(np.prod(shape, dtype=object))
    levels = [lambda _, n=n: range_(n) for n in shape]
    return Nested(_lazily(np.ndindex, *shape), length, levels, lambda *places: places)


ITERATORS: dict[Any, Callable[..., Any]] = {
    itertools.product: product_,
    itertools.combinations: _combined(itertools.combinations, 1),
    itertools.combinations_with_replacement: _combined(itertools.combinations_with_replacement, 0),
    itertools.repeat: repeat_,
    np.ndindex: ndindex_,
}
