"""What a function reads from outside of its arguments: found, guarded, hashed.

Whatever tracing looked at is a guard, or the trace is not kept.

    bytecode            What the code of a function loads, stores and imports
    captured_variables  What a traced function takes from outside: guards
    fingerprint         A hash of everything that tracing a function can depend on
    fingerprint_parts   Containers, and functions around functions, taken apart for a fingerprint
    free_variables      Which outside values does a function read? Found in its bytecode
    frozen              Snapshots of Python values
    guards              Guards: what a compiled function assumes about the world outside
    hidden              Arrays outside of a function that its compiled code takes as inputs
    loads               Where code loads names, and what it does with them
    paths               Places that values are read from: a name
    purity              Is the trace of a function decided by its arguments alone? Random numbers
    purity_allow_list   Which code can be trusted to depend on nothing but what it is given
    running             Which code runs while a function is traced: of what could run
"""
