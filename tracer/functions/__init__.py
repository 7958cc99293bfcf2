"""NumPy's functions over tracers that need indexing or loops, and the surface of tracers.

applying          Functions that apply the user's own: along an axis, over several
arranging         Functions that rearrange or repeat elements: flip, roll, repeat, tile, grids
choices           Of several values one for each element, by conditions or by number: select
diagonals         Diagonals, traces, and triangles of matrices
equality          Are arrays equal, element by element or as a whole, exactly or nearly?
histograms        Histograms: counts of elements between edges
index_arrays      Index arrays: triangles and diagonals of matrices
methods           The methods and attributes of an ndarray, on tracers
operators         Python's operators on tracers, in-place ones included, and NumPy's protocols
order_statistics  Quantiles and medians: elements of a sorted row, and what lies between them
padding           np.pad: constants around an array, or its own elements continued past the edge
public            The functions of the table as users call them
scans             Running sums and products, differences, gradients and integrals along an axis
selection         Functions that pick elements by index: take, put, windows at traced places
sorting           Sorting, order statistics, and searches in sorted arrays
ufunc_methods     The methods of ufuncs over tracers: reduce, accumulate, reduceat, outer, at
value_shapes      Functions whose result is as long as the values say: nonzero, unique
"""

from . import (  # noqa: F401  (each enters its functions)
    applying,
    arranging,
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
