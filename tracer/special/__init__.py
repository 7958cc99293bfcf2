"""`jt.special`: SciPy's special functions over tracers, each a composition of elementwise ops.

What is not exact by construction is computed in float64 and rounded to the dtype of the result once; so
float32 and smaller floats are right to a unit in the last place. Derivatives are rules (`custom_jvp`)
wherever those of the composition would be wrong at a seam or lose digits; what a formula traces to is
remembered (`formulas`).
"""

from . import (  # noqa: F401  (imported for what they enter into the table)
    bessel,
    betas,
    entropies,
    error_functions,
    exponential_integrals,
    gammas,
    incomplete,
    integrals,
    oscillating_bessel,
    products,
    transforms,
    zetas,
)
