"""One framework in one process, which prepares a row and then times calls of it on request.

Frameworks have thread pools that would disturb each other within one process; so each has a process
of its own, and the parent lets only one of them run at a time.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from .frameworks import load
from .memory import MemoryPeak
from .rows import ROWS, Array

BLOCK_SECONDS = 3e-4  # shorter calls are timed in blocks of this length
PAUSE_SECONDS = 0.3  # before a turn: the threads of the framework before it may still be spinning


Loader = Callable[[str], Any]  # gives a framework's module, which says how it writes the rows
Preparer = Callable[
    ..., tuple[dict[str, Any], Any]
]  # of that module and a row: a reply, and a call


def prepare(module: Any, name: str, small: bool, reference: list[Array]) -> tuple[Any, Any]:
    """A row of `rows`: compiled, checked, warm."""
    row = ROWS[name]
    if row.implementation not in {**module.ROWS, **getattr(module, "MAKERS", {})}:
        return {"reason": "not written for this framework"}, None
    function, arguments = module.prepare(row, row.inputs(small))
    wait = module.wait

    def call() -> Any:
        return wait(function(*arguments))

    start = time.perf_counter()
    result = call()
    first = time.perf_counter() - start
    error = row.error(module.arrays(result), reference)
    del result
    return {"first": first, "error": error, "memory": peak_of(call)}, call


def peak_of(call: Callable[[], Any]) -> int | None:
    """Bytes that a call takes at its peak, after one to warm up."""
    call()
    with MemoryPeak() as memory:
        call()
    return memory.bytes


class Worker:
    """The parent's handle. If the framework is missing, `version` is None and `reason` says why.

    `load` and `prepare`, functions of a module, run in the child.
    """

    def __init__(
        self,
        framework: str,
        cpus: int | None,
        realtime: bool = False,
        load: Loader = load,
        prepare: Preparer = prepare,
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self.framework = framework
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve,
            args=(theirs, framework, cpus, realtime, load, prepare),
            daemon=True,
        )
        self._process.start()
        theirs.close()
        reply = self._receive()
        self.version: str | None = reply.get("version")
        self.reason: str = reply.get("reason", "")

    def prepare(self, row: str, small: bool, *more: Any) -> dict[str, Any]:
        """Compile, check, warm up. Replies with `first` (seconds), `error` (in units of what the row
        tolerates) and `memory` (bytes that a call takes at its peak), or with `reason`."""
        return self._ask("prepare", row, small, *more)

    def time(self, budget: float, cpu: bool = False) -> list[float]:
        """Seconds per call, or those of CPUs that it took, for about `budget` seconds."""
        samples: list[float] = self._ask("time", budget, cpu)["samples"]
        return samples

    def close(self) -> None:
        self._connection.close()
        self._process.join(5)

    def _ask(self, *message: Any) -> dict[str, Any]:
        try:
            self._connection.send(message)
        except OSError:
            return {"reason": "the process has died"}
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        try:
            reply: dict[str, Any] = self._connection.recv()
        except (EOFError, OSError):
            return {"reason": "the process has died"}
        return reply


def serve(
    connection: Connection,
    framework: str,
    cpus: int | None,
    realtime: bool,
    load: Loader,
    prepare: Preparer,
) -> None:
    """The child's side: answer requests until the parent closes the pipe."""
    if cpus is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cpus])
    if realtime:  # before the import: threads that the framework starts inherit it
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        module = load(framework)
    except ImportError as error:
        connection.send({"reason": f"not installed ({error})"})
        return
    connection.send({"version": module.version()})
    call: Any = None
    while True:
        try:
            command, *arguments = connection.recv()
        except EOFError:
            return
        try:
            if command == "prepare":
                call = None  # let go of the previous row's arrays first
                gc.collect()
                reply, call = prepare(module, *arguments)
            else:
                reply = {"samples": samples(call, *arguments)}
        except Exception as error:
            traceback.print_exc()
            reply = {"reason": f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}"}
        connection.send(reply)


def samples(call: Any, budget: float, cpu: bool = False) -> list[float]:
    clock = time.process_time if cpu else time.perf_counter
    time.sleep(PAUSE_SECONDS)
    start = clock()
    call()
    repeat = max(1, min(1000, int(BLOCK_SECONDS / max(clock() - start, 1e-7))))
    collected: list[float] = []
    enabled = gc.isenabled()
    gc.disable()
    try:
        end = clock() + budget
        while True:
            start = clock()
            for _ in range(repeat):
                result = call()
            stop = clock()
            collected.append((stop - start) / repeat)
            if stop > end:
                break
        del result
    finally:
        if enabled:
            gc.enable()
    return collected
