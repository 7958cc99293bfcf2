"""Machine code that is the same for every program: the pool, the memory handler, the call path.

    library = load_support("pool", text, exports, imports)

Such code depends on what is installed and on the CPU alone, so in the cache on disk it stands under
its name, and its LLVM text is not even written when an earlier process left the code there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .disk import disk_cache
from .engine import NativeError, host_engine, load_code
from .host import host_target
from .image import Library
from .installation import digest, installation
from .records import dump_code, load_code_record


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
    code = load_code_record(cache.get(key))
    if code is not None:
        try:
            return load_code(code, exports, imports)
        except NativeError:  # no code after all: build it again
            cache.discard(key)
    code = host_engine().assemble(text())
    library = load_code(code, exports, imports)
    cache.put(key, dump_code(code))
    return library
