"""Calls that draw from real generators while a function is traced: who they are meant for.

`np.random.rand` is a method of the RandomState that the module has, `random.random` one of a
random.Random, and `draw = rng.normal` of any generator. Under autograph each call asks `replaced`. For
functions that run as they were written, those of the two modules are exchanged while one is traced.
"""

from __future__ import annotations

import functools
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, MethodType
from typing import Any

import numpy as np

from ...ir.forks import in_child, renewed
from ..core.threaded_state import refuse_examples
from ..core.trace import current_trace
from ..data.generators import asking, behind, provide_asking
from ..messages import errors
from ..messages.errors import complain
from .drawing import under_vmap
from .made import default_rng, guarded, maker_of
from .stand_ins import traced

_METHODS = (MethodType, BuiltinFunctionType)


def replaced(function: Any) -> Callable[..., Any] | None:
    """What is called in place of a function that draws, or makes a generator; None for all others."""
    trace = current_trace()
    if trace is None:
        return None
    if trace.eager:
        if under_vmap() and behind(function) is not None:
            refuse_examples()
        return None
    try:
        maker = maker_of(function)
    except TypeError:  # unhashable
        return None
    if maker is not None:
        return maker
    generator = behind(function)
    if generator is None:
        return None
    stand_in = traced(generator) or guarded(generator)
    if stand_in is None:
        if under_vmap():
            refuse_examples()
        _refuse(generator, function)
    name = function.__name__
    if type(generator) is np.random.RandomState and name in ("sample", "ranf"):
        name = "random_sample"
    method: Callable[..., Any] = getattr(stand_in, name)
    return method


def _refuse(generator: Any, function: Any) -> None:
    complain(
        errors.ImpureFunctionError,
        f"{function.__name__} of a {type(generator).__name__} that compiled code cannot find again at "
        "the next call",
        "pass the generator as an argument, or let the function find it by a name: a global, a "
        "variable of an enclosing function, an attribute such as self.rng. One that the function makes "
        "for itself is to be made by np.random.default_rng(seed).",
    )


# Functions that run as they were written

_exchanging = renewed(threading.RLock())
_inside = 0
_originals: list[tuple[Any, str, Any]] = []


@contextmanager
def exchanged() -> Iterator[None]:
    """Inside, the drawing functions of `np.random` and `random` are ours; they know who traces."""
    global _inside
    with _exchanging:
        _inside += 1
        if _inside == 1:
            # NumPy loads its module when somebody asks for it: `traces` sees that and traces again.
            for module in filter(None, (sys.modules.get("numpy.random"), random)):
                for name in _drawing(module):
                    function = getattr(module, name, None)
                    if _draws(function):
                        _originals.append((module, name, function))
                        setattr(module, name, asking(function))
    try:
        yield
    finally:
        with _exchanging:
            _inside -= 1
            if _inside == 0:
                _restore()


@functools.cache
def _drawing(module: Any) -> tuple[str, ...]:
    """The names of a module's functions that draw; looked through once, since each trace asks."""
    return tuple(name for name, function in vars(module).items() if _draws(function))


def _draws(function: Any) -> bool:
    if isinstance(function, type):
        return False
    if isinstance(function, _METHODS) or callable(function):
        return behind(function) is not None or maker_of(function) is default_rng
    return False


def _restore() -> None:
    while _originals:
        module, name, function = _originals.pop()
        setattr(module, name, function)


@in_child
def _forget_others() -> None:
    """In a forked process no other thread is tracing."""
    global _inside
    if _inside and current_trace() is None:
        _inside = 0
        _restore()


def _asking(function: Any) -> Callable[..., Any]:
    """A function of a module, which draws in what is traced if that can."""

    @functools.wraps(function, assigned=("__name__", "__doc__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is None or trace.eager:
            return function(*args, **kwargs)
        generator = behind(function)
        if generator is not None and traced(generator) is None and not under_vmap():
            return function(*args, **kwargs)  # a library's code: what it draws is noticed
        return (replaced(function) or function)(*args, **kwargs)

    return call


provide_asking(_asking)
