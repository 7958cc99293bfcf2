"""What went wrong, at which line of the user's, and what to write instead.

errors      What a user can do wrong, one class per kind, and how each is said
source      The user's line: the innermost stack frame that is no library's (jitney, NumPy, ...)
tracebacks  Tracebacks of errors end at the user's frames: those of this package are taken out
"""
