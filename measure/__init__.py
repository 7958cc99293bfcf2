"""Measuring functions: `jt.bench`, which times them, and the magics of notebooks that ask for it.

`bench.py` is the function, `clock.py` takes the times, `results.py` compares what functions return,
`table.py` shows what came of it, `chart.py` draws it, `magics.py` are `%%jit` and `%jt`. This room uses
public names only; what the compiler itself knows of a program is `f.explain` and `jt.cost`.
"""
