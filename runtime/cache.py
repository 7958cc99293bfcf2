"""Two caches: executables in memory, and object files on disk.

`LRUCache` keeps the most recently used executables of a process. `ObjectCache` keeps object
files between processes, so that a second process compiles nothing. It is content-addressed: the
key is a hash of the LLVM text, the target and the versions, so an entry is never stale. An
entry is loaded as machine code, so the directory must be the user's own and writable by nobody
else; whatever is wrong with it, jitney works on without it, and `ObjectCache.reason` says why
(`python -m jitney info` prints it).

    JITNEY_CACHE=0         no disk cache
    JITNEY_CACHE_DIR=path  where it is (default: the platform's cache directory for the user)
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import struct
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from ..codegen.target import Target
from .linker import Image

T = TypeVar("T")

_MAGIC = b"jitney\x00\x01"
_HEADER = struct.Struct("<8s32sQ")  # magic, sha256 of the object, its length
_SUFFIX = ".jo"
_TEMPORARY = ".tmp"


class LRUCache(Generic[T]):
    """At most `capacity` values, the least recently used leaves first. Thread-safe.

    `get_or_make` runs `make` for a key at most once at a time: other threads that ask for it wait.
    """

    def __init__(self, capacity: int = 1024) -> None:
        self.capacity = capacity
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[Hashable, threading.RLock] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: Hashable, value: T) -> None:
        dropped = []  # destroyed after the lock is released: unloading code may take a while
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self.capacity:
                dropped.append(self._values.popitem(last=False))

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        value = self.get(key)
        if value is not None:
            return value
        with self._lock:
            turn = self._making.setdefault(key, threading.RLock())
        with turn:
            value = self.get(key)
            if value is None:
                try:
                    value = make()
                    self.put(key, value)
                finally:
                    with self._lock:
                        self._making.pop(key, None)
        return value

    def after_fork(self) -> None:
        """In a forked child: forget the threads that were making values, they are not here."""
        self._lock = threading.Lock()
        self._making = {}

    def clear(self) -> None:
        with self._lock:
            values, self._values = self._values, OrderedDict()
        values.clear()


def default_directory() -> Path:
    """The cache directory that the environment or the platform's convention names."""
    chosen = os.environ.get("JITNEY_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base) / "jitney" / "cache" if base else Path.home() / ".jitney-cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "jitney"
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base) / "jitney"
    return Path.home() / ".cache" / "jitney"


