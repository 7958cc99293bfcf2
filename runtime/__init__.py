"""Native code in this process: compiling, linking, caching, calling, memory and threads.

`compile` makes an `Executable` of a graph, through the caches; `executable` runs it, and turns
errors of native code into Python exceptions. `callbacks` let native code call Python. `config` has
the settings. Long loops, and callers that wait for other threads, let Python handle signals. In a
forked child locks are free again, and what other threads had half done is thrown away; a fork waits
for one thing only, that others have left LLVM, and no lock that is taken with the GIL held is
waited for.

Nothing here knows how kernels are written (`codegen`) or what a user's function is (`tracer`).
Importing this package imports none of the modules, and llvmlite only with the first compilation.
"""

from ..ir.surface import provides


@provides("threads")
def _threads() -> None:
    from .threads import pool  # noqa: F401
