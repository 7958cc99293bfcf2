"""Which Fourier transforms native code does, and by which stages.

A transform of r * m elements is m transforms of r, factors of modulus 1, and r transforms of m
(J. Cooley, J. Tukey, An algorithm for the machine calculation of complex Fourier series, 1965). That of
n real numbers is one of n / 2 complex ones, the even ones being real parts, and sums of its elements
and the mirrored ones.
"""

from __future__ import annotations

import math

from ..target import Target

ROOM = 1 << 18  # bytes on the stack for the rows of a unit
ODD = (3, 5, 7, 11, 13)
LEAST_LANES = 4  # of single precision: with fewer, NumPy is as fast


def radices(n: int) -> list[int] | None:
    """The sizes of the stages of a transform of n complex numbers; None if n has a large prime in it."""
    stages: list[int] = []
    for r in ODD:
        while n % r == 0:
            stages.append(r)
            n //= r
    twos = n.bit_length() - 1
    if n != 1 << twos:
        return None
    last = {0: [], 1: [4, 4] if twos > 1 else [2], 2: [4]}[twos % 3]
    return [8] * ((twos - int(math.log2(math.prod(last)))) // 3) + last + stages


def lanes(n: int, rows: int, itemsize: int, target: Target) -> int:
    """How many rows go side by side where n complex numbers are transformed; 0 if NumPy should do it."""
    if n < 2 or radices(n) is None:
        return 0
    width = target.lanes(itemsize)
    while width > min(rows, 2 * n) or 2 * (n + 1) * width * itemsize > ROOM:
        width //= 2
    return width if width * itemsize >= 4 * LEAST_LANES else 0
