"""`jt.is_traced`: whether numbers are at hand."""

from __future__ import annotations

from typing import Any

from ..control.control import is_plain
from ..core.tracers import Tracer
from ..data import pytree


def is_traced(x: Any) -> bool:
    """Whether a leaf of the tree `x` is known only when the compiled function runs.

    For libraries that say more where they know more. Where Python runs (outside of `jit`, under
    `jt.grad` alone) it is False.

    >>> is_traced(3.0), jt.jit(lambda x: (x, is_traced(x)))(3.0)
    (False, (3.0, True))
    """
    return not is_plain() and any(isinstance(leaf, Tracer) for leaf in pytree.flatten(x)[0])
