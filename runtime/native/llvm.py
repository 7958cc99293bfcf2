"""llvmlite's binding, and the lock around every use of it."""

from __future__ import annotations

import os
import sys
import threading
from functools import lru_cache
from typing import Any

from ...ir.forks import renewed
from .layout import refuse_without_gil

# Around every use of llvmlite, and whatever else loads native code. fork() waits for it: what LLVM has
# half done in another thread, nobody would finish in the child.
lock = renewed(threading.RLock())
_entered: list[Any] = []  # llvmlite's own lock, where a fork holds it


def _before_fork() -> None:
    lock.acquire()
    ffi = sys.modules.get("llvmlite.binding.ffi")
    guard = getattr(getattr(ffi, "lib", None), "_lock", None)  # others than us may be in LLVM
    if guard is not None:
        guard.__enter__()
        _entered.append(guard)


def _after_fork() -> None:
    """Undo that, where it was done: this module may have been imported while a fork was under way."""
    if lock._is_owned():  # type: ignore[attr-defined]
        if _entered:
            _entered.pop().__exit__()
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


@lru_cache(maxsize=1)
def llvm() -> Any:
    """llvmlite's binding, imported and with the native target set up."""
    refuse_without_gil()
    with lock:
        # The import too: it loads LLVM, which a child could not do again if it was forked meanwhile.
        import llvmlite.binding as binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
    return binding
