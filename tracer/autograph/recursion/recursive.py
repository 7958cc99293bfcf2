"""`recursive`: a function that calls itself, as one function of native code."""

from __future__ import annotations

import functools
import sys
import threading
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ....ir.types import TensorType
from ...control.regions import Out
from ...core.stack import DEPTH, MOST, most_calls
from ...core.trace import Trace, current_trace
from ...core.tracers import Tracer
from ...data import pytree
from ...data.callables import Function, check_callable
from ...messages import errors
from ...messages.errors import complain, describe
from ...messages.tracebacks import shortened
from ..variables import is_traceable, out_of
from .bodies import Body
from .handed import End

_OFTEN = 4  # calls of a function between two looks whether it is one that calls itself
_INSIDE = 4  # calls inside of each other, in branches
_DEEP = 100  # the same where no branch is
AS_IT_IS = "_jitney_plain"  # an attribute of functions that autograph leaves as they are


@shortened
def recursive(
    function: Function | None = None, *, depth: int = DEPTH, result_like: Any = None
) -> Any:
    """A function that calls itself: in compiled code a native function that does so.

        @jt.recursive(depth=100_000)
        def fill(grid, i, j):
            if 0 <= i < len(grid) and 0 <= j < len(grid) and grid[i, j] == 0:
                grid[i, j] = 1
                fill(grid, i + 1, j)
                fill(grid, i - 1, j)
                fill(grid, i, j + 1)
                fill(grid, i, j - 1)

    It need not be asked for: functions that call themselves under conditions which only run time knows
    are found while they are traced, and call themselves as deep as `sys.setrecursionlimit` says, 10,000
    calls at the least.

    Arguments may be numbers, None, tuples and containers of them, which differ from call to call, and
    anything that is the same in all calls. Arrays, attributes, variables of functions around, and
    elements of lists and dicts may be changed, arrays in their place. An array that is another one at
    each call may only be read. Outside of compiled functions it is the function itself.

    depth        how many calls may be inside of each other; RecursionError where there are more, or
                 where they need more than 4 MiB of the stack
    result_like  a tree of numbers like the result, if that should have these types

    It has no derivatives. Under `jt.vmap` the examples come one after the other. Where the body does
    more than scalar code can, and on GPUs, the interpreter runs it, in a callback.

    Raises jt.errors.CarryError where a type changes from call to call, OuterMutationError for arrays
    that differ from call to call and are assigned to, TransformError for a depth that is no number.

    >>> recursive(lambda n: 2 * n)(4)
    8
    """
    if function is None:
        return functools.partial(recursive, depth=depth, result_like=result_like)
    check_callable(function, "recursive")
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 < depth <= MOST:
        complain(
            errors.TransformError,
            f"depth={depth!r} is no number of calls",
            "give an int from 1 to 1,000,000.",
        )
    own = _Own(depth, result_like)

    @shortened
    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is None or trace.eager:
            return function(*args, **kwargs)
        body = own.body(trace)
        return own.first(function, args, kwargs) if body is None else body.again(args, kwargs)

    return call


class CallsItself(errors.Anew, RecursionError):
    """A function calls itself often while it is traced, under conditions that only run time knows."""

    def __init__(self, name: tuple[str, str]) -> None:
        super().__init__("a function calls itself")
        self.name = name


class _Found(threading.local):
    """Functions that were found to call themselves, by file and name, while they are traced as native
    ones; and what stands for them, by their code, globals and cells. The labels of the ops whose bodies
    are being traced. How often each function was called, where it is looked whether one calls itself."""

    def __init__(self) -> None:
        self.names: frozenset[tuple[str, str]] = frozenset()
        self.made: dict[Any, Function] = {}
        self.labels: list[str] = []
        self.calls: Counter[CodeType] | None = None


_found = _Found()


@contextmanager
def natively(names: Collection[tuple[str, str]], look: bool) -> Iterator[None]:
    """Take these functions, given by file and name, for recursive ones. `CallsItself` where it shows,
    and is looked for, that another one is."""
    before = _found.names, _found.made, _found.calls
    _found.names, _found.made, _found.calls = frozenset(names), {}, Counter() if look else None
    try:
        yield
    finally:
        _found.names, _found.made, _found.calls = before


def if_native(function: FunctionType, twin: FunctionType) -> Function:
    """What is called for a function that has this twin, which may be itself: a recursive one if it was
    found to be one."""
    code = function.__code__
    if (code.co_filename, code.co_qualname) not in _found.names:
        _look(twin.__code__)
        return twin
    key = code, id(function.__globals__), tuple(map(id, function.__closure__ or ()))
    if key not in _found.made:
        parts = twin.__code__, twin.__globals__, twin.__name__, twin.__defaults__, twin.__closure__
        body = functools.update_wrapper(FunctionType(*parts), twin)
        setattr(body, AS_IT_IS, True)  # its calls of itself are calls of `function`
        _found.made[key] = recursive(body, depth=most_calls())
    return _found.made[key]


def _look(code: CodeType) -> None:
    """Raise `CallsItself` for a function that has been called often, and by itself: in branches or loops
    that only run time knows, where code grows with each call, or very deep."""
    if _found.calls is None:
        return
    _found.calls[code] += 1
    trace = current_trace()
    if trace is None or _found.calls[code] % _OFTEN:
        return
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None and depth < _DEEP:
        frame = frame.f_back
        depth += frame.f_code is code
    if depth >= (_INSIDE if trace.conditional else _DEEP):
        raise CallsItself((code.co_filename, code.co_qualname))


class _Own:
    """What a recursive function keeps: its options, and its bodies while they are traced."""

    def __init__(self, depth: int, result_like: Any) -> None:
        self.depth, self.result_like = depth, result_like
        self.bodies: list[Body] = []

    def body(self, trace: Trace) -> Body | None:
        """The body that is being traced in `trace`, or around it."""
        for body in reversed(self.bodies):
            if body.trace is not None and body.trace.encloses(trace):
                return body
        return None

    def first(self, function: Function, args: Any, kwargs: Any) -> Any:
        """The call from outside."""
        expected = None if self.result_like is None else _end_like(self.result_like)
        body = Body(function, self.depth, expected, args, kwargs, _found.labels)
        self.bodies.append(body)
        _found.labels.append(body.label)
        try:
            return body.first()
        finally:
            self.bodies.pop()
            _found.labels.pop()


def _end_like(result_like: Any) -> End:
    """A result as the user says that it is."""
    leaves, tree = pytree.flatten(result_like)
    outs: list[Out | None] = [_like(leaf) for leaf in leaves]
    return End(result_like, tree, leaves, outs, [() for _ in outs])


def _like(leaf: Any) -> Out:
    if hasattr(leaf, "dtype") and not isinstance(leaf, (np.ndarray, np.generic, Tracer)):
        shape = tuple(leaf.shape)
        return Out(TensorType(shape, np.dtype(leaf.dtype)), None, not shape)
    if not is_traceable(leaf):
        complain(
            errors.TransformError,
            f"result_like has {describe(leaf)}",
            "give numbers, or jt.ShapeDtype((), dtype).",
        )
    return out_of(leaf)
