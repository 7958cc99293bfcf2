"""What is installed here, as one hash: part of every key of the cache on disk.

Code made by another jitney, NumPy, llvmlite or Python is no use to this one. Nothing is imported to
find out: a jitney that pip put in place counts by the hashes of its files that pip wrote down, a
checkout by the names, sizes and times of change of its sources, llvmlite by its version file and the
size of its library, NumPy by its version and its extension module, which brings the BLAS.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
import numpy._core

from ...ir.blake2 import blake2b

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_ROOMS = ("ir", "codegen", "runtime", "tracer")
_LIBRARIES = ("nn", "optim", "data", "train", "solve", "summary")  # which compiled functions call


def digest(*parts: bytes | str) -> str:
    """A hash of the parts, each with its length, as 40 hexadecimal digits."""
    state = blake2b(digest_size=20)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


@lru_cache(maxsize=1)
def installation() -> str:
    """The hash. It costs about a millisecond, once."""
    return digest(
        sys.version,
        sys.implementation.cache_tag or "",
        sys.platform,
        _recorded() or "\n".join(_sources()),
        _llvmlite(),
        np.__version__,
        _file(getattr(numpy._core._multiarray_umath, "__file__", "") or ""),
    )


def _recorded() -> str:
    """The list of our files with their hashes that pip wrote when it put them here; "" in a checkout.

    To look at a thousand files would take a seventh of a cached first call.
    """
    folder, package = os.path.split(ROOT)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ""
    for name in names:
        if name.startswith(f"{package}-") and name.endswith(".dist-info"):
            with suppress(OSError), open(os.path.join(folder, name, "RECORD"), "rb") as file:
                return digest(file.read())
    return ""


def _sources() -> list[str]:
    """Every module of the compiler and of what stands on it: name, size, time of change."""
    files: list[str] = []
    folders = [ROOT, *(os.path.join(ROOT, room) for room in (*_ROOMS, *_LIBRARIES))]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:  # inside of an archive: its version has to do
            from ...ir.version import __version__

            return [__version__]
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                path = entry.path[len(ROOT) :]
                files.append(f"{path} {status.st_size} {status.st_mtime_ns}")
            elif folder != ROOT and entry.name != "__pycache__" and entry.is_dir():
                folders.append(entry.path)
    return sorted(files)


def _llvmlite() -> str:
    try:
        spec = find_spec("llvmlite")
    except (ImportError, ValueError):  # somebody keeps it away
        spec = None
    if spec is None or not spec.origin:
        return ""
    folder = os.path.dirname(spec.origin)
    binding = os.path.join(folder, "binding")
    try:
        with open(os.path.join(folder, "_version.py"), encoding="utf-8") as file:
            version = file.read()
        libraries = [e for e in os.scandir(binding) if not e.name.endswith((".py", "__pycache__"))]
    except OSError:
        return folder
    return version + "".join(sorted(f"{e.name} {e.stat().st_size}\n" for e in libraries))


def _file(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return path
    return f"{status.st_size} {status.st_mtime_ns}"
