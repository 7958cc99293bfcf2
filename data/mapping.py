"""A function of each element: here, or by workers that are ahead of who asks."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any

from .selecting import called
from .steps import Counting, Intake, Passes, Step, generator, key_of
from .workers import DeadWorker, Outcomes, Pool

MOST = 256  # elements of a task
TASK_SECONDS = 0.002  # tasks grow until they take so long, so that handing them over is cheap


class Map(Counting):
    """A function of each element."""

    def __init__(self, source: Step, function: Callable[..., Any], seed: int | None) -> None:
        super().__init__(source)
        self.function, self.seed = function, seed
        self.key: Any = None

    @classmethod
    def start(cls, dataset: Any) -> Step:
        options = dict(dataset.options)
        workers = options.pop("workers"), options.pop("deterministic"), options.pop("processes")
        source = dataset.sources[0].start()
        return cls(source, **options) if not workers[0] else Mappers(source, **options, how=workers)

    def __next__(self) -> Any:
        number = self.at
        self.at += 1
        element = self.pull()
        draws = () if self.key is None else (generator(self.key, number),)
        return called(self.function, "map", number, element, *draws)

    def skip(self, count: int) -> int:
        done = self.source.skip(count)
        self.at += done
        return done

    def reset(self, passes: Passes) -> None:
        super().reset(passes)
        self.key = None if self.seed is None else key_of(self.seed, passes)


class Mappers(Step):
    """The same by workers.

    Elements go to them as tasks, in order. They are handed on in that order, or (not `deterministic`)
    as they are done. A position has the elements that were not handed on yet, to be done again.
    """

    def __init__(
        self,
        source: Step,
        function: Callable[..., Any],
        seed: int | None,
        how: tuple[int, bool, str | None],
    ) -> None:
        super().__init__(source)
        self.function, self.seed = function, seed
        self.workers, self.deterministic, self.processes = how
        self.intake = Intake(source)
        self.pool: Pool | None = None
        self.size = 1  # of the tasks to come

    def __next__(self) -> Any:
        if self.pool is not None and self.pool.process != os.getpid():  # in a child, forked
            self.move(self.position())
        while not self.ready:
            self._send()
            if not self.sent:
                raise StopIteration
            self._receive()
        good, value = self.ready.popleft()
        number = self.numbers.popleft()
        if self.deterministic:
            self.intake.forget(number + 1)
        elif self.intake.crowded:
            self.intake.forget(min([number, *self.numbers, *(n[0] for n in self.sent.values())]))
        if good:
            return value
        try:
            raise value
        finally:
            del value  # no circle of the exception and this frame

    def _send(self) -> None:
        """Keep two tasks for each worker on the way."""
        while len(self.sent) < 2 * self.workers and (self.again or not self.intake.ended):
            numbers: list[int] = []
            elements: list[Any] = []
            wrong: Exception | None = None
            while len(elements) < self.size:
                if self.again:  # of a position; a task's numbers are consecutive
                    if elements and self.again[0][0] != numbers[-1] + 1:
                        break
                    number, element = self.again.popleft()
                elif elements and self.intake.count != numbers[-1] + 1:
                    break
                else:
                    try:
                        element = self.intake.pull()
                    except StopIteration:
                        break
                    except Exception as error:  # when its turn comes
                        wrong = error
                        break
                    number = self.intake.count - 1
                numbers.append(number)
                elements.append(element)
            if elements:
                self.sent[self.ticket] = numbers
                self._pool().submit(self.ticket, numbers[0], self.key, elements)
                self.ticket += 1
            if wrong is not None:
                self.sent[self.ticket] = [self.intake.count - 1]
                self.done[self.ticket] = [(False, wrong)]
                self.ticket += 1

    def _pool(self) -> Pool:
        if self.pool is None:
            self.pool = Pool(self.function, self.workers, self.processes)
        return self.pool

    def _receive(self) -> None:
        """Wait for the outcomes whose turn it is."""
        while True:
            if self.deterministic:
                turn = next(iter(self.sent))
                found = self.done.pop(turn, None)
            else:
                turn = next(iter(self.done), -1)
                found = self.done.pop(turn, None)
            if found is not None:
                self.ready.extend(found)
                self.numbers.extend(self.sent.pop(turn))
                return
            ticket, result, seconds = self._pool().done.get()
            if isinstance(result, DeadWorker):
                self._end_pool()
                raise result.error
            self.done[ticket] = result
            if seconds < TASK_SECONDS and len(result) >= self.size:
                self.size = min(2 * self.size, MOST)

    def reset(self, passes: Passes) -> None:
        super().reset(passes)
        self.key = None if self.seed is None else key_of(self.seed, passes)
        self.intake.reset()
        self._empty()

    def _empty(self) -> None:
        if self.pool is not None and (self.sent or self.pool.process != os.getpid()):
            self._end_pool()  # what it is at is not wanted
        self.ticket = 0
        self.sent: dict[int, list[int]] = {}  # the numbers of the tasks on the way, by ticket
        self.done: dict[int, Outcomes] = {}  # those that are done before their turn
        self.ready: deque[tuple[bool, Any]] = deque()
        self.numbers: deque[int] = deque()  # of what is ready
        self.again: deque[tuple[int, Any]] = deque()  # of a position: to be done first

    def position(self) -> Any:
        waiting = [*self.numbers, *(n for task in self.sent.values() for n in task)]
        waiting += [number for number, _ in self.again]
        waiting.sort()
        count = self.intake.count
        if waiting and waiting[0] == count - len(waiting):  # the last ones: just go on from there
            return self.intake.position(count=waiting[0])
        return self.intake.position(waiting)

    def move(self, position: Any) -> None:
        self._empty()
        self.again.extend(self.intake.move(position))

    def skip(self, count: int) -> int:
        fresh = not (self.ready or self.sent or self.again)
        return self.intake.skip(count) if fresh else super().skip(count)

    def _end_pool(self) -> None:
        if self.pool is not None:
            pool, self.pool = self.pool, None
            pool.close()

    def close(self) -> None:
        self._end_pool()
        super().close()
