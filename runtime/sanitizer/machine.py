"""The sanitizer's functions as machine code, and modules made to call them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

from ...codegen.llvm.modules import Function, module_ir
from ...codegen.module import NativeModule
from ...codegen.target import Target
from ..native.engine import engine_for
from ..native.support import load_support
from . import accesses, records, work
from .records import KEY
from .rewrite import Checked, checked

_FUNCTIONS: tuple[Callable[[], Function], ...] = (
    *(records.state, records.report, records.failed, records.kernel, records.array, records.part),
    *(records.mark, records.release, records.allocate, records.free),
    *(
        accesses.racing,
        accesses.settle,
        accesses.judge,
        lambda: accesses.touch(1),
        lambda: accesses.touch(4),
    ),
    *(accesses.access, accesses.checked, accesses.masked, accesses.gather),
    *(work.lend, work.lend_items, work.parallel, work.fullness, work.leave),
)

_key = ctypes.c_uint32()  # of what pthread keeps for each thread


@lru_cache(maxsize=1)
def sanitizer_addresses() -> dict[str, int]:
    """Where the functions are, by name."""
    process = ctypes.CDLL(None)
    free = ctypes.cast(process.free, ctypes.c_void_p)
    if process.pthread_key_create(ctypes.byref(_key), free):
        raise RuntimeError("no thread-local memory for the sanitizer")
    functions = [make() for make in _FUNCTIONS]
    names = [f.name for f in functions]
    imports = {KEY: ctypes.addressof(_key)}
    library = load_support("sanitizer", lambda: module_ir(functions, (KEY,)), names, imports)
    return {name: library.keep().address(name) for name in names}


def check_module(module: NativeModule, target: Target) -> Checked:
    """The code of a module with its checks."""
    return checked(engine_for(target).printed(module.text), module)
