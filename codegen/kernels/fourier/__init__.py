"""Fourier transforms along rows, on CPUs: the lanes of a vector are rows.

A unit brings as many rows as a vector has lanes into memory of its own, turned over, so that an element
of all of them is two vectors, its parts. There the stages of the transform run in place, and what comes
of them is turned back. Sizes with other factors than small primes, long rows, and fewer rows than there
are lanes are NumPy's (`lowering.lower_library`).
"""
