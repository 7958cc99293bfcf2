"""Machine code that is the same for every program: the pool, the memory handler, the call path.

    library = load_support("pool", text, exports, imports)

Such code depends on what is installed and on the CPU alone, so in the cache on disk it stands under
its name, and its LLVM text is not even written when an earlier process left the code there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from .disk import disk_cache
from .engine import NativeError, host_engine, load_code
from .host import host_target
from .image import Image, Library
from .installation import digest, installation
from .records import dump_code, load_code_record


def load_support(
    name: str,
    text: Callable[[], str],
    exports: Iterable[str],
    imports: Mapping[str, int] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Library:
    """Load the code that `name` stands for; `text` writes its LLVM when there is none yet.

    `meanwhile` is run while LLVM compiles that, if it must. Then the caller must not hold
    `engine.lock`, which another thread takes.
    """
    exports = list(exports)
    cache = disk_cache()
    key = digest("support", installation(), host_target().key(), name)
    code = load_code_record(cache.get(key))
    if code is not None:
        try:
            return load_code(code, exports, imports)
        except NativeError:  # no code after all: build it again
            cache.discard(key)
    code = _assemble(text(), meanwhile)
    library = load_code(code, exports, imports)
    cache.put(key, dump_code(code))
    return library


def load_code_generator() -> None:
    """Import what turns graphs into LLVM text, and make its tables."""
    from ..codegen import compile as _  # noqa: F401
    from ..ir import passes

    passes.prepare()


def _assemble(text: str, meanwhile: Callable[[], object] | None) -> Image | bytes:
    """Machine code for a module. LLVM runs without the GIL, so `meanwhile` costs next to nothing."""
    engine = host_engine()
    if meanwhile is None:
        return engine.assemble(text)
    made: list[Image | bytes] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            made.append(engine.assemble(text))
        except BaseException as error:
            failed.append(error)

    # Not a daemon: the process must not end while LLVM is at work.
    worker = threading.Thread(target=work, name="jitney-support", daemon=False)
    try:
        worker.start()
    except RuntimeError:  # no more threads here, or Python is about to end
        return engine.assemble(text)
    try:
        meanwhile()
    finally:
        worker.join()
    if failed:
        raise failed[0]
    return made[0]
