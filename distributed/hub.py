"""Collectives without MPI, for launchers such as torchrun: every process sends to rank 0, who answers.

The hub is a thread of rank 0 that computes what each record of `ir.ops.collectives` says of all
operands, in the order of ranks: right, and enough for tests and small jobs, not fast. A connection that
closes tells all others that its process is gone.
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ir.ops.collectives.records import COLLECTIVES

Array = np.ndarray[Any, Any]
_LENGTH = struct.Struct("<q")


class Hub:
    """One member of a group that meets at `address`, where rank 0 listens."""

    threads = True

    def __init__(
        self, rank: int, size: int, address: tuple[str, int], timeout: float = 60.0
    ) -> None:
        self.rank, self.size = rank, size
        self._members = tuple(range(size))
        self._group: Any = ()  # what tells groups apart that share the connection
        server = None
        if rank == 0:
            server = _Server(size, address, timeout)
            address = ("127.0.0.1", server.port)
        self._line = _Line(rank, address, timeout)
        self._count = 0
        self._server = server

    def start(self, name: str, x: Array | None, out: Array | None, **attrs: Any) -> Iterator[None]:
        """Steps towards the result: each `next` polls, and the end is the end."""
        if name in ("send", "receive"):
            peer = attrs["to"] if name == "send" else attrs["source"]
            ends = (self.rank, peer) if name == "send" else (peer, self.rank)
            key = ("message", self._group, *ends, attrs["tag"])
            if name == "send":
                self._line.send(("message", self._members[peer], key, x))
                return
            while not self._line.messages.get(key):
                yield
            assert out is not None
            out[...] = self._line.messages[key].pop(0)
            return
        self._count += 1
        key = ("meeting", self._group, self._count)
        self._line.send(("meet", self._members, key, name, attrs, x))
        while key not in self._line.results:
            yield
        result = self._line.results.pop(key)
        if isinstance(result, str):
            raise RuntimeError(result)
        if out is not None:
            out[...] = result

    def split(self, color: int, key: int) -> Hub:
        """The members that gave the same color, in the order of their keys; all members call it."""
        rows = np.empty((self.size, 3), np.int64)
        request = self.start("all_gather", np.array([color, key, self.rank]), rows)
        for _ in request:
            time.sleep(0.001)
        own = sorted((k, r) for c, k, r in rows.tolist() if c == color)
        part = object.__new__(Hub)
        part._line, part._server, part._count = self._line, None, 0
        part._members = tuple(self._members[r] for _, r in own)
        part._group = (*self._group, self._count, color)
        part.rank, part.size = [r for _, r in own].index(self.rank), len(own)
        return part

    def post(self, target: int, message: Any) -> None:
        """Say something to another member, who finds it by `poll`."""
        self._line.send(("post", self._members[target], self._group, self.rank, message))

    def poll(self) -> list[tuple[int, Any]]:
        """What other members have said since, and who is gone."""
        mine = [p for p in self._line.posted if p[0] in (self._group, None)]
        for entry in mine:
            self._line.posted.remove(entry)
        found = []
        for group, source, message in mine:
            if group is None:
                if source not in self._members:
                    continue
                source = self._members.index(source)
            found.append((source, message))
        return found

    def abort(self) -> None:
        """End this process at once; the others see the connection close."""
        import os

        os._exit(1)

    def close(self) -> None:
        """Leave. Rank 0 waits until all others have left."""
        self._line.close()
        if self._server is not None:
            self._server.thread.join(5)


class _Line:
    """The connection of one process to the hub, and a thread that reads it."""

    def __init__(self, rank: int, address: tuple[str, int], timeout: float) -> None:
        until = time.monotonic() + timeout
        while True:
            try:
                self._socket = socket.create_connection(address, timeout=timeout)
                break
            except OSError:
                if time.monotonic() > until:
                    raise TimeoutError(
                        f"rank {rank} found nobody listening at {address[0]}:{address[1]} in "
                        f"{timeout:g} s; is rank 0 running there?"
                    ) from None
                time.sleep(0.05)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lock = threading.Lock()
        self.results: dict[Any, Any] = {}
        self.messages: dict[Any, list[Array]] = {}
        self.posted: list[tuple[Any, int, Any]] = []
        self.send(("hello", rank))
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: Any) -> None:
        with self._lock:
            _write(self._socket, message)

    def _read(self) -> None:
        while True:
            message = _read(self._socket)
            if message is None:
                self.posted.append((None, 0, ("failed", "the connection to it is closed")))
                return
            kind, key, *rest = message
            if kind == "result":
                self.results[key] = rest[0]
            elif kind == "message":
                self.messages.setdefault(key, []).append(rest[0])
            else:
                self.posted.append((key, rest[0], rest[1]))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class _Server:
    """The hub: it reads all connections in one thread each, and answers when all members are there."""

    def __init__(self, size: int, address: tuple[str, int], timeout: float) -> None:
        self._listener = socket.create_server(("", address[1]), backlog=size)
        self._listener.settimeout(timeout)
        self.port = self._listener.getsockname()[1]
        self._size = size
        self._lock = threading.RLock()
        self._lines: dict[int, Any] = {}
        self._early: dict[int, list[Any]] = {}  # for who has not come yet
        self._meetings: dict[Any, dict[int, Any]] = {}
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self) -> None:
        readers = []
        try:
            for _ in range(self._size):
                connection, _ = self._listener.accept()
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                readers.append(
                    threading.Thread(target=self._serve, args=(connection,), daemon=True)
                )
                readers[-1].start()
        except TimeoutError:
            pass  # who waits for them says so
        self._listener.close()
        for reader in readers:
            reader.join()

    def _serve(self, connection: Any) -> None:
        hello = _read(connection)
        if hello is None:
            return
        rank = hello[1]
        with self._lock:
            self._lines[rank] = connection
            for message in self._early.pop(rank, ()):
                _write(connection, message)
        while True:
            message = _read(connection)
            with self._lock:
                if message is None:
                    del self._lines[rank]
                    for other in list(self._lines):
                        self._answer(other, ("post", None, rank, ("failed", "it is gone")))
                    return
                self._handle(rank, *message)

    def _handle(self, rank: int, kind: str, to: Any, key: Any, *rest: Any) -> None:
        if kind == "message":
            self._answer(to, ("message", key, rest[0]))
        elif kind == "post":
            self._answer(to, ("post", key, rest[0], rest[1]))
        else:
            there = self._meetings.setdefault(key, {})
            there[rank] = rest
            if len(there) == len(to):
                self._meet(to, key, [self._meetings[key][r] for r in to])
                del self._meetings[key]

    def _meet(self, members: tuple[int, ...], key: Any, operands: list[Any]) -> None:
        name, attrs, _ = operands[0]
        arrays = [x for _, _, x in operands]
        results: list[Any] = [None] * len(members)
        if any(other[:2] != (name, attrs) for other in operands):
            said = ", ".join(f"rank {r}: {o[0]}" for r, o in enumerate(operands))
            results = [f"the processes came to different collectives ({said})"] * len(members)
        elif name != "barrier":
            try:
                results = list(COLLECTIVES[name].together(arrays, size=len(members), **attrs))
            except ValueError as error:
                results = [f"{name} of different shapes: {error}"] * len(members)
        for member, result in zip(members, results, strict=True):
            self._answer(member, ("result", key, result))

    def _answer(self, rank: int, message: Any) -> None:
        line = self._lines.get(rank)
        if line is None:
            self._early.setdefault(rank, []).append(message)
            return
        with contextlib.suppress(OSError):  # it is gone: its own reader says so
            _write(line, message)


def _write(connection: Any, message: Any) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def _read(connection: Any) -> Any:
    """The next message; None where the connection has ended."""
    try:
        head = _exactly(connection, _LENGTH.size)
        data = None if head is None else _exactly(connection, _LENGTH.unpack(head)[0])
        return None if data is None else pickle.loads(data)
    except OSError:
        return None


def _exactly(connection: Any, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        data = connection.recv(min(count - len(parts), 1 << 20))
        if not data:
            return None
        parts += data
    return bytes(parts)
