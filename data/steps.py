"""Pull iterators whose position is state: what every source and every transformation is while it runs.

A `Step` gives elements one by one, or in blocks. It can be set to the start of a pass, and to any
position that it had; a position is a tree that JSON can write. A step that wraps others has their
positions in its own. What it has pulled and not handed on yet is never part of a position: `Intake`
knows where its source was before, and pulls it again.
"""

from __future__ import annotations

import base64
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .errors import DataError, WorkerError
from .trees import stack

if TYPE_CHECKING:
    from .rows import Rows

Passes = tuple[
    int, ...
]  # which pass this is, and of loops around it which round: what draws depend on


class Step:
    """One source or transformation, running.

    The constructor takes the steps that it pulls from, then the transformation's options. Of a dataset
    that is not running it knows the length, and its rows if they can be had in any order.
    """

    def __init__(self, *sources: Step) -> None:
        self.sources = sources
        self.passes: Passes = ()

    @classmethod
    def start(cls, dataset: Any) -> Step:
        """The step that runs a dataset."""
        return cls(*(source.start() for source in dataset.sources), **dataset.options)

    # Functions of what its sources have and of the options: how many elements a pass has (None if only
    # counting says, infinity if it does not end), and its elements in any order, if that costs no more.
    length: ClassVar[Callable[..., float | None]] = staticmethod(lambda known, **options: known)
    rows: ClassVar[Callable[..., Rows | None]] = staticmethod(lambda *sources, **options: None)

    def __next__(self) -> Any:
        raise NotImplementedError

    def reset(self, passes: Passes) -> None:
        """Go to the start of a pass."""
        self.passes = passes
        for source in self.sources:
            source.reset(passes)

    def position(self) -> Any:
        """Where this is, for `move`."""
        return self.sources[0].position()

    def move(self, position: Any) -> None:
        """Go to where `position()` was asked for, after a `reset` to the same pass."""
        self.sources[0].move(position)

    def skip(self, count: int) -> int:
        """Pass over elements; how many there were. One that raises is an element, too."""
        for i in range(count):
            try:
                next(self)
            except StopIteration:
                return i
            except WorkerError:
                raise
            except Exception:
                continue
        return count

    def block(self, count: int) -> tuple[Any, int]:
        """Up to `count` elements as one tree, and how many; StopIteration if there is none.

        After an exception all `count` are passed over: batches have the same elements as without it.
        """
        elements: list[Any] = []
        try:
            while len(elements) < count:
                elements.append(next(self))
        except StopIteration:
            if not elements:
                raise
        except WorkerError:
            raise
        except Exception:
            self.skip(count - len(elements) - 1)
            raise
        return stack(elements), len(elements)

    def close(self) -> None:
        """Let go of files, threads and processes. What comes after is `reset`, or nothing."""
        for source in self.sources:
            source.close()


def counted(known: float | None, **options: Any) -> float | None:
    """The length of what only counting says, but of nothing."""
    return 0 if known == 0 else None


class Counting(Step):
    """A step over one source whose own state is one number, `at`, which begins with 0."""

    at = 0

    def __init__(self, source: Step) -> None:
        super().__init__(source)
        self.source, self.pull = source, source.__next__

    def reset(self, passes: Passes) -> None:
        super().reset(passes)
        self.at = 0

    def position(self) -> Any:
        return {"at": self.at, "source": self.source.position()}

    def move(self, position: Any) -> None:
        self.at = position["at"]
        self.source.move(position["source"])


