"""`prange`: a range whose iterations do not depend on each other."""

from __future__ import annotations

from typing import SupportsIndex


def prange(*args: SupportsIndex) -> range:
    """`range(stop)` or `range(start, stop[, step])`, for a loop whose iterations are independent.

        @jt.jit
        def smooth(x, out):
            total = 0.0
            for i in jt.prange(1, x.size - 1):
                out[i] = (x[i - 1] + x[i] + x[i + 1]) / 3
                total += out[i]
            return total

    Outside of compiled functions it is a `range`. There, a `for` statement over it says that its
    iterations may run in any order and at the same time, on several threads. Bounds may be traced.

    Each iteration may write its own elements, and read what none writes. Variables and elements may be
    combined by all of them with one operation: `+=`, `-=`, `*=`, `min`, `max`, `&=`, `|=`, as in
    `total += x` and `histogram[k] += 1`; sums of floats may then be added in another order than
    Python's, which does not depend on how many threads there are. Threads share such sums of variables
    too, if the bounds are known while tracing, and such loops inside of another loop, step by step.

    Raises jt.errors.ConflictError while tracing where two iterations are seen to touch an element that
    one of them writes, or where a variable is handed from one to the next, and TransformError for
    `break` and `return` in the loop. A conflict that depends on data is not seen: then the result is
    undefined.

    >>> sum(i for i in jt.prange(2, 8, 2))
    12
    """
    return range(*args)
