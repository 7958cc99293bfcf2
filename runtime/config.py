"""Settings: from the environment when the process begins, from Python at any time.

    jt.config.cache_dir = "/scratch/me/jitney"
    with jt.config(threads=1):
        ...

A setting that Python has not touched follows its environment variable.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..ir.surface import ensure
from .platforms import tried, warn_if_untried

_OFF = ("0", "off", "no", "false")
_ON = ("1", "on", "yes", "true")
_MIB = 1 << 20


class Served(NamedTuple):
    """A setting that lives elsewhere, or that something has to be done for when it changes."""

    read: Callable[[], Any] | None
    write: Callable[[Any], None]


_served: dict[str, Served] = {}


def serve(name: str, write: Callable[[Any], None], read: Callable[[], Any] | None = None) -> None:
    """Called by the module that a setting is for, which lies above this one."""
    _served[name] = Served(read, write)


class Config:
    """jitney's settings. Unknown names and unfit values are refused.

    cache              keep compiled code on disk for the next process        JITNEY_CACHE
    cache_dir          where; None: no place was found                        JITNEY_CACHE_DIR
    cache_size         bytes on disk at most; the least used leave            JITNEY_CACHE_MB
    memory_cache_size  bytes of compiled functions in memory at most          JITNEY_MEMORY_CACHE_MB
    threads            threads of large kernels, the caller included          JITNEY_NUM_THREADS
    native_calls       functions jitted from now on are called natively       JITNEY_NATIVE_CALLS
    cpu                "native": code is for all that this CPU has; "avx2",
                       "sse": for less, as other CPUs of its kind have        JITNEY_CPU
    sanitize           functions compiled from now on check every access of
                       memory, and raise where one is wrong; very slow       JITNEY_SANITIZE
    cuda               "on": GPUs are used; "emulate": one is emulated on
                       the CPU, for tests; "off": there are none              JITNEY_CUDA
    autotune           kernels for GPUs are chosen by measuring, unless
                       `jit(autotune=...)` says otherwise; off by default     JITNEY_AUTOTUNE
    cublas             "auto": NVIDIA's cuBLASLt multiplies matrices where
                       it is installed and autotuning measured it faster;
                       "on": wherever it can; "off": never                    JITNEY_CUBLAS
    cuda_warpgroups    products of 16-bit floats use sm_90a's warpgroups,
                       where there are; asked when a device is first used     JITNEY_CUDA_WARPGROUPS
    verify             graphs and steps are checked after each pass of the
                       compiler, for tests; off by default                    JITNEY_VERIFY
    full_tracebacks    of errors show jitney's own frames, too                JITNEY_FULL_TRACEBACKS
    """

    __slots__ = ("_set",)
    _set: dict[str, Any]

    def __init__(self) -> None:
        object.__setattr__(self, "_set", {})

    @property
    def cache(self) -> bool:
        chosen = self._set.get("cache")
        if chosen is None:
            return os.environ.get("JITNEY_CACHE", "").strip().lower() not in _OFF
        return bool(chosen)

    @property
    def cache_dir(self) -> str | None:
        chosen = self._set.get("cache_dir")
        return chosen if chosen is not None else default_cache_dir()

    @property
    def cache_size(self) -> int:
        chosen: int | None = self._set.get("cache_size")
        if chosen is not None:
            return chosen
        return _mebibytes("JITNEY_CACHE_MB", os.environ.get("JITNEY_CACHE_MB", ""), 512)

    @property
    def memory_cache_size(self) -> int:
        chosen: int | None = self._set.get("memory_cache_size")
        if chosen is not None:
            return chosen
        asked = os.environ.get("JITNEY_MEMORY_CACHE_MB", "")
        return _mebibytes("JITNEY_MEMORY_CACHE_MB", asked, 256)

    @property
    def threads(self) -> int:
        ensure("threads")
        read = _served["threads"].read
        assert read is not None
        threads: int = read()
        return threads

    @property
    def native_calls(self) -> bool:
        chosen = self._set.get("native_calls")
        if chosen is not None:
            return bool(chosen)
        asked = os.environ.get("JITNEY_NATIVE_CALLS", "").strip().lower()
        if not asked:
            warn_if_untried()
            return tried()
        return asked not in _OFF

    @property
    def cpu(self) -> str:
        chosen = self._set.get("cpu")
        if chosen is None:
            return _cpu("JITNEY_CPU", os.environ.get("JITNEY_CPU", "").strip().lower() or "native")
        return str(chosen)

    @property
    def sanitize(self) -> bool:
        chosen = self._set.get("sanitize")
        if chosen is None:
            return os.environ.get("JITNEY_SANITIZE", "").strip().lower() in _ON
        return bool(chosen)

    @property
    def cuda(self) -> str:
        chosen = self._set.get("cuda")
        if chosen is None:
            return _cuda("JITNEY_CUDA", os.environ.get("JITNEY_CUDA", "").strip().lower() or "on")
        return str(chosen)

    @property
    def cuda_warpgroups(self) -> bool:
        chosen = self._set.get("cuda_warpgroups")
        if chosen is None:
            return os.environ.get("JITNEY_CUDA_WARPGROUPS", "").strip().lower() not in _OFF
        return bool(chosen)

    @property
    def full_tracebacks(self) -> bool:
        chosen = self._set.get("full_tracebacks")
        if chosen is None:
            return os.environ.get("JITNEY_FULL_TRACEBACKS", "").strip().lower() in _ON
        return bool(chosen)

    @property
    def autotune(self) -> bool:
        chosen = self._set.get("autotune")
        if chosen is None:
            return os.environ.get("JITNEY_AUTOTUNE", "").strip().lower() in _ON
        return bool(chosen)

    @property
    def verify(self) -> bool:
        chosen = self._set.get("verify")
        if chosen is None:
            return os.environ.get("JITNEY_VERIFY", "").strip().lower() in _ON
        return bool(chosen)

    @property
    def cublas(self) -> str:
        chosen = self._set.get("cublas")
        if chosen is None:
            asked = os.environ.get("JITNEY_CUBLAS", "").strip().lower()
            return _cublas("JITNEY_CUBLAS", asked or "auto")
        return str(chosen)

    def __setattr__(self, name: str, value: Any) -> None:
        check = _CHECKS.get(name)
        if check is None:
            names = ", ".join(_CHECKS)
            raise AttributeError(f"jitney has no setting {name!r}; there are {names}")
        if name == "threads":
            ensure("threads")
            _served["threads"].write(value)
            return
        self._set[name] = None if value is None else check(name, value)
        if name in _served:
            _served[name].write(value)

    def __call__(self, **settings: Any) -> Any:
        """A context manager: other settings inside of the block, for all threads."""
        for name in settings:
            if name not in _CHECKS:
                setattr(self, name, None)  # says what is wrong
        return self._changed(settings)

    @contextmanager
    def _changed(self, settings: dict[str, Any]) -> Iterator[Config]:
        before = {n: self.threads if n == "threads" else self._set.get(n) for n in settings}
        done = []
        try:
            for name, value in settings.items():
                setattr(self, name, value)
                done.append(name)
            yield self
        finally:
            for name in reversed(done):
                setattr(self, name, before[name])

    def __repr__(self) -> str:
        return "\n".join(f"jitney.config.{name} = {getattr(self, name)!r}" for name in _CHECKS)


def _mebibytes(variable: str, asked: str, default: int) -> int:
    """Bytes, of what an environment variable says in MiB."""
    asked = asked.strip()
    if asked and not asked.isdigit():
        raise ValueError(f"{variable} is a number of MiB, not {asked!r}")
    return int(asked or default) * _MIB


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")
    return value


def _cuda(name: str, value: Any) -> str:
    if value not in ("on", "emulate", "off"):
        raise ValueError(f"{name} is 'on', 'emulate' or 'off', not {value!r}")
    return str(value)


def _cpu(name: str, value: Any) -> str:
    if value not in ("native", "avx2", "sse"):
        raise ValueError(f"{name} is 'native', 'avx2' or 'sse', not {value!r}")
    return str(value)


def _cublas(name: str, value: Any) -> str:
    if value not in ("auto", "on", "off"):
        raise ValueError(f"{name} is 'auto', 'on' or 'off', not {value!r}")
    return str(value)


def _path(name: str, value: Any) -> str:
    return os.path.abspath(os.path.expanduser(os.fspath(value)))


def _size(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a number of bytes, not {value!r}")
    if value < 0:
        raise ValueError(f"{name} is a number of bytes, not {value}")
    return value


_CHECKS: dict[str, Any] = {
    "cache": _flag,
    "cache_dir": _path,
    "cache_size": _size,
    "memory_cache_size": _size,
    "native_calls": _flag,
    "cpu": _cpu,
    "sanitize": _flag,
    "cuda": _cuda,
    "autotune": _flag,
    "cublas": _cublas,
    "cuda_warpgroups": _flag,
    "verify": _flag,
    "full_tracebacks": _flag,
    "threads": None.__class__,  # the pool checks it
}


def default_cache_dir() -> str | None:
    """The directory that the environment or the platform's convention names; None without a home."""
    chosen = os.environ.get("JITNEY_CACHE_DIR")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return os.path.join(base, "jitney", "cache") if base else None
    base = os.environ.get("XDG_CACHE_HOME")
    if sys.platform != "darwin" and base and os.path.isabs(base):
        return os.path.join(base, "jitney")
    if not os.path.isabs(home):
        return None
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", "jitney")
    return os.path.join(home, ".cache", "jitney")


config = Config()
"""The settings of this process."""
