"""The processes of a job as one of them sees them: collectives, and what is done where one fails.

A wait polls, listens to the others, and ends: with the result, with what another process says of its
end, or when the time is over, naming who did not come. All that it knows of the others is what they say
while they wait themselves, so a process that computes for longer than the time-out counts as one that
hangs.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Any

import numpy as np

import jitney as jt

from ..tracer.transforms.processes import Processes, named_dtype
from .errors import DistributedError, MismatchError, RankError, RankTimeoutError

Array = np.ndarray[Any, Any]
_TEXT = 400  # bytes of what a process says about a collective in debug mode
_yield: Any = getattr(os, "sched_yield", lambda: time.sleep(0))


class Alone:
    """The transport of a process that is a group of its own."""

    rank, size, threads = 0, 1, True

    def start(self, name: str, x: Any, out: Any, **attrs: Any) -> Any:
        if name in ("send", "receive"):
            raise DistributedError("a process alone sends and receives nothing")
        if out is not None:
            out[...] = 0 if attrs.get("perm") == () else x.reshape(out.shape)
        return iter(())

    def split(self, color: int, key: int) -> Alone:
        return self

    def post(self, target: int, message: Any) -> None:
        """There is nobody."""

    def poll(self) -> list[tuple[int, Any]]:
        return []

    def abort(self) -> None:
        os._exit(1)

    def close(self) -> None:
        """Nothing is open."""


class Members:
    """Who carries out the collectives of a group, over a transport (`Mpi`, `Hub`, `Alone`)."""

    def __init__(self, transport: Any, timeout: float, debug: bool) -> None:
        self.transport, self.timeout, self.debug = transport, timeout, debug
        self.rank, self.size = transport.rank, transport.size
        self.broken: DistributedError | None = None
        self.ended: dict[int, str] = {}
        self.done: dict[int, int] = {}  # how many collectives who has ended has been through
        self._here: Any = "at no collective yet"
        self.waiting = False
        self._count = 0
        self._lock = threading.RLock()
        self._process = os.getpid()

    def collective(
        self, name: str, x: Array | None, out: Array | None, line: Any = None, **attrs: Any
    ) -> None:
        """Carry out a collective. Raises a DistributedError where a member does not."""
        with self._lock:
            if self._process != os.getpid():
                raise DistributedError(
                    "this process was forked from a member of the group, and is none itself: exchange "
                    "arrays in the process that called jt.distributed.init()"
                )
            if self.broken is not None:
                raise type(self.broken)(str(self.broken), self.broken.ranks)
            message = name in ("send", "receive")  # between two of the members
            self._count += not message
            self._here = name, out if x is None else x, line or jt.errors.user_line(), attrs
            if self.debug and not message:
                self._agree(x)
            try:
                self._wait(self.transport.start(name, x, out, **attrs))
            except DistributedError:
                raise
            except Exception as error:
                self._break(DistributedError(f"rank {self.rank}, {self.place}: {error}"))

    @property
    def place(self) -> str:
        """Where this process is: which collective, of what, at which line. Made when it is asked for."""
        if isinstance(self._here, str):
            return self._here
        name, array, line, attrs = self._here
        what = "" if array is None else f" of {array.dtype}{list(array.shape)}"
        rest = "".join(f", {k}={v}" for k, v in attrs.items())
        number = "" if name in ("send", "receive") else f"collective {self._count}, "
        return f"{number}{name}{what}{rest}, at {line}"

    def _wait(self, request: Any) -> None:
        self.waiting = True
        try:
            until = time.monotonic() + self.timeout
            for polls, _ in enumerate(request, 1):
                if polls < 200:
                    _yield()
                else:
                    time.sleep(min(1e-3, 2e-6 * (polls - 199)))
                if polls % 64 == 0 or polls > 300:
                    self._listen()
                    if time.monotonic() > until:
                        self._overdue(request)
                        return
        finally:
            self.waiting = False

    def _listen(self) -> dict[int, str]:
        """What the others say; raises where one says that it failed. Gives where who answered is."""
        answers = {}
        for source, (kind, text) in self.transport.poll():
            if kind == "where":
                self.transport.post(source, ("at", self.place))
            elif kind == "at":
                answers[source] = text
            elif kind == "ended":
                self.ended[source] = "it has ended"
                self.done[source] = text
            elif kind == "failed":
                self.ended[source] = text
                self._break(RankError(f"rank {source} failed: {text}", (source,)), tell=False)
            else:  # it gave up
                why, ranks = text
                self.ended[source] = why
                self._break(RankError(f"rank {source} gave up: {why}", ranks), tell=False)
        # Who has ended may have been through this collective before.
        ranks = tuple(sorted(r for r in self.ended if self.done.get(r, 0) < self._count))
        if ranks and self.waiting:
            said = f"rank {ranks[0]} has ended, and rank {self.rank} waits for it in {self.place}"
            self._break(RankError(said, ranks), tell=False)  # the others hear it, too
        return answers

    def _overdue(self, request: Any) -> None:
        """The time is over: ask the others where they are, and raise, unless it is done meanwhile."""
        others = [r for r in range(self.size) if r != self.rank]
        for other in others:
            self.transport.post(other, ("where", self.place))
        answers: dict[int, str] = {}
        until = time.monotonic() + min(2.0, max(0.2, self.timeout / 4))
        while time.monotonic() < until and len(answers) < len(others):
            try:
                next(request)
            except StopIteration:
                return
            answers |= self._listen()
            time.sleep(1e-3)
        silent = tuple(r for r in others if r not in answers)
        said = f"rank {self.rank} waited {self.timeout:g} s in {self.place}"
        if silent:
            ranks = " and ".join(map(str, silent))
            said += f"; no answer from rank {ranks}, which computes, hangs or is dead"
        elsewhere = {r: at for r, at in answers.items() if at != self.place}
        for r, at in elsewhere.items():
            said += f"; rank {r} waits in {at}"
        self._break(RankTimeoutError(said, silent or tuple(elsewhere)))

    def _agree(self, x: Array | None) -> None:
        """Debug mode: all members say where they are first; MismatchError unless it is the same."""
        bad = x is not None and x.dtype.kind in "fc" and not np.isfinite(x).all()
        own = ("!" if bad else " ") + self.place
        text = np.zeros(_TEXT, np.uint8)
        data = own.encode()[:_TEXT]
        text[: len(data)] = np.frombuffer(data, np.uint8)
        rows = np.empty((self.size, _TEXT), np.uint8)
        self._wait(self.transport.start("all_gather", text, rows))
        said = [bytes(row).rstrip(b"\0").decode(errors="replace") for row in rows]
        what = [s[1:].partition(", at ")[0] for s in said]
        if len(set(what)) > 1:
            most = max(what, key=what.count)
            odd = tuple(r for r, w in enumerate(what) if w != most)
            listed = "; ".join(f"rank {r} is in {s[1:]}" for r, s in enumerate(said))
            said_all = f"the processes do not do the same: {listed}"
            self._break(MismatchError(said_all, odd), tell=False)
        wrong = tuple(r for r, s in enumerate(said) if s[0] == "!")
        if wrong:
            ranks = " and ".join(map(str, wrong))
            self._break(
                RankError(f"rank {ranks} brings NaN or infinity to {self.place}", wrong), tell=False
            )

    def _break(self, error: DistributedError, tell: bool = True) -> None:
        self.broken = error
        if tell:
            self.tell("gave up", (str(error), error.ranks))
        raise error

    def tell(self, kind: str, text: Any) -> None:
        """Say something to all others."""
        for other in range(self.size):
            if other != self.rank:
                try:
                    self.transport.post(other, (kind, text))
                except Exception:  # nobody is there to hear it
                    return

    def leave(self, patience: float) -> None:
        """Say that this process ends in order, and hear the same of the others."""
        self._here = "the end of its program"
        if self.broken is not None:
            self.tell("gave up", (str(self.broken), self.broken.ranks))
        else:
            self.tell("ended", self._count)
        until = time.monotonic() + patience
        while len(self.ended) < self.size - 1 and time.monotonic() < until:
            with contextlib.suppress(DistributedError):
                self._listen()
            time.sleep(1e-3)


class Communicator(Processes):
    """A group of processes. Where `jt.psum(x, "i")` takes a name, a communicator does as well.

    `rank` and `size` are Python ints. Operands are arrays, or trees of arrays; collectives work in
    compiled functions, loops, branches that all processes take, under `grad`, `vmap`, `scan`, and
    outside of all these. They happen in program order.

    >>> comm = jt.distributed.init()
    >>> comm.rank, comm.size
    (0, 1)
    >>> comm.all_reduce(np.ones(3), "sum")
    array([1., 1., 1.])
    """

    members: Members

    def __reduce__(self) -> Any:
        """In another process: the communicator of that process, of the same label."""
        if self.label != "world":
            raise TypeError(f"{self!r} is a part of this job, and means nothing in another process")
        return jt.distributed.init, ()

    def __repr__(self) -> str:
        return f"<Communicator {self.label!r}: rank {self.rank} of {self.size}>"

    def all_reduce(self, x: Any, kind: str = "sum") -> Any:
        """The sum, mean, max or min of the `x` of all processes, for all of them."""
        functions = {"sum": jt.psum, "mean": jt.pmean, "max": jt.pmax, "min": jt.pmin}
        if kind not in functions:
            jt.errors.complain(
                jt.errors.UnsupportedFunctionError,
                f"all_reduce of kind {kind!r}",
                "there are sum, mean, max and min.",
            )
        return functions[kind](x, self)

    def all_gather(self, x: Any, axis: int = 0, tiled: bool = False) -> Any:
        """The `x` of all processes, stacked along a new axis, or concatenated along it (`tiled`)."""
        return jt.all_gather(x, self, axis=axis, tiled=tiled)

    def reduce_scatter(self, x: Any, axis: int = 0, tiled: bool = False) -> Any:
        """The sum of the `x` of all processes, of which each gets its part along `axis`."""
        return jt.psum_scatter(x, self, scatter_dimension=axis, tiled=tiled)

    def all_to_all(
        self, x: Any, split_axis: int = 0, concat_axis: int = 0, tiled: bool = False
    ) -> Any:
        """Part j of `x` along `split_axis` goes to process j, who joins them along `concat_axis`."""
        return jt.all_to_all(x, self, split_axis, concat_axis, tiled=tiled)

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """The `x` of process `root`, for all; the others give arrays of the same shape and dtype."""
        return jt.pbroadcast(x, self, root)

    def ppermute(self, x: Any, perm: Any) -> Any:
        """For each (i, j) of `perm`, process j gets the `x` of i; who gets nothing has zeros."""
        return jt.ppermute(x, self, perm)

    def send(self, x: Any, to: int, tag: int = 0) -> None:
        """`x`, one array, goes to process `to`, who receives it. It has no derivative."""
        self._check_peer(to)
        self.message("send", x, to=to, tag=tag)

    def receive(self, like: Any, source: int, tag: int = 0) -> Any:
        """What process `source` sends: an array of the shape and dtype of `like`."""
        self._check_peer(source)
        shape, dtype = np.shape(like), named_dtype(getattr(like, "dtype", type(like)))
        return self.message("receive", None, source=source, tag=tag, shape=shape, dtype=dtype)

    def barrier(self) -> None:
        """Nobody goes on before all processes are here."""
        self.message("barrier")

    def split(self, color: int, key: int | None = None) -> Communicator:
        """The group of all processes that give the same `color`, ordered by `key`. All call it."""
        members = self.members
        part = members.transport.split(color, self.rank if key is None else key)
        self.parts = getattr(self, "parts", 0) + 1
        label = f"{self.label}/{self.parts}"
        return Communicator(label, Members(part, members.timeout, members.debug))

    def _check_peer(self, rank: int) -> None:
        if not 0 <= rank < self.size or rank == self.rank:
            jt.errors.complain(
                jt.errors.SettingError,
                f"rank {self.rank} of {self.size} sends to, or receives from, rank {rank}",
                "name another process of the group.",
            )
