"""What an index of NumPy means on a tracer: reading, assigning, masks, flat views.

at             `jt.at(x)[index].set(value)`, `.add`, `.multiply`, ..., `.get`: updates as values
bit_views      `x.view(dtype)`: the memory of an array as numbers of another dtype
concatenators  `jt.r_` and `jt.c_`: arrays, numbers and ranges written in brackets, joined
flat           `x.flat`: the elements of an array in C order, to be read
index_plan     What an index of NumPy means for an array of known shape: `resolve(x
indexing       `x[index]` and `x[index] = value` for every index that NumPy knows and whose
masked         `x[mask]` with a traced mask: elements whose number is known only at run time
"""

from . import at, flat, indexing, masked  # noqa: F401  (each enters its functions)
