"""Generators that a compiled function makes for itself: `rng = np.random.default_rng(seed)`.

Such a generator is a real one that belongs to the compiled function. Each time that the program comes to
where it is made, its stream begins anew.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..core.trace import EagerBuilder, Trace, require_trace
from ..core.tracers import Tracer
from ..data.generators import kind_of, lasting_handle
from ..messages import errors
from ..messages.errors import complain
from .drawing import StandIn
from .random_states import begin
from .stand_ins import make


def _root() -> Trace:
    trace = require_trace()
    while trace.parent is not None:
        trace = trace.parent
    return trace


def _kept(generator: Any) -> StandIn:
    """What stands in for a generator that compiled code keeps."""
    kind = kind_of(generator)
    assert kind is not None
    handle, root = lasting_handle(generator), _root()
    stand_in = make(kind, handle)
    if isinstance(root.builder, EagerBuilder):
        root.builder.arrays[root.capture(handle)] = handle  # itself: it keeps the generator alive
    # Who keeps the handle keeps it from being a constant of the code, which outlives the generator.
    root.stand_ins = {**(root.stand_ins or {}), id(generator): stand_in}  # type: ignore[dict-item]
    return stand_in


def guarded(generator: Any) -> StandIn | None:
    """What stands in for a generator deep inside of what guards compare; None for others."""
    is_guarded = _root().is_guarded
    return _kept(generator) if is_guarded is not None and is_guarded(generator) else None


def _made(generator: Any, seed: Any) -> StandIn:
    stand_in = _kept(generator)
    object.__setattr__(stand_in, "_home", require_trace())
    begin(stand_in, seed)
    return stand_in


def default_rng(seed: Any = None) -> Any:
    """NumPy's, of no seed, ints, or a generator, which it gives back."""
    if isinstance(seed, np.random.Generator):
        return seed
    _check(seed)
    return _made(np.random.Generator(np.random.PCG64(0)), seed)


def random_state(seed: Any = None) -> Any:
    """A RandomState of a seed."""
    _check(seed)
    return _made(np.random.RandomState(np.random.MT19937(0)), seed)


def python_random(seed: Any = None) -> Any:
    """A random.Random of a seed."""
    _check(seed)
    return _made(random.Random(0), seed)


def _check(seed: Any) -> None:
    numbers = (int, np.integer, np.ndarray, Tracer, list, tuple)
    if seed is not None and not isinstance(seed, numbers):
        complain(
            errors.UnsupportedFunctionError,
            f"a generator that is made of a {type(seed).__name__} in a compiled function",
            "make it of an int, or make it outside.",
        )


def maker_of(function: Any) -> Callable[..., Any] | None:
    """What is called in place of what makes generators; TypeError for what is unhashable."""
    if function is random.Random:
        return python_random
    return _numpys_makers().get(function) if "numpy.random" in sys.modules else None


@cache
def _numpys_makers() -> dict[Any, Callable[..., Any]]:
    """NumPy's own, first asked for before any trace puts others into the module (`interception`)."""
    return {np.random.default_rng: default_rng, np.random.RandomState: random_state}
