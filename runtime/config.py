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
from typing import Any, Generic, NamedTuple, TypeVar

from ..ir.surface import ensure
from .platforms import tried

_OFF = ("0", "off", "no", "false")
_ON = ("1", "on", "yes", "true")
T = TypeVar("T")


class Served(NamedTuple):
    """A setting that lives elsewhere, or that something has to be done for when it changes."""

    read: Callable[[], Any] | None
    write: Callable[[Any], None]


_served: dict[str, Served] = {}


def serve(name: str, write: Callable[[Any], None], read: Callable[[], Any] | None = None) -> None:
    """Called by the module that a setting is for, which lies above this one."""
    _served[name] = Served(read, write)


class Setting(Generic[T]):
    """What Python chose; else what the environment says, whose text `read` gets in lower case."""

    def __init__(
        self,
        variable: str,
        read: Callable[[str, str], T],
        check: Callable[[str, Any], T],
    ) -> None:
        self.variable, self.read, self.check = variable, read, check

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, config: Config, owner: type) -> T:
        chosen: T | None = config._set.get(self.name)
        if chosen is not None:
            return chosen
        return self.read(self.variable, os.environ.get(self.variable, "").strip().lower())

    def __set__(self, config: Config, value: T | None) -> None:
        config._set[self.name] = None if value is None else self.check(self.name, value)
        if self.name in _served:
            _served[self.name].write(value)


class _Threads:
    """The pool's own setting, which it keeps and checks."""

    def __get__(self, config: Config, owner: type) -> int:
        ensure("threads")
        read = _served["threads"].read
        assert read is not None
        threads: int = read()
        return threads

    def __set__(self, config: Config, value: int) -> None:
        ensure("threads")
        _served["threads"].write(value)


def flag(variable: str, default: bool | Callable[[], bool]) -> Setting[bool]:
    """True or False; the environment says 0, off, no, false or 1, on, yes, true."""

    def read(_: str, asked: str) -> bool:
        if not asked and not isinstance(default, bool):
            return default()
        return asked not in _OFF if default else asked in _ON

    def check(name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise TypeError(f"{name} is True or False, not {value!r}")
        return value

    return Setting(variable, read, check)


def choice(variable: str, default: str, *others: str) -> Setting[str]:
    """One of some words."""

    def check(name: str, value: Any) -> str:
        if value not in (default, *others):
            choices = ", ".join(map(repr, (default, *others[:-1])))
            raise ValueError(f"{name} is {choices} or {others[-1]!r}, not {value!r}")
        return str(value)

    return Setting(variable, lambda name, asked: check(name, asked or default), check)


def mebibytes(variable: str, default: int) -> Setting[int]:
    """Bytes; the environment says MiB."""
    return _number(variable, default, "number of MiB", "number of bytes", 20)


def count(variable: str, default: int) -> Setting[int]:
    """A whole number of 0 or more."""
    return _number(variable, default, "number", "number", 0)


def _number(variable: str, default: int, there: str, here: str, bits: int) -> Setting[int]:
    """What is counted in units of 2**bits in the environment, and in ones in Python."""

    def read(name: str, asked: str) -> int:
        if asked and not asked.isdigit():
            raise ValueError(f"{name} is a {there}, not {asked!r}")
        return int(asked or default) << bits

    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is a {here}, not {value!r}")
        if value < 0:
            raise ValueError(f"{name} is a {here}, not {value}")
        return value

    return Setting(variable, read, check)


CPUS = ("native", "host", "x86-64-v4", "x86-64-v3", "x86-64-v2", "avx2", "sse")
"""What code can be for; see `native.host`."""
CHECKS = ("bounds", "inf", "nan", "overflow", "ranks", "trace")
"""What compiled functions can be watched for; see `jit`."""
FAULTS = tuple(name for name in CHECKS if name != "ranks")
"""Those that `check=True` means: what nobody wants."""


def checks(name: str, value: Any) -> tuple[str, ...]:
    """Names of checks, one or several, as a sorted tuple; True: `FAULTS`; False or None: none."""
    if value is None or isinstance(value, bool):
        return FAULTS if value else ()
    wanted = [value] if isinstance(value, str) else list(value)
    for one in wanted:
        if one not in CHECKS:
            raise ValueError(f"{name} has {one!r}; choose among {', '.join(map(repr, CHECKS))}")
    return tuple(sorted(set(wanted)))


def _words(name: str, value: Any) -> tuple[str, ...]:
    words = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(word, str) for word in words):
        raise TypeError(f"{name} is a name or several, not {value!r}")
    return tuple(word.strip() for word in words if word.strip())


def _check() -> Setting[tuple[str, ...]]:
    def read(name: str, asked: str) -> tuple[str, ...]:
        if asked in ("", *_OFF, *_ON):
            return FAULTS if asked in _ON else ()
        return checks(name, [word.strip() for word in asked.split(",")])

    return Setting("JITNEY_CHECK", read, checks)


