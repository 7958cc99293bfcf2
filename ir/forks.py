"""fork(): the child has the thread that forked and no other, and may not wait for what others held.

    lock = renewed(threading.RLock())      free in the child, unless the thread that forked holds it
    in_child(function)                     called there

What other threads were doing is thrown away there, since nobody will finish it: modules that they were
importing are imported anew. Nothing here waits before a fork; `runtime.native.engine` does, for LLVM.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from importlib import _bootstrap
from typing import Any, TypeVar

L = TypeVar("L")
F = TypeVar("F", bound=Callable[[], object])

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def renewed(lock: L) -> L:
    """`lock`, a Lock or RLock of `threading`, which is free in a forked child.

    An RLock stays with the thread that forks, which leaves its `with` block in the child too.
    """
    _locks.add(lock)
    return lock


def in_child(function: F) -> F:
    """Call `function` in each child, before `os.fork` returns there. Works as a decorator."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


@in_child
def _renew_locks() -> None:
    for lock in list(_locks):
        owned = getattr(lock, "_is_owned", None)
        if owned is None or not owned():
            lock._at_fork_reinit()


@in_child
def _forget_imports() -> None:
    """Forget the modules that other threads were importing, and Python's locks on them.

    Python does the first where an import fails, and neither after a fork: whoever imports such a
    module in the child would wait for ever. A lock that nobody seems to own may be half taken.
    """
    me = threading.get_ident()
    locks: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})
    for name, reference in list(locks.items()):
        if getattr(reference(), "owner", None) == me:
            continue
        del locks[name]
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):
            del sys.modules[name]
