"""The array functions: one table of NumPy's names and ours, with their traced implementations.

What a function does is written once, over tracers, in the module of its kind. Here live no
operators and no indexing (`tracer.operators`, `tracer.indexing`), and nothing that compiles.
"""

from . import (  # noqa: F401  (each module enters its functions into the table)
    applying,
    arranging,
    as_arrays,
    at,
    attention,
    contraction,
    convolution,
    creation,
    diagonals,
    einsum,
    elementwise,
    factored,
    fourier,
    histograms,
    linalg,
    matrix_functions,
    movement,
    norms,
    order_statistics,
    padding,
    places,
    polynomials,
    pooling,
    reductions,
    resizing,
    scans,
    selection,
    sorting,
    ufuncs,
    value_shapes,
)
from .table import BY_NUMPY, FUNCTIONS, ArrayFunction, public_names

# isort: split
# Last: they attach functions of the table to Tracer.
from .. import flat, indexing, masked, methods, operators  # noqa: F401

__all__ = ["BY_NUMPY", "FUNCTIONS", "ArrayFunction", "public_names"]
