"""`jt.special`: SciPy's special functions over tracers, each a composition of elementwise ops.

What is not exact by construction is computed in float64 and rounded to the dtype of the result once; so
float32 and smaller floats are right to a unit in the last place. Derivatives are rules (`custom_jvp`)
wherever those of the composition would be wrong at a seam or lose digits.
"""

from . import bessel, betas, entropies, error_functions, gammas, incomplete, zetas  # noqa: F401
