"""Native code in this process: compiling, linking, caching, calling, memory and threads.

    compile       graph -> Executable, through the caches
    executable    Executable: `run(arrays)`, errors of native code as Python exceptions
    callable      objects whose call is native code;  program: what that code does, as data
    call_ir       the emitted function that runs programs;  opcodes_ir, *_opcodes: its opcodes
      arrays_ir   arrays and scratch for them;  ranges_ir: which share memory;  call_fields
    function_ir   writing LLVM functions from Python
    engine        LLVM: text -> machine code
    linker        object file -> image, which any process can load, with relocations;  image: loading it
    cache         executables in memory;  disk: the next process's;  records: executables as bytes
    support       code that all programs share;  host: the CPU;  installation: what is installed
    config        the settings;  platforms: where jitney was tried
    memory        scratch and output arrays
    recycling     the pool that big outputs come from, with recycling_ir
    pool          the thread pool behind `jitney_parallel_for`, with pool_ir
    callbacks     native code that calls Python
    layout        where NumPy keeps an array's fields
    info          what `python -m jitney info` prints
    llvm_text     reading LLVM's own printing of a module
    sanitizer/    code that checks its accesses of memory
    cuda/         NVIDIA GPUs

Nothing here knows how kernels are written (`codegen`) or what a user's function is (`tracer`).
Importing this package imports none of the modules, and llvmlite only with the first compilation.
"""