def _path(name: str, value: Any) -> str | None:
    return os.path.abspath(os.path.expanduser(os.fspath(value)))


class Config:
    """jitney's settings. Unknown names and unfit values are refused.

    cache              keep compiled code on disk for the next process        JITNEY_CACHE
    cache_dir          where; None: no place was found                        JITNEY_CACHE_DIR
    cache_size         bytes on disk at most; the least used leave            JITNEY_CACHE_MB
    memory_cache_size  bytes of compiled functions in memory at most          JITNEY_MEMORY_CACHE_MB
    threads            threads of large kernels, the caller included          JITNEY_NUM_THREADS
    native_calls       functions jitted from now on are called natively       JITNEY_NATIVE_CALLS
    cpu                functions compiled from now on are for all that this
                       CPU has ("native", "host"), or for no more than others
                       of its kind have: "x86-64-v2", "x86-64-v3",
                       "x86-64-v4"; "avx2", "sse"                             JITNEY_CPU
    quick              functions compiled from now on are compiled in less
                       time, and run slower: for tests; off by default        JITNEY_QUICK
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
    full_tracebacks    of errors show jitney's own frames, too; on under
                       `python -X dev`                                       JITNEY_FULL_TRACEBACKS
    check              what compiled functions are watched for, beside what
                       `jit(check=...)` says: some of "nan", "inf", "bounds",
                       "overflow", "ranks", "trace"                          JITNEY_CHECK
    rank_promotion     "raise": arrays of different ranks, but for numbers,
                       are not broadcast together in compiled functions: as
                       the check "ranks"; "allow"                            JITNEY_RANK_PROMOTION
    disable_jit        jitted functions run as they were written             JITNEY_DISABLE_JIT
    allow              names of scopes (`jt.name_scope`) in which what `check`
                       looks for may be                                      JITNEY_ALLOW
    log_compiles       each compilation is logged (by `logging`, as
                       "jitney") with its reason; off by default              JITNEY_LOG_COMPILES
    compile_warning    so many compilations of one function are told by a
                       warning, with the latest reason; 50; 0: never          JITNEY_COMPILE_WARNING
    perf               names of compiled kernels for Linux's perf, in
                       /tmp/perf-PID.map; off by default                      JITNEY_PERF
    """

    __slots__ = ("_set",)
    _set: dict[str, Any]

    cache = flag("JITNEY_CACHE", True)
    cache_dir = Setting("JITNEY_CACHE_DIR", lambda *_: default_cache_dir(), _path)
    cache_size = mebibytes("JITNEY_CACHE_MB", 512)
    memory_cache_size = mebibytes("JITNEY_MEMORY_CACHE_MB", 256)
    native_calls = flag("JITNEY_NATIVE_CALLS", tried)
    cpu = choice("JITNEY_CPU", *CPUS)
    quick = flag("JITNEY_QUICK", False)
    sanitize = flag("JITNEY_SANITIZE", False)
    cuda = choice("JITNEY_CUDA", "on", "emulate", "off")
    autotune = flag("JITNEY_AUTOTUNE", False)
    cublas = choice("JITNEY_CUBLAS", "auto", "on", "off")
    cuda_warpgroups = flag("JITNEY_CUDA_WARPGROUPS", True)
    verify = flag("JITNEY_VERIFY", False)
    full_tracebacks = flag("JITNEY_FULL_TRACEBACKS", lambda: sys.flags.dev_mode)
    disable_jit = flag("JITNEY_DISABLE_JIT", False)
    check = _check()
    rank_promotion = choice("JITNEY_RANK_PROMOTION", "allow", "raise")
    allow = Setting("JITNEY_ALLOW", lambda _, asked: _words("allow", asked.split(",")), _words)
    log_compiles = flag("JITNEY_LOG_COMPILES", False)
    compile_warning = count("JITNEY_COMPILE_WARNING", 50)
    perf = flag("JITNEY_PERF", False)
    threads = _Threads()

    def __init__(self) -> None:
        object.__setattr__(self, "_set", {})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _NAMES:
            raise AttributeError(f"jitney has no setting {name!r}; there are {', '.join(_NAMES)}")
        object.__setattr__(self, name, value)

    def __reduce__(self) -> str:
        """In another process it is that one's."""
        return "config"

    def __call__(self, **settings: Any) -> Any:
        """A context manager: other settings inside of the block, for all threads."""
        for name in settings:
            if name not in _NAMES:
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
        return "\n".join(f"jitney.config.{name} = {getattr(self, name)!r}" for name in _NAMES)


_NAMES = tuple(n for n, it in vars(Config).items() if isinstance(it, (Setting, _Threads)))


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
