"""Which call programs a jitted function has: when one is written, and which its native call tries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.current import ACTIVE, HELD
from .entry import NEVER, Entry

if TYPE_CHECKING:
    from .function import JitFunction

_PROGRAMS = 64  # per function, over all signatures


def learn(function: JitFunction, entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Let calls like this one, which is for `entry`, run without Python from now on.

    A call that comes here though there is a program for its like differs in what the program
    compares by identity, or in the layout of an array that Python copies, or its program had to
    make room: the attempts are limited. Objects and functions that are made anew come and stay for many
    calls: then there is one attempt more, and the oldest program goes.
    """
    if not function._native or not entry.wants_program or entry.check() is None:
        return
    from .native_call import NotNative, write_program

    with function._lock:
        entry.begin_attempt()
        try:
            program = write_program(entry, args, kwargs, function._leaves, function._signature)
        except NotNative:
            entry.attempts = NEVER
            return
        if any(program.key == other.key for other in function._programs):
            return
        entry.add_program(program)
        function._programs = [program, *function._programs][:_PROGRAMS]
        install_programs(function)


def install_programs(function: JitFunction) -> None:
    """The native call tries the programs of the entries that are left, the latest first."""
    if not function._native:
        return
    from ...runtime.call.callable import Gate, install

    buckets = list(function._buckets.values())  # another thread may add one meanwhile
    entries = [e for bucket in buckets for e in bucket.entries]
    wanted = {id(program) for entry in entries for program in entry.programs}
    function._programs = [p for p in function._programs if id(p) in wanted]
    install(function, [] if function._asked else function._programs, Gate(HELD, ACTIVE))
