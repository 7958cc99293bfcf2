"""Loops over elements, as people write them in Python, beside Numba.

    python -m benchmarks.kernels                    all kernels at three sizes
    python -m benchmarks.kernels stencil sieve      some

Every function runs unchanged under `jt.jit(autograph=True)` and under `numba.njit`, both with Python's
rules of rounding. Results, and arrays that are written, are compared; times are the best of several
rounds in alternation.
"""

from . import (
    dynamic,
    elementwise,
    integers,
    matrices,
    orders,
    recurrences,
    reductions,
    simulations,
    stencils,
)
from .kernel import KERNELS as KERNELS
from .kernel import Kernel as Kernel

MODULES = (
    *(elementwise, stencils, reductions, dynamic, matrices),
    *(recurrences, orders, integers, simulations),
)
