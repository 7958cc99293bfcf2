"""What is computed: for each row its inputs, and the NumPy program that defines the answer.

One module per theme. The reference answer is the NumPy program on float64 copies of the inputs;
`tolerance` bounds max|got - reference| / max|reference| of each output, and `mismatch` the share of
integer outputs that may differ. Each framework writes the rows in its own words (`frameworks/`).
"""

from . import (
    broadcasting,
    calls,
    decompositions,
    indexing,
    learning,
    loops,
    matrices,
    networks,
    pointwise,
    products,
    sampling,
)
from .row import ROWS, Array, Row, as_list, map_arrays

__all__ = ["ROWS", "Array", "Row", "as_list", "map_arrays"]

# in the order of the table
for _module in (
    calls,
    pointwise,
    matrices,
    products,
    decompositions,
    broadcasting,
    loops,
    learning,
    networks,
    indexing,
    sampling,
):
    ROWS.update(_module.rows)
