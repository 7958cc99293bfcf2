"""Workers that call a function on elements: threads, or threads that each have a process to do it.

A task is a ticket, the number of its first element, the key of its draws and the elements; what comes
back are outcomes, (True, result) or (False, exception), one for each element.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from .errors import WorkerError, describe, place, refuse
from .selecting import called
from .steps import generator

Outcomes = list[tuple[bool, Any]]
PATIENCE = 5.0  # seconds that a worker has to come to an end


def outcomes(
    function: Callable[..., Any], first: int, key: Any, elements: list[Any], begin: Any = None
) -> Outcomes:
    """Call a function on each element, with a generator of the element's own if there is a key."""
    found: Outcomes = []
    for number, element in enumerate(elements, first):
        if begin is not None and begin(number):
            break
        draws = () if key is None else (generator(key, number),)
        try:
            found.append((True, called(function, "map", number, element, *draws)))
        except BaseException as error:  # SystemExit, too, is the caller's
            found.append((False, error))
    return found


class DeadWorker:
    """Stands for the outcomes of a task whose worker died."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Pool:
    """Threads that take tasks from one queue and put outcomes into another.

    With `start`, a start method of `multiprocessing`, each has a process of its own.
    """

    def __init__(self, function: Callable[..., Any], workers: int, start: str | None) -> None:
        self.process = os.getpid()
        self.done: SimpleQueue[tuple[int, Outcomes | DeadWorker, float]] = SimpleQueue()
        self._tasks: SimpleQueue[Any] = SimpleQueue()
        self._stop = threading.Event()
        self._remotes: list[Remote] = []
        work: list[Callable[..., Outcomes]] = []
        try:
            for _ in range(workers):
                if start is None:
                    work.append(partial(_in_thread, function, self._stop))
                else:
                    self._remotes.append(Remote(function, start, self._remotes))
                    work.append(self._remotes[-1].call)
        except BaseException:
            self._end_processes()
            raise
        self._threads = [
            threading.Thread(
                target=_serve, args=(do, self._tasks, self.done), daemon=True, name="jt.data worker"
            )
            for do in work
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, ticket: int, first: int, key: Any, elements: list[Any]) -> None:
        """Have it done, some time."""
        self._tasks.put((ticket, first, key, elements))

    def close(self) -> None:
        """End the workers, whatever they are at, and wait for that."""
        if os.getpid() != self.process:  # they are the parent's
            return
        self._stop.set()
        for _ in self._threads:
            self._tasks.put(None)
        self._end_processes()
        deadline = time.monotonic() + PATIENCE
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))
        for remote in self._remotes:
            remote.connection.close()

    def _end_processes(self) -> None:
        for remote in self._remotes:
            remote.process.terminate()
        for remote in self._remotes:
            remote.end()


def _in_thread(
    function: Callable[..., Any], stop: threading.Event, first: int, key: Any, elements: list[Any]
) -> Outcomes:
    return outcomes(function, first, key, elements, lambda number: stop.is_set())


def _serve(do: Callable[..., Outcomes], tasks: SimpleQueue[Any], done: SimpleQueue[Any]) -> None:
    while (task := tasks.get()) is not None:
        ticket, *rest = task
        start = time.perf_counter()
        found: Outcomes | DeadWorker
        try:
            found = do(*rest)
        except BaseException as error:
            found = DeadWorker(error)
        done.put((ticket, found, time.perf_counter() - start))
        del task, rest, found  # an exception's frames would keep alive who asked for it


class Remote:
    """A worker process and the pipe to it."""

    def __init__(self, function: Callable[..., Any], start: str, others: list[Remote]) -> None:
        context: Any = multiprocessing.get_context(start)
        self.function = function
        self.connection, theirs = context.Pipe()
        # A forked child has these, too; a sibling that ends would not be noticed through them.
        inherited = [r.connection for r in (*others, self)] if start == "fork" else []
        self.current = context.RawValue("q", -1)  # the number of the element that it is at
        self.process = context.Process(
            target=_work, args=(function, theirs, inherited, self.current, os.getpid()), daemon=True
        )
        # Ctrl-C waits until the child has said that it is not for it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            self.connection.close()
            raise TypeError(
                f"map(processes={start!r}) sends {place(function)} to its workers, which fails "
                f"({error}): define it at the top of a module, or use processes='fork'"
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def call(self, first: int, key: Any, elements: list[Any]) -> Outcomes:
        """The outcomes of one task. Raises WorkerError if the process dies."""
        try:
            message = pickle.dumps((first, key, elements), protocol=5)
        except Exception as error:
            error.add_note(f"map(processes=) sends elements to its workers: {describe(elements)}")
            return [(False, error)] * len(elements)
        try:
            self.connection.send_bytes(message)
            while not self.connection.poll(1.0):
                if not self.process.is_alive():
                    raise EOFError
            return pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise self._death(first, elements) from error

    def _death(self, first: int, elements: list[Any]) -> WorkerError:
        self.process.join(PATIENCE)
        code = self.process.exitcode
        how = f"by exit code {code}"
        if code is not None and code < 0:
            how = f"by {signal.Signals(-code).name}"
        if self.current.value < 0 and code == 1:
            return WorkerError(
                f"worker process {self.process.pid} of Dataset.map({place(self.function)}) died before "
                "its first element; what it said is above. A script whose workers are spawned has its "
                "program under `if __name__ == '__main__':`, as each of them imports it"
            )
        at = min(max(self.current.value - first, 0), len(elements) - 1)
        return WorkerError(
            f"worker process {self.process.pid} of Dataset.map({place(self.function)}) died {how} at "
            f"element {first + at}: {describe(elements[at])}"
        )

    def end(self) -> None:
        """Wait for the end of the process, which was asked to; make it end, if it does not."""
        self.process.join(PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join(PATIENCE)


def _work(
    function: Callable[..., Any], connection: Any, inherited: list[Any], current: Any, parent: int
) -> None:
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for other in inherited:
        other.close()

    def begin(number: int) -> None:
        current.value = number

    while True:
        while not connection.poll(1.0):
            if os.getppid() != parent:
                return
        try:
            first, key, elements = pickle.loads(connection.recv_bytes())
            found = outcomes(function, first, key, elements, begin)
            connection.send_bytes(_message(found))
        except (EOFError, BrokenPipeError):
            return


def _message(found: Outcomes) -> bytes:
    try:
        message = pickle.dumps(found, protocol=5)
        if all(good for good, _ in found):
            return message
        pickle.loads(message)  # not each exception comes back
        return message
    except Exception:
        return pickle.dumps([_portable(good, value) for good, value in found], protocol=5)


def _portable(good: bool, value: Any) -> tuple[bool, Any]:
    """An outcome that can be pickled."""
    try:
        pickle.loads(pickle.dumps((good, value), protocol=5))
        return good, value
    except Exception as error:
        if good:
            text = f"map(processes=) cannot send back {describe(value)}: {error}"
            return False, TypeError(text)
        text = f"{type(value).__name__}: {value}"
        wrong = RuntimeError(text)
        for note in getattr(value, "__notes__", ()):
            wrong.add_note(note)
        return False, wrong


def start_method(processes: bool | str | None) -> str | None:
    """The start method of `multiprocessing` for `map(processes=)`; None for threads."""
    if processes is None or processes is False:
        return None
    if processes is True:
        return "fork" if sys.platform == "linux" else "spawn"
    if processes not in multiprocessing.get_all_start_methods():
        methods = ", ".join(multiprocessing.get_all_start_methods())
        remedy = f"give one of {methods}; True (fork on Linux) or False (threads)."
        refuse(f"there is no start method {processes!r} of processes", remedy)
    return processes
