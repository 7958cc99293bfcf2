"""What a function reads from outside of its arguments: found, guarded, hashed.

Whatever tracing looked at is a guard, or the trace is not kept.

    bytecode           What the code of a function loads, stores and imports
    fingerprint        A hash of everything that tracing a function can depend on
    fingerprint_parts  Containers, and functions around functions, taken apart for a fingerprint
    frozen             Snapshots of Python values
    guards             Guards: what a compiled function assumes about the world outside
    hidden             Arrays outside of a function that its compiled code takes as inputs
    known              Which code can be trusted to depend on nothing but what it is given
    loads              Where code loads names, and what it does with them
    outside            What a traced function takes from outside: guards
    paths              Places that values are read from: a name
    purity             Is the trace of a function decided by its arguments alone? Random numbers
    reads              Which outside values does a function read? Found in its bytecode
    running            Which code runs while a function is traced: of what could run
"""
