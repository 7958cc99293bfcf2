"""What is known of a call before it happens: of what shape its result is, and what it costs.

`shapes.py` is `jt.eval_shape`, which traces and no more; `cost.py` is `jt.cost`, which also makes the
program, but no machine code of it; `formulas.py` has the numbers that depend on how often loops run.
Nothing here runs what was compiled: that is `tracer/explain`.
"""
