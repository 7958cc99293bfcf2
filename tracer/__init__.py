"""Python -> Graph: tracers, jit, the transformations as users call them, and the array functions.

    trace           Trace: the graph that a call is recorded as, and what it captures
    core            Tracer, Storage: what stands for arrays meanwhile
      conversions   when Python asks a tracer for its value
      accept        which arrays can be traced;  layout: NumPy's memory order;  shapes: ShapeDtype
    views           shared storage and assignment through views;  index_plan: what an index means
    tracing         trace_function: call a function with tracers, get its graph
    pytree          nested containers of arrays;  tree: their public functions
    jit             the jitted function: its caches, methods, inspection;  options, binding
      dispatch      arguments -> signature;  buckets: the specialisations of one;  exact: equality
      specialise    a call of a new kind is traced and compiled;  entry: the result and its call
      programs      which calls are native;  native_call: what they do, for one specialisation
      reads         which outside values a function's code reads
      guards        remembering those values and checking them
      outside       closed-over arrays as hidden inputs
      purity        random numbers while tracing, `jit(check=True)`
      remember      traces from earlier processes
        fingerprint what stands for a function, with fingerprint_parts;  bytecode, known
      cache_info    why each specialisation was made
      lowered       what `f.lower(x)` gives
    functions/      one table of array functions; NumPy's protocols arrive there
      operators, methods, indexing, masked, promotion    the surface of a Tracer
    transforms      grad, vjp, jvp;  jacobians, linear, check_grads;  differentiable: their checks
      application   a function applied and kept open for derivatives;  remat: checkpoint
      custom        derivatives of the user's own;  custom_call, custom_rules
    vmap            batching, with vmap_axes;  vectorize, associative
    control         cond, switch, loops;  branches, loops, carries, scans;  regions: their parts
      tensor_array  results of loops;  element_states, elements
      effects       their order;  callbacks: Python called from compiled code
    autograph/      Python's own control flow
    errors, source  what went wrong, at which line of the user's, what to write instead;  tracebacks

Nothing here generates code: graphs are handed to `runtime`.
"""
