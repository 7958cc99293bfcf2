"""NumPy's and Python's generators of random numbers in compiled functions: the same numbers as without.

`drawing` appends draws to the trace, in program order; `limits` holds parameters to what NumPy asks.
`generators`, `random_states` and `python_random` are what stands in for the three classes while a
function is traced, and `interception` finds calls of real ones: `np.random.rand()`, `random.random()`.
"""

from . import interception, stand_ins  # noqa: F401
