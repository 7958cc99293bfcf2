"""NumPy's functions over tracers that need indexing or loops, and the surface of tracers."""

from . import (  # noqa: F401  (each enters its functions)
    applying,
    arranging,
    bounded,
    bounded_reductions,
    bounded_selection,
    choices,
    diagonals,
    equality,
    histograms,
    index_arrays,
    methods,
    operators,
    order_statistics,
    padding,
    scans,
    selection,
    sorting,
    value_shapes,
)
