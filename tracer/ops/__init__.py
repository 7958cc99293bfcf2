"""`jt.ops`: functions of arrays that NumPy has no name for, under the names that machine learning has.

Each is a composition of NumPy's functions, written the way that compiles best.
"""

from . import choosing, clipping, formulas, segments, shapes  # noqa: F401  (each enters its functions)
