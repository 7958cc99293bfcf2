"""Collectives by MPI, through mpi4py: whichever MPI that was built for, Open MPI and MPICH among them.

All calls are non-blocking and polled by who waits, so that a wait can end, and processes that share a
core let each other run. Small arrays travel in buffers of their own, which stay alive where a wait is
given up. Large ones are read and written where they are, once all members have arrived.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
SMALL = 1 << 15  # bytes up to which an array is copied
_CONTROL = 7


class Mpi:
    """One communicator of MPI's, and a second one for what members say of themselves."""

    def __init__(self, comm: Any = None) -> None:
        from mpi4py import MPI  # its import starts MPI

        self.mpi = MPI
        self.comm = (MPI.COMM_WORLD if comm is None else comm).Dup()
        self.control = self.comm.Dup()
        self.rank, self.size = self.comm.rank, self.comm.size
        self.threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self._kinds = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}
        self._posted: list[Any] = []

    def start(self, name: str, x: Array | None, out: Array | None, **attrs: Any) -> Iterator[None]:
        """Steps towards the result: each `next` polls, and the end is the end."""
        nbytes = max(0 if a is None else a.nbytes for a in (x, out))
        if nbytes <= SMALL or name in ("send", "receive"):
            given = None if x is None else x.copy()
            target = None if out is None else np.empty_like(out)
            yield from self._polled(self._request(name, given, target, **attrs))
            if out is not None:
                out[...] = target
            return
        yield from self._polled([self.comm.Ibarrier()])
        yield from self._polled(self._request(name, x, out, **attrs))

    def _polled(self, requests: list[Any]) -> Iterator[None]:
        while requests:
            requests = [r for r in requests if not r.Test()]
            if requests:
                yield

    def _request(self, name: str, x: Any, out: Any, **attrs: Any) -> list[Any]:
        comm, none = self.comm, self.mpi.PROC_NULL
        if name == "barrier":
            return [comm.Ibarrier()]
        if name == "all_reduce":
            return [comm.Iallreduce(x, out, self._kinds[attrs["kind"]])]
        if name == "reduce_scatter":
            return [comm.Ireduce_scatter_block(x, out)]
        if name == "reduce_to":
            if self.rank != attrs["root"]:
                out[...] = 0
            return [
                comm.Ireduce(x, out if self.rank == attrs["root"] else None, root=attrs["root"])
            ]
        x, out = (None if a is None else _bits(a) for a in (x, out))
        if name == "all_gather":
            return [comm.Iallgather(x, out)]
        if name == "all_to_all":
            return [comm.Ialltoall(x, out)]
        if name == "send_all":
            if self.rank == attrs["root"]:
                out[...] = x
            return [comm.Ibcast(out, root=attrs["root"])]
        if name == "send":
            return [comm.Isend(x, attrs["to"], attrs["tag"])]
        if name == "receive":
            return [comm.Irecv(out, attrs["source"], attrs["tag"])]
        assert name == "ppermute", name
        sources = {target: source for source, target in attrs["perm"]}
        source, target = sources.get(self.rank, none), dict(attrs["perm"]).get(self.rank, none)
        if source == none:
            out[...] = 0
        tag = 32_000  # apart from the user's messages
        return [comm.Irecv(out, source, tag), comm.Isend(x, target, tag)]

    def split(self, color: int, key: int) -> Mpi:
        """The communicator of all members that gave the same color; all members call it."""
        comm = self.comm.Split(color, key)
        part = Mpi(comm)
        comm.Free()
        return part

    def post(self, target: int, message: Any) -> None:
        """Say something to another member, who finds it by `poll`."""
        self._posted = [r for r in self._posted if not r.Test()]
        self._posted.append(self.control.isend(message, target, _CONTROL))

    def poll(self) -> list[tuple[int, Any]]:
        """What other members have said since."""
        found, status = [], self.mpi.Status()
        while self.control.Iprobe(tag=_CONTROL, status=status):
            source = status.Get_source()
            found.append((source, self.control.recv(source=source, tag=_CONTROL)))
        return found

    def abort(self) -> None:
        """End all processes of the job."""
        self.comm.Abort(1)

    def close(self) -> None:
        """What is left to the end of the process, which finalises MPI."""


def _bits(array: Array) -> Array:
    """The same memory under a dtype that every MPI has."""
    flat = array.reshape(-1)
    return flat.view(np.uint64 if flat.dtype.itemsize % 8 == 0 else np.uint8)
