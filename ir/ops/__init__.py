"""The ops: one record each, and everything about an op that is not code generation stands in it.

Importing this package fills `opdef.OPS`. Records stand in folders by what ops do; families
(`families.py`) carry the rules that many ops share; `masks.py` says how a branch that was not taken
contributes exactly nothing to a gradient.
What does not live here: expansions into scalar primitives (`codegen.math`), what users call
(`tracer.functions`), and ops that are short compositions of these (mean, logsumexp, clip, ...).
"""

from ..opdef import OPS
from .collectives import messages, records  # noqa: F401
from .control import (  # noqa: F401  # noqa: F401
    callbacks,
    custom,
    draws,
    effects,
    implicit,
    loops_lanes,
    loops_while,
    recursion,
    scan,
    stores,
    structured,
    tape,
    watching,
)
from .elementwise import binary, bitwise, complex, erfinv, fused, random, removable, unary  # noqa: F401
from .folds import partitions, reductions, scans, sorting, window_reductions  # noqa: F401
from .libraries import (  # noqa: F401
    determinants,
    fourier,
    library,
    linear_algebra,
    singular_values,
    triangular,
    ufunc_loops,
)
from .movement import bounded, indexing, movement, sources, strided, windows  # noqa: F401
from .products import attention, contraction, convolution, sparse  # noqa: F401

OPS.complete = True
