"""`default_rng`: a generator of random numbers like NumPy's, with a state.

The state is a key and a count. The n-th draw takes its numbers from `fold_in(key, n)`, so that a
generator gives the same stream in Python, in compiled functions and in loops of them, and which numbers
come in a draw does not depend on how many came before. Compiled functions read the state of generators
that they reach (globals, closures, attributes, arguments) when they are called, and write it back when
they return (`streams`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.forks import renewed
from ..arrays.common import build
from ..core.threaded_state import advance, count_draw, refuse_examples, stand_in
from ..core.trace import Trace, current_trace
from ..core.tracers import Tracer, as_value, refuse_leaked, wrap
from ..messages import errors
from ..messages.errors import complain
from . import limits
from .draws import Draws
from .entry import sampler
from .keys import U32, U64, joined, key, split, stacked, threefry, words_of

_STEP = np.array([0, 1], np.uint64)
_lock = renewed(threading.RLock())
Array = np.ndarray[Any, Any]


def default_rng(seed: Any = None) -> Generator:
    """A generator made of an integer or a key; of None: of what the operating system gives.

    Raises jt.errors.ImpureFunctionError without a seed in a function that is traced.

    >>> rng = jt.random.default_rng(0)
    >>> noisy = jt.jit(lambda x: x + rng.integers(0, 10, 4))
    >>> noisy(100), noisy(100)                 # the state advances, in compiled functions too
    (array([109, 103, 106, 109]), array([100, 109, 107, 105]))
    >>> rng.state                              # the key, and how many draws there were
    array([0, 2], dtype=uint64)

    What is a generator already is returned as it is.
    """
    if isinstance(seed, Generator):
        return seed
    if seed is None:
        if current_trace() is not None:
            complain(
                errors.ImpureFunctionError,
                "default_rng() without a seed, in a function that is traced, would be seeded once "
                "and for all",
                "make the generator outside, where compiled functions find it, or give it a seed.",
            )
        seed = int.from_bytes(os.urandom(8), "little")
    known_key = getattr(seed, "dtype", None) == U32 and tuple(seed.shape) == (2,)
    return Generator(_start(seed if known_key else key(seed)))


@sampler()
def _start(key: Any) -> Any:
    """The state of a generator that has drawn nothing: the key's 64 bits, and 0."""
    b = build()
    first = joined(*words_of(key))
    return wrap(stacked(first, wrap(b.full((), 0, U64))), scalar=False)


@sampler()
def _draw_key(key: Any) -> Any:
    """The key of the next draw of a generator with the state `key`."""
    b, state = build(), as_value(key)
    words = []
    for i in (0, 1):
        part = b.reshape(b.slice(state, start=(i,), stop=(i + 1,), step=(1,)), shape=())
        high = b.right_shift(part, b.full((), 32, U64))
        words += [wrap(b.convert(v, dtype=U32)) for v in (high, part)]
    return wrap(stacked(*threefry(*words)), scalar=False)


class Generator(Draws):
    """A stream of random numbers: NumPy's `Generator`, by Threefry. Make one with `default_rng`.

    Methods, parameters and dtypes are NumPy's; the numbers are `jt.random`'s. Everything that draws
    floats takes `dtype=np.float32`, too. Threads may draw from one generator; compiled functions that do
    so, and run at the same time, need one each: `spawn`.
    """

    _jitney_state = "_state"  # the attribute that compiled functions read and update

    def __init__(self, state: Any) -> None:
        self._state = state

    def __repr__(self) -> str:
        return f"Generator(Threefry) at 0x{id(self):X}"

    @property
    def state(self) -> Array:
        """The key's 64 bits and the number of draws so far; may be assigned to, to go back."""
        if isinstance(self._state, Tracer):
            complain(
                errors.TracerConversionError,
                "the state of a generator is known only when the compiled function runs",
                "read it outside of the compiled function.",
            )
        return np.array(self._state)

    @state.setter
    def state(self, value: Any) -> None:
        with _lock:
            self._state[...] = value

    def key(self) -> Any:
        """A key for the functions of `jt.random`, another one each time."""
        return _draw_key(self._now())

    def spawn(self, n_children: int) -> list[Generator]:
        """Generators whose streams are independent of each other and of this one."""
        rows = split(self.key(), n_children)
        return [Generator(_start(rows[i])) for i in range(n_children)]

    def _now(self) -> Any:
        """The state, which goes on to the next draw."""
        state, trace = self._state, current_trace()
        count_draw()
        stands_in = None if trace is None else stand_in(state)
        state = state if stands_in is None else stands_in
        if isinstance(state, Tracer):
            if trace is None:
                refuse_leaked(state)
            return advance(state, _STEP)
        if trace is not None and not trace.eager:
            if _under_vmap(trace):
                refuse_examples()
            complain(
                errors.ImpureFunctionError,
                "the function that is traced draws from a generator that compiled code cannot reach",
                "pass the generator as an argument, or let the function find it by a name: a global, "
                "a variable of an enclosing function, an attribute such as self.rng.",
            )
        with _lock:
            now = state.copy()
            state += _STEP
        return now

    def _draw(self, function: Callable[..., Any], **parameters: Any) -> Any:
        """What a function of `jt.random` makes of this generator's next key."""
        limits.check(function.__name__, parameters)
        now = self._now()
        if current_trace() is None:
            return _compiled(function)(now, **parameters)
        return function(_draw_key(now), **parameters)


def _under_vmap(trace: Trace | None) -> bool:
    while trace is not None:
        if trace.what == "vmap":
            return True
        trace = trace.parent
    return False


_functions: dict[Callable[..., Any], Callable[..., Any]] = {}


def _compiled(function: Any) -> Callable[..., Any]:
    """A function of `jt.random` as a compiled function of a generator's state instead of a key."""
    compiled = _functions.get(function)
    if compiled is None:
        compiled = _functions.setdefault(function, function.advancing(_draw_key))
    return compiled
