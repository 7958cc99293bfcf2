"""Tracers: what stands for arrays while a Python function is called to become a graph.

NumPy's protocols bring every `np.f(tracer)` to the table of array functions (`tracer.arrays`),
which decides dtypes (NEP 50, asked of NumPy itself) and appends ops. In-place code becomes values:
a tracer is a view of a storage cell, and an assignment rewrites the cell; memory order is tracked
as NumPy chooses it, because it decides what is a view. Each op remembers the user's line. State
that advances behind the scenes, such as that of random generators, is threaded: as ops of the trace
that it came into, operands of branches, carries of loops.

Operators, methods and functions lie above, and are attached when the first trace begins.
"""
