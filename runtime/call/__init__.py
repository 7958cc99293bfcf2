"""Calls without Python: objects whose vectorcall is emitted code, and the programs that it interprets.

What a callable does is a *call program*, data for one emitted interpreter: arguments checked,
outputs allocated, the GIL released, the entry run, results built. A new specialisation compiles no
code for its call. A program may be stricter than Python, never laxer: Python takes the calls that
no program takes, and all where the probe of NumPy's objects fails (`runtime.native.layout`).
docs/decisions/0004-calls-are-programs.md.
"""
