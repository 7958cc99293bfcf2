"""Which class stands in for which generator, and which stand-in a trace has for one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ..core.trace import current_trace
from ..data.generators import GeneratorKind, provide_stand_ins
from .drawing import StandIn
from .generators import TracedGenerator
from .python_random import TracedRandom
from .random_states import TracedRandomState


def make(kind: GeneratorKind, handle: Any) -> StandIn:
    """What stands in for a generator of a kind."""
    if kind.cls is random.Random:
        return TracedRandom(kind, handle)
    made = TracedGenerator if kind.cls is np.random.Generator else TracedRandomState
    return made(kind, handle)


provide_stand_ins(make)


def traced(generator: Any) -> Any:
    """What stands in for a generator in the compiled function that is traced; None without one."""
    trace = current_trace()
    while trace is not None:
        stand_in = (trace.stand_ins or {}).get(id(generator))
        if stand_in is not None:
            return stand_in
        trace = trace.parent
    return None
