"""The cache on disk: bytes by key, kept for the next process.

Keys are hashes of everything that an entry depends on, so an entry is never stale; it is whole or it
is not there (written aside, then renamed), and one that was damaged is noticed by its checksum and
removed. Several processes may share the directory without locks: they can only write the same bytes
under the same name, and a reader has opened its entry before another process can remove it.

What is read becomes machine code, so the directory and the entries must be the user's own, and
nobody else may be able to write there. Whatever is wrong, jitney works on without the disk, and
`DiskCache.reason` says why (`python -m jitney cache info` prints it).
"""

from __future__ import annotations

import os
import stat
import struct
import time
import warnings
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from ...ir.blake2 import blake2b
from ..config import config

_MAGIC = b"jitney\x00\x02"
_HEADER = struct.Struct("<8s32sQ")  # magic, hash of key and content, length of the content
_SUFFIX = ".jo"
_TEMPORARY = ".tmp"
_ABANDONED = 3600  # seconds after which a file that was never finished belongs to nobody


class UnsafeCacheWarning(UserWarning):
    """The cache directory is not safe to load code from, so nothing is kept on disk."""


class CacheFile(NamedTuple):
    """A file of the cache."""

    used: float  # when it was last read or written
    nbytes: int
    path: str


class DiskCache:
    """Entries in `directory`, at most `limit` bytes of them. Reading and writing never raise.

    `enabled`: entries can be read. `writable`: new ones can be kept. `reason` tells why not.
    """

    def __init__(self, directory: str | None, limit: int = 512 << 20) -> None:
        self.directory = directory
        self.limit = limit
        self.hits = 0
        self.misses = 0
        self._written = 0  # bytes since the last look at the directory's size
        self.enabled = False
        self.reason = "switched off"
        if directory is not None:
            self.enabled, self.reason = _prepare(directory)
        self.writable = self.enabled and not self.reason

    def _path(self, key: str) -> str:
        assert self.directory is not None
        return os.path.join(self.directory, key + _SUFFIX)

    def get(self, key: str) -> bytes | None:
        """The content stored under `key`, or None. An entry that is not as it was is removed."""
        if not self.enabled:
            return None
        path = self._path(key)
        try:
            with open(path, "rb", buffering=0, opener=_without_waiting) as file:
                ours = _is_ours(os.fstat(file.fileno()))
                content = _unpack(key, file.read()) if ours else None
        except IsADirectoryError:
            content = None
        except OSError:
            self.misses += 1
            return None
        if content is None:
            self.discard(key)
            self.misses += 1
            return None
        with suppress(OSError):
            os.utime(path)  # the time of last use, which `trim` goes by
        self.hits += 1
        return content

    def __contains__(self, key: str) -> bool:
        return self.enabled and os.path.isfile(self._path(key))

    def put(self, key: str, content: bytes) -> None:
        """Store. The entry appears at once and whole, or not at all."""
        if not self.writable or len(content) > self.limit:
            return
        assert self.directory is not None
        name = os.path.join(self.directory, f"{os.getpid()}-{os.urandom(6).hex()}{_TEMPORARY}")
        try:
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_pack(key, content))
                os.replace(name, self._path(key))
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
        except IsADirectoryError:
            return  # with something in it, or it would be gone
        except OSError as error:
            self.writable = False
            self.reason = f"cannot write to {self.directory}: {error.strerror or error}"
            return
        if self._written == 0 or self._written > self.limit // 16:
            self.trim()
            self._written = 0
        self._written += len(content)

    def discard(self, key: str) -> None:
        _remove(self._path(key))

    def size(self) -> tuple[int, int]:
        """How many entries there are and their size in bytes."""
        entries = self.entries()
        return len(entries), sum(entry.nbytes for entry in entries)

    def clear(self) -> None:
        """Remove every entry."""
        for entry in self.entries():
            _remove(entry.path)

    def entries(self) -> list[CacheFile]:
        """Our files, those of dead writers included."""
        entries: list[CacheFile] = []
        with suppress(OSError):
            for file in os.scandir(self.directory) if self.directory else ():
                if file.name.endswith((_SUFFIX, _TEMPORARY)):
                    with suppress(OSError):
                        status = file.stat(follow_symlinks=False)
                        entries.append(CacheFile(status.st_mtime, status.st_size, file.path))
        return entries

    def trim(self) -> None:
        """If there is too much, remove what was used longest ago, down to three quarters."""
        entries = sorted(self.entries())
        total = sum(entry.nbytes for entry in entries)
        now, room = time.time(), self.limit
        if total > self.limit:
            room = self.limit * 3 // 4
        for used, nbytes, path in entries:
            if path.endswith(_TEMPORARY):
                leaves = now - used > _ABANDONED  # a younger one is being written
            else:
                leaves = total > room
            if leaves and _remove(path):
                total -= nbytes


