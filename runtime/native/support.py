"""Machine code that is the same for every program: the pool, the memory handler, the call path.

    library = load_support("pool", text, exports, imports)

Such code depends on what is installed and on the CPU alone, so in the cache on disk it stands under
its name, and its LLVM text is not even written when an earlier process left the code there.

The first process of all has somebody waiting for it, and LLVM needs more time for the call path than
for most functions. So it makes do with code that LLVM did not optimise, a tenth slower in a call of
0.15 us, and makes the good code for the processes after it when it ends.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from ..cache.disk import DiskCache, disk_cache
from ..cache.installation import digest, installation
from ..config import config
from .engine import NativeError, engine_for, load_code
from .host import held_to, known_host, process_target
from .image import LoadedImage
from .records import Code, dump_code, load_code_record

_provided: dict[str, Code] = {}


def provide(name: str, code: Code) -> None:
    """Code that `name` stands for, for processes that find none on disk: LLVM may not be there."""
    _provided.setdefault(name, code)


def at_hand(name: str) -> bool:
    """Whether code is on disk, or LLVM, which makes it, is in this process already."""
    if "llvmlite.binding" in sys.modules:
        return True
    host = known_host()
    if host is None:
        return False
    key = digest("support", installation(), held_to(config.cpu, host).key(), name)
    return key in disk_cache()


def load_support(
    name: str,
    text: Callable[[], str],
    exports: Iterable[str],
    imports: Mapping[str, int] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> LoadedImage:
    """Load the code that `name` stands for; `text` writes its LLVM when there is none yet.

    `meanwhile` is run while LLVM compiles that, if it must. Then the caller must not hold
    `engine.lock`, which another thread takes.
    """
    exports = list(exports)
    cache = disk_cache()
    try:
        key = digest("support", installation(), process_target().key(), name)
    except ImportError:  # without llvmlite
        if name not in _provided:
            raise
        return load_code(_provided[name], exports, imports)
    draft = digest("draft", key)
    for name_on_disk in (key, draft):
        code = load_code_record(cache.get(name_on_disk))
        if code is not None:
            try:
                library = load_code(code, exports, imports)
            except NativeError:  # no code after all: build it again
                cache.discard(name_on_disk)
                continue
            if name_on_disk == draft:  # the process that left it was killed
                atexit.register(_finish, cache, key, draft, text)
            return library
    if name in _provided:
        with suppress(NativeError):  # of another making: build it here
            return load_code(_provided[name], exports, imports)
    llvm = text()  # kept for the end: to write it anew takes a sixth of the time there
    code = _draft(llvm, meanwhile)
    library = load_code(code, exports, imports)
    cache.put(draft, dump_code(code))
    atexit.register(_finish, cache, key, draft, lambda: llvm)
    return library


def load_code_generator() -> None:
    """Import what turns graphs into LLVM text, and make its tables."""
    from ...codegen.program import compile as _  # noqa: F401
    from ...ir import passes

    passes.prepare()


def _draft(llvm: str, meanwhile: Callable[[], object] | None) -> Code:
    """Machine code in haste. LLVM runs without the GIL, so `meanwhile` costs next to nothing."""
    engine = engine_for(process_target())
    if meanwhile is None:
        return engine.assemble(llvm, quick=True)
    made: list[Code] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            made.append(engine.assemble(llvm, quick=True))
        except BaseException as error:
            failed.append(error)

    # Not a daemon: the process must not end while LLVM is at work.
    worker = threading.Thread(target=work, name="jitney-support", daemon=False)
    try:
        worker.start()
    except RuntimeError:  # no more threads here, or Python is about to end
        return engine.assemble(llvm, quick=True)
    try:
        meanwhile()
    finally:
        worker.join()
    if failed:
        raise failed[0]
    return made[0]


def _finish(cache: DiskCache, key: str, draft: str, text: Callable[[], str]) -> None:
    """Leave optimised code for the next process, if LLVM is there and no other process did."""
    if cache.writable and key not in cache and "llvmlite" in sys.modules:
        with suppress(NativeError):  # the draft serves as well
            code: Code = engine_for(process_target()).assemble(text())
            cache.put(key, dump_code(code))
            cache.discard(draft)
