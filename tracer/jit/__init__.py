"""`jit`: a call's signature, its specialisations, how they are made, remembered and called.

binding        Jitted functions as methods: bound methods
buckets        The specialisations of one signature
cache_info     What `f.cache_info()` tells: each specialisation of a function
device_entry   A specialisation that runs on a GPU: arguments are brought there
dispatch       From the arguments of a call to its signature: what is traced, what is static
entry          One compiled specialisation of a function, and the call of it
jit            `jit`: trace a function at its first call of a kind
lowered        `f.lower(x)` and `f.explain(x)`: the stages between a graph and machine code
native_call    From an entry to its call program: what `dispatch`
native_guards  Guards as a part of call programs: what `guards` and `frozen` compare in Python
options        The options of `jit` as one record, checked
programs       Which call programs a jitted function has: when one is written
specialise     The miss path: a call of a new kind is traced and compiled, or recalled from disk
trace_cache    Traces remembered on disk
"""
