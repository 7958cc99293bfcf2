"""What small calls cost."""

import numpy as np
from numba import njit

from .table import row


@row
def call_1(f):
    one = f(1)
    return njit(lambda x: x + one)


@row
def call_3(f):
    return njit(lambda x, y, z: x * y + z)


@row
def call_dict(f):
    """A tuple of 20: Numba has no cheap dict of arrays. Written out, as a loop is slower."""
    results = ", ".join(f"t[{i}] * two" for i in range(20))
    scope = {"two": f(2)}
    exec(f"def double(t): return ({results})", scope)
    return njit(scope["double"])


@row
def slices_500(f):
    @njit
    def run(x):
        total = np.zeros_like(x[0])
        for i in range(500):
            total += x[i]
        return total

    return run
