"""`jt.profile`: what ran when, on which thread, and how long it took.

`profile` is what users write: while its block runs, functions are compiled anew, as code that tells of
its steps (`runtime.recording`, `codegen.program.probes`), and afterwards they have their old code again.
`events` makes of what was recorded one list; `report` the table, and the file that trace viewers read.
"""
