"""`jt.sparse`: matrices of which only some elements are there, bags of rows, ragged rows.

SciPy's matrices are taken wherever arrays are: as arguments, in trees, closed over. Compiled code has
`CSR`, `CSC` or `COO` for them, whose products have derivatives in both modes, in the elements too.
"""

from .bags import embedding_bag as embedding_bag
from .matrices import COO as COO
from .matrices import CSC as CSC
from .matrices import CSR as CSR
from .matrices import from_scipy as from_scipy
from .ragged import padded_to_ragged as padded_to_ragged
from .ragged import ragged_to_padded as ragged_to_padded

__all__ = [
    "COO",
    "CSC",
    "CSR",
    "embedding_bag",
    "from_scipy",
    "padded_to_ragged",
    "ragged_to_padded",
]
