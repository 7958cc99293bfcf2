"""Ordinary Python as people write it who prototype kernels, compiled and compared with itself.

expressions     of a type that is asked for: arithmetic, `math`, logic, elements of arrays
statements      assignments, writes, branches, loops, `try`
programs        helper functions, closures, classes, the function itself and its arguments
judging         values, types, effects on arguments, exceptions, which objects are one
"""

from .judging import Ordinary
from .programs import program


def ordinary(seed: int) -> Ordinary:
    """The program of a seed."""
    return Ordinary(seed, program(seed))
