"""Numbers from generators of NumPy's and Python's, drawn by native code in the generators' own states.

`sources` are the ways to the bits, `laws` what is made of them, by NumPy's compiled functions where it
is not one of the few that are worth instructions of their own; `lower_draws` makes scalar code of it.
"""
