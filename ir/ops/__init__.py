"""The ops: one record each, and everything about an op that is not code generation stands in it.

Importing this package fills `opdef.OPS`. Families (`families.py`) carry the rules that many ops
share; `masks.py` says how a branch that was not taken contributes exactly nothing to a gradient.
What does not live here: expansions into scalar primitives (`codegen.math`), what users call
(`tracer.functions`), and ops that are short compositions of these (mean, logsumexp, clip, ...).
"""

from ..opdef import OPS
from . import (  # noqa: F401  (imported for their registrations)
    attention,
    binary,
    bitwise,
    callbacks,
    complex,
    contraction,
    convolution,
    custom,
    determinants,
    effects,
    erfinv,
    fourier,
    fused,
    indexing,
    library,
    linear_algebra,
    loops_lanes,
    loops_while,
    movement,
    partitions,
    random,
    reductions,
    removable,
    scan,
    scans,
    singular_values,
    sorting,
    sources,
    structured,
    tape,
    triangular,
    ufunc_loops,
    unary,
    window_reductions,
    windows,
)

OPS.complete = True