def _without_waiting(path: str, flags: int) -> int:
    """Open what may be a pipe that nobody writes to."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _remove(path: str) -> bool:
    """Remove what stands where an entry should, unless it is a directory with something in it."""
    try:
        try:
            os.unlink(path)
        except IsADirectoryError:
            os.rmdir(path)
    except OSError:
        return False
    return True


def _checksum(key: str, content: bytes) -> bytes:
    """Of the content under its name: an entry that was renamed is a damaged one."""
    return blake2b(content, digest_size=32, key=key.encode()[:64]).digest()


def _pack(key: str, content: bytes) -> bytes:
    return _HEADER.pack(_MAGIC, _checksum(key, content), len(content)) + content


def _unpack(key: str, data: bytes) -> bytes | None:
    if len(data) < _HEADER.size:
        return None
    magic, checksum, length = _HEADER.unpack_from(data)
    content = data[_HEADER.size :]
    if magic != _MAGIC or length != len(content) or _checksum(key, content) != checksum:
        return None
    return content


def _is_ours(status: os.stat_result) -> bool:
    """Whether it is a file, and nobody but this user can have written it."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _prepare(directory: str) -> tuple[bool, str]:
    """Make the directory (0700) and look at it: can it be read, and what else is wrong with it."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        status = os.stat(directory)
        if not stat.S_ISDIR(status.st_mode):
            return False, f"{directory} is not a directory"
        problem = _unsafe(directory)
        if problem:
            warnings.warn(
                f"jitney keeps nothing on disk, since the cache holds code that will run: {problem}. "
                "Make the directory yours alone (chmod 700), or choose another with "
                "JITNEY_CACHE_DIR.",
                UnsafeCacheWarning,
                stacklevel=2,
            )
            return False, problem
        if not os.access(directory, os.R_OK | os.X_OK):
            return False, f"{directory} cannot be read"
        if not os.access(directory, os.W_OK):
            return True, f"{directory} is read-only"
    except OSError as error:
        return False, f"cannot use {directory}: {error.strerror or error}"
    return True, ""


def _unsafe(directory: str) -> str:
    """Who else could put files into the directory, or another directory in its place; "" if nobody."""
    if not hasattr(os, "getuid"):
        return ""
    me = os.getuid()
    path = os.path.realpath(directory)
    status = os.stat(path)
    if status.st_uid != me:
        return f"{directory} belongs to another user"
    if status.st_mode & 0o022:
        return f"{directory} can be written to by other users"
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        status = os.stat(path)
        if status.st_uid not in (me, 0):
            return f"{path}, above it, belongs to another user"
        private = status.st_gid == me  # a group of the user's own, where umask is 002
        writers = status.st_mode & (0o002 if private else 0o022)
        if writers and not status.st_mode & stat.S_ISVTX:
            return f"{path}, above it, can be written to by other users"
    return ""


@lru_cache(maxsize=8)
def _open(directory: str, limit: int) -> DiskCache:
    return DiskCache(directory, limit)


_switched_off = DiskCache(None)


def disk_cache() -> DiskCache:
    """The cache that the settings ask for."""
    if not config.cache:
        _switched_off.reason = "JITNEY_CACHE or jitney.config.cache switches it off"
        return _switched_off
    directory = config.cache_dir
    if directory is None:
        _switched_off.reason = "there is no home directory: set JITNEY_CACHE_DIR"
        return _switched_off
    return _open(directory, config.cache_size)
