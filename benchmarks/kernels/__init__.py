"""Loops over elements, as people write them in Python, beside Numba and C.

    python -m benchmarks.kernels                    all kernels at three sizes, on one thread
    python -m benchmarks.kernels stencil sieve      some
    python -m benchmarks.kernels --threads 2        Numba's `prange` and OpenMP where that is sensible

Every function runs unchanged under `jt.jit` and under `numba.njit`, both with Python's rules of
rounding. `kernels.c` has the same kernels in C; where there is a compiler they are compiled with -O3,
and with -Ofast -march=native, which may round otherwise. C is called from C, without Python between,
into memory that is there. Results, and arrays that are written, are compared. Times are the best of
several rounds in alternation: the processor's on one thread, the clock's on several.
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