class ObjectCache:
    """Object files in `directory`, at most `limit` bytes of them.

    `enabled` is False, with the `reason`, when the directory cannot be used. Reading and writing
    never raise; entries that are damaged are dropped. Several processes may share the directory.
    """

    def __init__(self, directory: Path | None, limit: int = 256 << 20, reason: str = "") -> None:
        self.directory = directory
        self.limit = limit
        self.reason = reason
        self.hits = 0
        self.misses = 0
        self._written = 0  # bytes since the last look at the directory's size
        if directory is not None:
            self.reason = _prepare_directory(directory)
        elif not reason:
            self.reason = "switched off"

    @property
    def enabled(self) -> bool:
        return not self.reason

    def key(self, text: str, target: Target) -> str:
        """The name of the entry for LLVM `text` compiled for `target` by the present versions."""
        return hashlib.sha256("\0".join((_versions(), target.key(), text)).encode()).hexdigest()

    def _path(self, key: str) -> Path:
        assert self.directory is not None
        return self.directory / (key + _SUFFIX)

    def get(self, key: str) -> bytes | None:
        """The object file stored under `key`, or None. A damaged entry is removed."""
        if not self.enabled:
            return None
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            self.misses += 1
            return None
        body = data[_HEADER.size :]
        try:
            magic, digest, length = _HEADER.unpack_from(data)
        except struct.error:
            magic, digest, length = b"", b"", -1
        if magic != _MAGIC or length != len(body) or hashlib.sha256(body).digest() != digest:
            self.discard(key)
            self.misses += 1
            return None
        with suppress(OSError):
            os.utime(path)  # the time of last use, which `_trim` goes by
        self.hits += 1
        return body

    def put(self, key: str, obj: bytes) -> None:
        """Store an object file. The entry appears at once and whole, or not at all."""
        if not self.enabled or len(obj) > self.limit:
            return
        header = _HEADER.pack(_MAGIC, hashlib.sha256(obj).digest(), len(obj))
        try:
            handle, name = tempfile.mkstemp(suffix=_TEMPORARY, dir=self.directory)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(header + obj)
                os.replace(name, self._path(key))
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            self.reason = f"cannot write to {self.directory}: {error.strerror or error}"
            return
        if self._written == 0 or self._written > self.limit // 16:
            self._trim()
            self._written = 0
        self._written += len(obj)

    def get_code(self, key: str) -> Image | bytes | None:
        """Machine code stored under `key`: see `Engine.assemble`."""
        data = self.get(key)
        if data is None:
            return None
        try:
            code = pickle.loads(data)
        except Exception:  # whatever a pickle of another making may raise
            code = None
        if not isinstance(code, (Image, bytes)):
            self.discard(key)
            return None
        return code

    def put_code(self, key: str, code: Image | bytes) -> None:
        self.put(key, pickle.dumps(code, pickle.HIGHEST_PROTOCOL))

    def discard(self, key: str) -> None:
        with suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    def size(self) -> tuple[int, int]:
        """How many entries there are and their size in bytes."""
        entries = self._entries()
        return len(entries), sum(size for _, size, _ in entries)

    def clear(self) -> None:
        """Remove every entry."""
        for _, _, path in self._entries():
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _entries(self) -> list[tuple[float, int, Path]]:
        """(time of last use, size, path) of our files, leftovers of dead writers included."""
        found: list[tuple[float, int, Path]] = []
        if self.directory is None:
            return found
        try:
            with os.scandir(self.directory) as entries:
                for entry in entries:
                    if entry.name.endswith((_SUFFIX, _TEMPORARY)):
                        try:
                            status = entry.stat(follow_symlinks=False)
                        except OSError:
                            continue
                        found.append((status.st_mtime, status.st_size, Path(entry.path)))
        except OSError:
            pass
        return found

    def _trim(self) -> None:
        """Remove the entries used longest ago until three quarters of the limit are left."""
        entries = sorted(self._entries(), key=lambda entry: entry[0])
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in entries:
            try:
                path.unlink(missing_ok=True)
            except OSError:
                continue
            total -= size
            if total <= self.limit * 3 // 4:
                return


def _prepare_directory(directory: Path) -> str:
    """Make the directory (0700) and check that it is safe; returns "" or why it cannot be used."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.stat(directory)
        if not stat.S_ISDIR(status.st_mode):
            return f"{directory} is not a directory"
        if hasattr(os, "getuid"):
            if status.st_uid != os.getuid():
                return f"{directory} belongs to another user"
            if status.st_mode & 0o022:
                return f"{directory} can be written to by other users"
        if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
            return f"{directory} is read-only"
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        return f"cannot use {directory}: {getattr(error, 'strerror', None) or error}"
    return ""


@lru_cache(maxsize=1)
def _versions() -> str:
    from .. import __version__
    from .engine import llvm_versions

    return "\0".join((__version__, *llvm_versions()))


@lru_cache(maxsize=1)
def object_cache() -> ObjectCache:
    """The cache that the environment asks for. Never raises."""
    if os.environ.get("JITNEY_CACHE", "").strip().lower() in ("0", "off", "no", "false"):
        return ObjectCache(None, reason="JITNEY_CACHE switches it off")
    try:
        return ObjectCache(default_directory())
    except (OSError, RuntimeError) as error:
        return ObjectCache(None, reason=str(error))
