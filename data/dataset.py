"""`Dataset`: what elements come from where, in what order; nothing runs before it is iterated."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any

import jitney as jt

from .batching import Batch, Groups, Unbatch, Window
from .caching import Cache, File, Memory
from .errors import refuse
from .interleaving import Interleave
from .iterators import Iterator
from .mapping import Map
from .prefetching import Prefetch
from .rows import Rows, Walk
from .selecting import Concatenate, Enumerate, Filter, Repeat, Shard, Take
from .shuffling import Shuffle, new_seed
from .steps import Step
from .trees import pad as fill_up
from .trees import spec, stack
from .workers import start_method


class Dataset:
    """A sequence of elements, trees of arrays, numbers and texts, that is made while it is iterated.

    `jt.data.from_arrays`, `range`, `text_lines`, `tfrecord` and others make one; its methods make others
    of it. Each `iter(dataset)` is one pass, by an `Iterator`, whose position can be saved. Passes of
    shuffles and of functions that draw differ from each other; with seeds they are the same in each run.

    >>> dataset = jt.data.from_arrays({"x": np.arange(6.0)}).map(lambda e: {"x": e["x"] * 2}).batch(4)
    >>> [batch["x"].tolist() for batch in dataset]
    [[0.0, 2.0, 4.0, 6.0], [8.0, 10.0]]
    >>> len(dataset), dataset
    (2, jt.data.Dataset(from_arrays > map > batch))
    """

    if not TYPE_CHECKING:
        __getattr__ = jt.errors.elsewhere.of_objects(
            as_numpy_iterator="iter(dataset): elements are NumPy's",
            cardinality="len(dataset)",
            make_one_shot_iterator="iter(dataset)",
        )

    def __init__(self, name: str, make: type[Step], *sources: Dataset, **options: Any) -> None:
        self.name, self.make, self.sources, self.options = name, make, sources, options
        self.line = jt.errors.user_line()  # where it was made
        self._next_pass = 0

    # What a dataset is

    def __iter__(self) -> Iterator:
        self._next_pass += 1
        return Iterator(self, (self._next_pass - 1,))

    def iterator(
        self, state: dict[str, Any] | None = None, *, epoch: int | None = None
    ) -> Iterator:
        """A pass: the next one, that of a number, or what is left of the one that a `state` is of.

        >>> dataset = jt.data.range(100).shuffle(seed=0)
        >>> list(dataset.iterator(epoch=3)) == list(dataset.iterator(epoch=3))
        True
        """
        if state is None:
            if epoch is not None:
                self._next_pass = epoch
            return iter(self)
        it = Iterator(self, (0,))
        it.restore(state)
        self._next_pass = state["pass"][0] + 1
        return it

    @cached_property
    def length(self) -> float | None:
        """How many elements a pass has: None where only counting says, infinity if it does not end."""
        return self.make.length(*[source.length for source in self.sources], **self.options)

    @cached_property
    def rows(self) -> Rows | None:
        """The elements in any order, where that costs no more than theirs."""
        sources = [source.rows for source in self.sources]
        return None if None in sources else self.make.rows(*sources, **self.options)

    def __len__(self) -> int:
        if self.length is None or self.length == math.inf:
            remedy = "take(n) ends it." if self.length else "count them: sum(1 for _ in dataset)."
            refuse(f"nobody knows the length of {self.describe()}", remedy, TypeError)
        return int(self.length)

    @cached_property
    def element_spec(self) -> Any:
        """Of the first element: `jt.ShapeDtype` for each array, `str` or `bytes` where there are texts.

        It is found by making that element. Raises ValueError if there is none.

        >>> jt.data.from_arrays((np.zeros((4, 2), np.float32), ["a"] * 4)).batch(2).element_spec
        (ShapeDtype((2, 2), float32), <class 'str'>)
        """
        with Iterator(self, (0,)) as it:
            for element in it:
                return spec(element)
        refuse(
            f"{self.describe()} has no element", "give it one, or say shapes and dtypes yourself."
        )

    def start(self) -> Step:
        """What runs it."""
        return self.make.start(self) if self.rows is None else Walk(self.rows)

    def describe(self) -> str:
        """The names of its steps."""
        if len(self.sources) > 1:
            return f"{self.name}({', '.join(source.describe() for source in self.sources)})"
        return " > ".join([*(source.describe() for source in self.sources), self.name])

    def __repr__(self) -> str:
        return f"jt.data.Dataset({self.describe()})"

    # Which elements

    def take(self, count: int) -> Dataset:
        """The first `count` elements.

        >>> list(jt.data.range(5).take(2))
        [0, 1]
        """
        return Dataset("take", Take, self, count=_natural("take", count))

    def skip(self, count: int) -> Dataset:
        """All but the first `count` elements; they are passed over without being made.

        >>> list(jt.data.range(5).skip(3))
        [3, 4]
        """
        return Dataset("skip", Shard, self, first=_natural("skip", count), every=1)

    def shard(self, count: Any, index: int | None = None) -> Dataset:
        """Each `count`-th element from number `index` on: the part of one of `count` processes.

        `shard(comm)` is the part of this process of a communicator: each element is one process's.
        Processes at the end of whose part an element is missing have one less than others.

        >>> list(jt.data.range(5).shard(2, 1))
        [1, 3]
        >>> list(jt.data.range(2).shard(jt.distributed.init()))
        [0, 1]
        """
        if index is None:
            if not hasattr(count, "rank"):
                refuse(
                    f"shard of {count!r} without an index",
                    "give shard(count, index), or shard(comm).",
                )
            count, index = count.size, count.rank
        if not 0 <= index < _natural("shard", count, 1):
            refuse(f"there is no shard {index} of {count}", f"give an index of 0 to {count - 1}.")
        return Dataset("shard", Shard, self, first=index, every=count)

    def filter(self, function: Callable[[Any], Any]) -> Dataset:
        """The elements for which `function(element)` is true.

        >>> list(jt.data.range(5).filter(lambda x: x % 2))
        [1, 3]
        """
        return Dataset("filter", Filter, self, function=_function("filter", function))

    def repeat(self, count: int | None = None) -> Dataset:
        """`count` passes one after the other, each with draws of its own; without a count it has no end.

        >>> list(jt.data.range(2).repeat(2))
        [0, 1, 0, 1]
        """
        count = None if count is None else _natural("repeat", count)
        return Dataset("repeat", Repeat, self, count=count)

    def concatenate(self, *others: Dataset) -> Dataset:
        """The elements of others after these; `a + b` is the same.

        >>> [int(x) for x in jt.data.range(2) + jt.data.range(3)]
        [0, 1, 0, 1, 2]
        """
        for other in others:
            if not isinstance(other, Dataset):
                what = f"concatenate was given {jt.errors.describe(other)}"
                refuse(what, "jt.data.from_arrays(x) makes a dataset of an array.", TypeError)
        return Dataset("concatenate", Concatenate, self, *others)

    __add__ = concatenate

    def enumerate(self, start: int = 0) -> Dataset:
        """Pairs of a number and an element.

        >>> list(jt.data.from_arrays(["a", "b"]).enumerate(1))
        [(1, 'a'), (2, 'b')]
        """
        return Dataset("enumerate", Enumerate, self, start=start)

    def shuffle(
        self, buffer: int | None = None, seed: int | None = None, min_after: int | None = None
    ) -> Dataset:
        """Elements in random order, another one in each pass, drawn from a buffer of that many.

        Of arrays, ranges and the like, without `buffer` (or with one as large) all orders are equally
        likely, and only indices are shuffled. Elsewhere the buffer holds elements, and is needed. The
        first is handed on when `min_after` more are in it (default: a full buffer); it then fills up to
        `buffer`, by two for each that leaves. Without `seed` the system draws one.

        >>> sorted(jt.data.range(5).shuffle(seed=0))
        [0, 1, 2, 3, 4]
        """
        if buffer is None:
            if self.rows is None:
                refuse(
                    f"shuffle() of {self.describe()}, whose elements come one after the other",
                    "give it a buffer: shuffle(10_000) holds so many of them.",
                )
            buffer = max(self.rows.size, 1)
        buffer = _natural("shuffle", buffer, 1)
        least = buffer - 1 if min_after is None else _natural("shuffle(min_after=)", min_after)
        if least >= buffer:
            what = f"a buffer of {buffer} is full before {min_after} more are in it"
            refuse(what, "give a larger buffer, or a smaller min_after=.")
        seed = new_seed() if seed is None else _natural("shuffle(seed=)", seed)
        return Dataset("shuffle", Shuffle, self, buffer=buffer, seed=seed, least=least)

    # What is made of them

    def map(
        self,
        function: Callable[..., Any],
        *,
        workers: int = 0,
        deterministic: bool = True,
        processes: bool | str = False,
        seed: int | None = None,
    ) -> Dataset:
        """`function(element)` of each element.

        With `workers` so many threads call it ahead of who asks, or with `processes=True` processes (or
        `"fork"`, `"spawn"`, `"forkserver"`, start methods of `multiprocessing`). Elements stay in order,
        unless `deterministic=False` hands them on as they are done. With `seed` it is
        `function(element, rng)`: the generator depends on the seed, the pass and the element's number,
        not on who calls. Exceptions have a note with the element and the line; a worker process that
        dies is a `WorkerError`.

        >>> list(jt.data.range(3).map(lambda x: x + 1, workers=2))
        [1, 2, 3]
        >>> augmented = jt.data.range(3).map(lambda x, rng: x + rng.random(), seed=0)
        >>> list(augmented.iterator(epoch=0)) == list(augmented.iterator(epoch=0))
        True
        """
        return Dataset(
            "map",
            Map,
            self,
            function=_function("map", function),
            seed=None if seed is None else _natural("map(seed=)", seed),
            workers=_natural("map(workers=)", workers, 1 if processes else 0),
            deterministic=deterministic,
            processes=start_method(processes),
        )

    def flat_map(self, function: Callable[[Any], Dataset]) -> Dataset:
        """The elements of the dataset `function(element)`, for one element after the other.

        >>> list(jt.data.range(3).flat_map(jt.data.range))
        [0, 0, 1]
        """
        return self._interleave(function, 1, 1, "flat_map")

    def interleave(
        self, function: Callable[[Any], Dataset], cycle: int = 4, block: int = 1
    ) -> Dataset:
        """The elements of `function(element)`, by `block` in turns from `cycle` of them at a time.

        >>> list(jt.data.range(2).interleave(lambda i: jt.data.range(2).map(lambda x: (i, x))))
        [(0, 0), (1, 0), (0, 1), (1, 1)]
        """
        return self._interleave(function, cycle, block, "interleave")

    def _interleave(self, function: Any, cycle: int, block: int, what: str) -> Dataset:
        cycle, block = _natural(what, cycle, 1), _natural(what, block, 1)
        _function(what, function)
        return Dataset(
            what, Interleave, self, function=function, cycle=cycle, block=block, what=what
        )

    # Several as one

    def batch(self, size: int, *, drop_last: bool = False, pad: Any = None) -> Dataset:
        """`size` elements as one: a tree of arrays with one more axis, the first; texts as objects.

        The last may have fewer, or is dropped. With `pad`, arrays of different shapes are filled up
        with that value. Raises DataError, with the places, for elements of different trees or shapes.

        >>> list(jt.data.range(5).batch(2, drop_last=True))
        [array([0, 1]), array([2, 3])]
        """
        if pad is not None:
            return self.padded_batch(size, values=pad, drop_last=drop_last)
        return self._batch("batch", size, drop_last, None)

    def padded_batch(
        self, size: int, shapes: Any = None, values: Any = 0, *, drop_last: bool = False
    ) -> Dataset:
        """Batches of arrays that are filled up with `values` to `shapes`.

        Where there is no shape, or None in it, it is that of the longest in the batch. Both are trees
        as the elements are, or one for all.

        >>> rows = jt.data.from_generator(lambda: [np.ones(1, int), np.ones(3, int)])
        >>> next(iter(rows.padded_batch(2))).tolist()
        [[1, 0, 0], [1, 1, 1]]
        """
        fill = partial(fill_up, shapes=shapes, values=values)
        return self._batch("padded_batch", size, drop_last, fill)

    def _batch(self, what: str, size: int, drop_last: bool, fill: Any) -> Dataset:
        size = _natural(what, size, 1)
        return Dataset(what, Batch, self, size=size, drop_last=drop_last, fill=fill)

    def bucket_by_length(
        self,
        length: Callable[[Any], int],
        boundaries: Sequence[int],
        batch_sizes: int | Sequence[int],
        *,
        shapes: Any = None,
        values: Any = 0,
        drop_last: bool = False,
    ) -> Dataset:
        """Padded batches of elements of about the same length.

        Bucket i has the lengths below `boundaries[i]` that no bucket before it has, and one more bucket
        the rest; `batch_sizes` has one size for each, or is one for all.

        >>> rows = jt.data.from_arrays(np.arange(5)).map(np.ones)
        >>> batches = rows.bucket_by_length(len, [3], [3, 2])
        >>> [batch.shape for batch in batches]
        [(3, 2), (2, 4)]
        """
        if list(boundaries) != sorted(set(boundaries)):
            refuse(f"bucket_by_length: {list(boundaries)} do not grow", "sort the boundaries.")
        count = len(boundaries) + 1
        sizes = [batch_sizes] * count if isinstance(batch_sizes, int) else list(batch_sizes)
        if len(sizes) != count:
            refuse(
                f"{len(boundaries)} boundaries make {count} buckets, and there are {len(sizes)} "
                "batch_sizes",
                "give one for each bucket, or one number for all.",
            )
        sizes = [_natural("bucket_by_length", size, 1) for size in sizes]

        def bucket(element: Any) -> int:
            return bisect_right(boundaries, length(element))

        def reduce(key: Any, elements: list[Any]) -> Any:
            return fill_up(elements, shapes, values)

        key = wraps(_function("bucket_by_length", length))(bucket)
        return self._groups(key, sizes.__getitem__, reduce, drop_last, "bucket_by_length")

    def group_by_window(
        self,
        key: Callable[[Any], Hashable],
        size: int | Callable[[Any], int],
        reduce: Callable[[Any, list[Any]], Any] | None = None,
        *,
        drop_last: bool = False,
    ) -> Dataset:
        """`reduce(key, elements)` of `size` elements with one key (default: a batch of them).

        `size` may be a function of the key. At the end come groups with fewer, unless they are dropped.

        >>> list(jt.data.range(5).group_by_window(lambda x: x % 2, 2, lambda key, xs: sum(xs)))
        [2, 4, 4]
        """
        _function("group_by_window", key)
        count = size if callable(size) else _natural("group_by_window", size, 1)
        sizes = count if callable(count) else lambda key: count
        reduce = reduce or (lambda key, elements: stack(elements))
        return self._groups(key, sizes, reduce, drop_last, "group_by_window")

    def _groups(self, key: Any, size: Any, reduce: Any, drop_last: bool, what: str) -> Dataset:
        options = {"key": key, "size": size, "reduce": reduce, "drop_last": drop_last, "what": what}
        return Dataset(what, Groups, self, **options)

    def window(
        self, size: int, shift: int | None = None, stride: int = 1, *, drop_last: bool = True
    ) -> Dataset:
        """Batches of `size` elements, `stride` apart; `shift` (default: `size`) from one to the next.

        >>> list(jt.data.range(5).window(3, shift=1))
        [array([0, 1, 2]), array([1, 2, 3]), array([2, 3, 4])]
        """
        size, stride = _natural("window", size, 1), _natural("window(stride=)", stride, 1)
        shift = size if shift is None else _natural("window(shift=)", shift, 1)
        options = {"size": size, "shift": shift, "stride": stride, "drop_last": drop_last}
        return Dataset("window", Window, self, **options)

    def unbatch(self) -> Dataset:
        """The rows of elements that are trees of arrays, one by one.

        >>> list(jt.data.range(3).batch(2).unbatch())
        [np.int64(0), np.int64(1), np.int64(2)]
        """
        return Dataset("unbatch", Unbatch, self)

    # When

    def cache(self, path: str | None = None) -> Dataset:
        """The elements of the first whole pass, kept for the later ones, in memory or in a file.

        What is below it has the draws of its first pass in all of them; shuffle behind it. A file
        appears when the pass is whole, and serves other processes. Arrays are read-only.

        >>> dataset = jt.data.range(3).map(lambda x: x * x).cache()
        >>> list(dataset), list(dataset)
        ([0, 1, 4], [0, 1, 4])
        """
        store = Memory() if path is None else File(str(path), self.describe())
        return Dataset("cache", Cache, self, store=store)

    def prefetch(self, ahead: int = 2, device: Any = None) -> Dataset:
        """Elements made by a thread, up to `ahead` before who asks, and put on a device if one is named.

        >>> list(jt.data.range(3).prefetch(2))
        [0, 1, 2]
        """
        return Dataset(
            "prefetch", Prefetch, self, ahead=_natural("prefetch", ahead, 1), device=device
        )


def _natural(what: str, value: Any, least: int = 0) -> int:
    try:
        number = int(value.__index__())
    except AttributeError:
        refuse(f"{what} was given {value!r}", f"give an integer of at least {least}.", TypeError)
    if number < least:
        refuse(f"{what} was given {value!r}", f"give an integer of at least {least}.")
    return number


def _function(what: str, function: Any) -> Any:
    if not callable(function):
        described = jt.errors.describe(function)
        refuse(f"{what} was given {described}", "give a function of an element.", TypeError)
    return function
