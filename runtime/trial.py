"""On a platform that nobody has tried, what works is found out before the user's code is compiled.

Compiled code that is wrong for a system ends the process, or gives wrong numbers. So a child process
compiles and calls a dozen functions (`jitney.demo.trial`) and compares what they give with NumPy: called
natively; if that fails, called through Python; if that fails, too, `jit` leaves functions as they are,
and derivatives and batches go op by op through NumPy. What came out is kept for this installation.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from contextlib import suppress
from functools import lru_cache

from .cache.disk import disk_cache
from .cache.installation import digest, installation
from .config import config
from .platforms import UntriedPlatformWarning, tried

CHILD = ["-m", "jitney.demo.trial"]
SECONDS = 300  # for the child; it takes a few
_SETTINGS = {"native": "1", "through Python": "0"}  # of JITNEY_NATIVE_CALLS
_INSTEAD = {
    "through Python": "calls of compiled functions go through Python, some microseconds each",
    "not at all": "jitted functions run as they were written",
}


@lru_cache(maxsize=1)
def settle() -> None:
    """Choose how functions are called in this process, unless the platform was tried or the user chose.

    Warns (UntriedPlatformWarning), with the reason, where not all works.
    """
    if tried() or config.native_calls or os.environ.get("JITNEY_NATIVE_CALLS"):
        return
    way, reason = _kept() or _found_out()
    if way == "native":
        config.native_calls = True
        return
    if way == "not at all":
        config.disable_jit = True
    warnings.warn(
        f"jitney was never tried on {sys.platform} with such a processor, and here {_INSTEAD[way]}: "
        f"{reason}. `python -m jitney info` has what to report; JITNEY_NATIVE_CALLS=1 or 0 chooses "
        "without a trial.",
        UntriedPlatformWarning,
        stacklevel=2,
    )


def outcome() -> str:
    """What a trial says now, for people."""
    failure = _failure("native")
    if not failure:
        return "a dozen functions, compiled in a child process: right"
    return f"{failure}; called through Python: {_failure('through Python') or 'right'}"


def _found_out() -> tuple[str, str]:
    """The best way that works, and why no better one does."""
    reason = ""
    for way in _SETTINGS:
        failure = _failure(way)
        if not failure:
            break
        reason = failure
    else:
        way = "not at all"
    with suppress(Exception):  # the cache was not tried here either
        disk_cache().put(_key(), f"{way}\n{reason}".encode())
    return way, reason


def _kept() -> tuple[str, str] | None:
    """What an earlier process found out."""
    with suppress(Exception):
        content = disk_cache().get(_key())
        if content is not None:
            way, _, reason = content.decode().partition("\n")
            return (way, reason) if way in (*_SETTINGS, "not at all") else None
    return None


def _key() -> str:
    return digest("trial", installation())


def _failure(way: str) -> str:
    """What goes wrong in a child process that calls functions in a way; "" if nothing does."""
    settings = {
        "JITNEY_NATIVE_CALLS": _SETTINGS[way],
        "JITNEY_DISABLE_JIT": "0",
        "JITNEY_CACHE": "0",  # what ends a process must not come from there the next time
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    try:
        child = subprocess.run(
            [sys.executable, *CHILD],
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"a dozen small functions were not done within {SECONDS} s"
    except (OSError, ValueError) as error:
        return f"no child process can be started to see what works ({error})"
    if child.returncode == 0 and child.stdout.strip() == "right":
        return ""
    last = (child.stdout.strip().splitlines() + child.stderr.strip().splitlines())[-1:]
    ended = f"signal {-child.returncode}" if child.returncode < 0 else f"status {child.returncode}"
    return f"called {way}, a trial ended with {ended}" + "".join(f" ({line})" for line in last)
