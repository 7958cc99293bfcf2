"""The table of array functions, and those that all others are written with.

Here are no loops and no indexing: what needs these is a function of `functions`.

    as_arrays         Functions that make an array of what they are given
    common            What the array functions share: coercing operands, axes, broadcasting, out=
    creation          Functions that make arrays
    elementwise       Elementwise functions that are no ufuncs: where, clip, round, nan_to_num
    foreign_ufuncs    Ufuncs of other packages, SciPy's above all
    lowerings         What each NumPy ufunc is in graph ops
    movement          Functions that move elements: reshapes, transposes, joins, splits, repeats
    numpy_names       NumPy's names that are no array functions: those that `jt` has from NumPy
    python_operators  Python's operators: the ufunc that each is on arrays
    reductions        Reductions: sum, prod, max, min, any, all, argmax, argmin, mean, var
    table             The one table of array functions: `FUNCTIONS` by public name
    ufuncs            NumPy's ufuncs over tracers: promotion, broadcasting, `out=`, `where=`
"""

from . import as_arrays, creation, elementwise, movement, reductions, ufuncs  # noqa: F401  (each enters its functions)
