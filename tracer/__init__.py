"""Python -> Graph: tracers, jit, the transformations as users call them, and the array functions.

    trace           Trace: the graph that a call is recorded as, and what it captures
    core            Tracer, Storage: what stands for arrays meanwhile
      conversions   when Python asks a tracer for its value
      accept        which arrays can be traced;  layout: NumPy's memory order
    views           shared storage and assignment through views
    tracing         trace_function: call a function with tracers, get its graph
    pytree          nested containers of arrays;  tree: their public functions
    jit             the jitted function: its caches, methods, inspection
      dispatch      arguments -> signature
      entry         one compiled specialisation and its call
      reads         which outside values a function's code reads
      guards        remembering those values and checking them
      outside       closed-over arrays as hidden inputs
      purity        random numbers while tracing, `jit(check=True)`
      remember      traces from earlier processes
        fingerprint what stands for a function;  bytecode: what its code does with names;  known
      cache_info    why each specialisation was made
      lowered       what `f.lower(x)` gives
    functions/      one table of array functions; NumPy's protocols arrive there
      operators, methods, indexing, masked, promotion    the surface of a Tracer
    transforms      grad, vjp, jvp;  control: cond, switch, loops
    errors, source  what went wrong, at which line of the user's, what to write instead

Nothing here generates code: graphs are handed to `runtime`.
"""
