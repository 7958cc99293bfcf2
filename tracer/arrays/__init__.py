"""The table of array functions, and those that all others are written with.

Here are no loops and no indexing: what needs these is a function of `functions`.
"""

from . import as_arrays, creation, elementwise, movement, reductions, ufuncs  # noqa: F401  (each enters its functions)
