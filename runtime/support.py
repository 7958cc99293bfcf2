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
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from .disk import DiskCache, disk_cache
from .engine import NativeError, host_engine, load_code
from .host import host_target
from .image import Library
from .installation import digest, installation
from .records import Code, dump_code, load_code_record


def load_support(
    name: str,
    text: Callable[[], str],
    exports: Iterable[str],
    imports: Mapping[str, int] | None = None,
) -> Library:
    """Load the code that `name` stands for; `text` writes its LLVM when there is none yet."""
    exports = list(exports)
    cache = disk_cache()
    key = digest("support", installation(), host_target().key(), name)
    draft = digest("draft", key)
    for known in (key, draft):
        code = load_code_record(cache.get(known))
        if code is not None:
            try:
                library = load_code(code, exports, imports)
            except NativeError:  # no code after all: build it again
                cache.discard(known)
                continue
            if known == draft:  # the process that left it was killed
                atexit.register(_finish, cache, key, draft, text)
            return library
    code = host_engine().assemble(text(), quick=True)
    library = load_code(code, exports, imports)
    cache.put(draft, dump_code(code))
    atexit.register(_finish, cache, key, draft, text)
    return library


def _finish(cache: DiskCache, key: str, draft: str, text: Callable[[], str]) -> None:
    """Leave optimised code for the next process, if LLVM is there and no other process did."""
    if cache.writable and key not in cache and "llvmlite" in sys.modules:
        with suppress(NativeError):  # the draft serves as well
            code: Code = host_engine().assemble(text())
            cache.put(key, dump_code(code))
            cache.discard(draft)
