"""Elements made ahead, on a thread, and put on a device if that is asked."""

from __future__ import annotations

import os
import threading
from queue import SimpleQueue
from typing import Any

import jitney as jt

from .errors import WorkerError
from .steps import Intake, Passes, Step
from .workers import PATIENCE

END = object()


class Prefetch(Step):
    """Up to so many elements ahead of who asks.

    The thread has the source to itself, so a position comes from what the intake remembers.
    """

    def __init__(self, source: Step, ahead: int, device: Any) -> None:
        super().__init__(source)
        self.source, self.ahead, self.device = source, ahead, device
        self.intake = Intake(source, 8)
        self.feed: Feed | None = None
        self.at = 0  # how many were handed on

    def __next__(self) -> Any:
        if self.feed is not None and self.feed.process != os.getpid():  # in a child, forked
            self.move(self.position())
        if self.feed is None:
            self.feed = Feed(self.intake, self.ahead, self.device)
        good, element = self.feed.next()
        if element is END:
            raise StopIteration
        self.at += 1
        self.intake.forget(self.at)
        if good:
            return element
        raise element

    def reset(self, passes: Passes) -> None:
        self._stop()
        super().reset(passes)
        self.intake.reset()
        self.at = 0

    def position(self) -> Any:
        return self.intake.position(count=self.at)

    def move(self, position: Any) -> None:
        self._stop()
        self.intake.move(position)
        self.at = self.intake.count

    def skip(self, count: int) -> int:
        if self.feed is not None:
            return super().skip(count)
        done = self.intake.skip(count)
        self.at += done
        return done

    def _stop(self) -> None:
        if self.feed is not None:
            feed, self.feed = self.feed, None
            feed.stop()

    def close(self) -> None:
        feed, self.feed = self.feed, None
        if feed is None or feed.stop(PATIENCE):  # else the source is in use
            super().close()


class Feed:
    """The thread that pulls, and the queue that it fills."""

    def __init__(self, intake: Intake, ahead: int, device: Any) -> None:
        self.process = os.getpid()
        self._queue: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
        self._room = threading.Semaphore(ahead)
        self._stopped = threading.Event()
        self._ended = False
        self._thread = threading.Thread(
            target=_fill,
            args=(intake, device, self._queue, self._room, self._stopped),
            daemon=True,
            name="jt.data prefetch",
        )
        self._thread.start()

    def next(self) -> tuple[bool, Any]:
        """The next element, as soon as it is there."""
        if self._ended:
            return True, END
        good, element = self._queue.get()
        self._ended = element is END
        self._room.release()
        return good, element

    def stop(self, patience: float | None = None) -> bool:
        """End the thread, and wait for that; whether it came to its end."""
        if self.process != os.getpid():  # it is the parent's
            return True
        self._stopped.set()
        self._room.release()
        if self._thread is not threading.current_thread():
            self._thread.join(patience)
        return not self._thread.is_alive()


def _fill(
    intake: Intake,
    device: Any,
    queue: SimpleQueue[tuple[bool, Any]],
    room: threading.Semaphore,
    stopped: threading.Event,
) -> None:
    while room.acquire() and not stopped.is_set():
        try:
            element = intake.pull()
            queue.put((True, element if device is None else jt.device_put(element, device)))
            del element
        except StopIteration:
            queue.put((True, END))
            return
        except BaseException as error:
            queue.put((False, error))
            if isinstance(error, WorkerError):
                queue.put((True, END))
                return
