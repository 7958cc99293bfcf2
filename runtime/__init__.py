"""Native code in this process: compiling, linking, caching, calling, memory and threads.

    compile       graph -> Executable, through the caches
    executable    Executable: `run(arrays)`, errors of native code as Python exceptions
    native/       LLVM text -> machine code in this process
    call/         objects whose call is native code, and what that code does
    cache/        executables in memory, and the next process's on disk
    memory/       scratch and output arrays, and the pool that large ones come from
    threads/      the thread pool
    callbacks     native code that calls Python;  handlers, dlpack, versions, library_loops
    config        the settings;  platforms: where jitney was tried;  devices: their names
    info          what `python -m jitney info` prints
    sanitizer/    code that checks its accesses of memory
    cuda/         NVIDIA GPUs

Nothing here knows how kernels are written (`codegen`) or what a user's function is (`tracer`).
Importing this package imports none of the modules, and llvmlite only with the first compilation.
"""

from ..ir.surface import provides


@provides("threads")
def _threads() -> None:
    from .threads import pool  # noqa: F401
