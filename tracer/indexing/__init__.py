"""What an index of NumPy means on a tracer: reading, assigning, masks, flat views.

An index is resolved to a plan: a view, and what is gathered from it or scattered into it.
"""

from . import at, bounded_index, flat, indexing, masked  # noqa: F401  (each enters its functions)