class Intake:
    """Pulls from a step, numbers what it pulls, and remembers where the step was.

    A position says which elements are `held`, pulled and not handed on; `move` pulls those again.
    """

    def __init__(self, source: Step, every: int = 32, brief: bool = False) -> None:
        self.source, self._next = source, source.__next__
        self._brief = brief  # whether only the last position is kept
        self.every = every  # the least number of elements between two positions that are kept
        self.count = 0
        self.ended = False
        self._marks: deque[tuple[int, Any]] = deque()

    def reset(self) -> None:
        """Begin where the source is now."""
        self._begin(0, self.source.position())

    def _begin(self, count: int, position: Any) -> None:
        self.count, self.ended = count, False
        self._marks, self._most = deque([(count, position)]), 64
        self._gap, self.due, self._time = self.every, count + self.every, time.perf_counter()

    def pull(self) -> Any:
        """The next element. One that raises has a number, too."""
        if self.count >= self.due:
            self.mark()
        try:
            element = self._next()
        except StopIteration:
            self.ended = True
            raise
        except WorkerError:  # no element's: the iterator goes back to before this pull
            raise
        except Exception:
            self.count += 1
            raise
        self.count += 1
        return element

    def mark(self) -> None:
        """Keep a position; so seldom that this takes a fiftieth of the time."""
        start = time.perf_counter()
        if self._brief:
            self._marks.clear()
        self._marks.append((self.count, self.source.position()))
        end = time.perf_counter()
        dear = 50 * (end - start) > start - self._time
        self._gap = min(2 * self._gap, 1 << 16) if dear else max(self._gap // 2, self.every)
        self.due, self._time = self.count + self._gap, end

    def forget(self, oldest: int) -> None:
        """No element before this number is asked for again."""
        if len(self._marks) == 1:
            return
        while len(self._marks) > 1 and self._marks[1][0] <= oldest:
            self._marks.popleft()
        self._most = max(64, 2 * len(self._marks))

    @property
    def crowded(self) -> bool:
        """Whether so many positions are kept that it is time to `forget`."""
        return len(self._marks) > self._most

    def position(self, held: Sequence[int] = (), count: int | None = None) -> Any:
        """A position with these numbers to be pulled again, and all from `count` on."""
        if count is None:
            if not held:
                self._marks.append((self.count, self.source.position()))
            count = self.count
        oldest = min(held, default=count)
        self.forget(oldest)
        number, position = self._marks[0]
        found = {"source": position, "number": number, "skip": oldest - number}
        if held:
            found |= {"count": count - oldest, "held": pack([n - oldest for n in held])}
        return found

    def move(self, position: Any) -> list[tuple[int, Any]]:
        """Go there; the elements that were held, with their numbers, in the order that they had."""
        self.source.move(position["source"])
        self._begin(position["number"], position["source"])
        self._pass_over(position["skip"])
        if "held" not in position:
            return []
        oldest = self.count
        wanted = unpack(position["held"])
        elements = {}
        for number in sorted(wanted):
            self._pass_over(oldest + number - self.count)
            try:
                elements[number] = self.pull()
            except StopIteration:
                raise _shorter() from None
        self._pass_over(oldest + position["count"] - self.count)
        return [(oldest + number, elements[number]) for number in wanted]

    def skip(self, count: int) -> int:
        """Pass over elements; how many there were."""
        done = self.source.skip(count)
        self.count += done
        return done

    def _pass_over(self, count: int) -> None:
        if count and self.skip(count) < count:
            raise _shorter()


def _shorter() -> DataError:
    return DataError(
        "the data ends before the position that is to be restored: it is not the data that the "
        "position was saved with"
    )


def pack(numbers: Sequence[int]) -> list[int] | str:
    """Integers for JSON: as they are if they are few, else as text."""
    if len(numbers) <= 32:
        return [int(n) for n in numbers]
    return base64.b64encode(zlib.compress(np.array(numbers, "<i8").tobytes())).decode()


def unpack(packed: list[int] | str) -> list[int]:
    """The integers of `pack`."""
    if isinstance(packed, list):
        return packed
    return np.frombuffer(zlib.decompress(base64.b64decode(packed)), "<i8").tolist()


def key_of(seed: int, passes: Passes) -> Any:
    """The key of a counter-based generator: other numbers for other seeds, passes and rounds."""
    return np.random.SeedSequence([seed, *passes]).generate_state(2, np.uint64)


def generator(key: Any, number: int) -> np.random.Generator:
    """The generator of one element, whoever asks and whenever."""
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, number]))
