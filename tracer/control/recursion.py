"""`recursive`: a function of numbers that calls itself, as one function of native code.

Its body is traced once, as the region of an op; the calls of itself are ops in it. What type the result
has is found by tracing with a guess, until the guess comes true.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ...ir.opdef import OPS
from ...ir.record import record
from ...ir.types import I64, TensorType, dtype_name
from ..core.effects import advance, order_token
from ..core.specs import Spec, Static, is_array
from ..core.trace import Trace, current_trace, require_trace
from ..core.tracers import Tracer, as_value, weak_kind
from ..data import pytree
from ..data.callables import Function, check_callable, function_name
from ..data.promotion import weak_dtype
from ..messages import errors
from ..messages.errors import complain, describe
from ..messages.source import user_line
from ..messages.tracebacks import shortened
from .number_classes import Class, check_kept_exactly, classes_of, of_class, tag_of_class
from .regions import Out, TracedRegion, fits, have_effects, show_tree, trace_region

DEPTH = 10_000
AS_IT_IS = "_jitney_plain"  # an attribute of functions that autograph leaves as they are
_TRIES = 16
_TAG = Out(TensorType((), I64), None, True)


@shortened
def recursive(
    function: Function | None = None, *, depth: int = DEPTH, result_like: Any = None
) -> Any:
    """A function of numbers that calls itself: in compiled code a native function that does so.

        @jt.recursive
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)

        @jt.recursive
        def total(node, left, right, value):        # of a tree in arrays
            if node < 0:
                return 0.0
            return (value[node] + total(left[node], left, right, value)
                    + total(right[node], left, right, value))

    Numbers among the arguments may be traced, and have one type in all calls. Arrays are the same in all
    calls, and are only read; what else there is, is too. Outside of compiled functions it is the
    function itself.

    depth        how many calls may be inside of each other; RecursionError where there are more
    result_like  a tree of numbers like the result, where that is more than one number

    It has no derivatives. Under `jt.vmap` the examples come one after the other; on GPUs the interpreter
    runs it, in a callback.

    Raises jt.errors.CarryError where a type changes from call to call, jt.errors.TransformError where
    the function cannot be a native one: arrays that it assigns to, results that are no numbers.

    >>> recursive(lambda n: 2 * n)(4)
    8
    """
    if function is None:
        return functools.partial(recursive, depth=depth, result_like=result_like)
    check_callable(function, "recursive")
    if isinstance(depth, bool) or not isinstance(depth, int) or not 0 < depth <= 1_000_000:
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
        frame = own.frame(trace)
        if frame is None:
            return _first(function, own, args, kwargs)
        return frame.again(args, kwargs)

    return call


class _Found(threading.local):
    """Functions that were found to call themselves without end, by file and name, while they are traced
    as native ones; and what stands for them, by their code and cells."""

    def __init__(self) -> None:
        self.names: frozenset[tuple[str, str]] = frozenset()
        self.made: dict[Any, Function] = {}


_found = _Found()


@contextmanager
def natively(names: Collection[tuple[str, str]]) -> Iterator[None]:
    """Take these functions, given by file and name, for recursive ones."""
    before = _found.names, _found.made
    _found.names, _found.made = frozenset(names), {}
    try:
        yield
    finally:
        _found.names, _found.made = before


def if_native(function: FunctionType, twin: FunctionType) -> Function:
    """What is called for a function that has this twin, which may be itself: a recursive one if it was
    found to be one."""
    code = function.__code__
    if (code.co_filename, code.co_qualname) not in _found.names:
        return twin
    key = code, tuple(map(id, function.__closure__ or ()))
    if key not in _found.made:
        parts = twin.__code__, twin.__globals__, twin.__name__, twin.__defaults__, twin.__closure__
        body = functools.update_wrapper(FunctionType(*parts), twin)
        setattr(body, AS_IT_IS, True)  # its calls of itself are calls of `function`
        _found.made[key] = recursive(body)
    return _found.made[key]


NUMBERS = (Tracer, np.ndarray, np.generic, bool, int, float, complex)


class _Retyped(errors.Refusal):
    """A Python number takes the type that the function makes of it in its calls of itself."""

    def __init__(self, position: int, out: Out) -> None:
        self.position, self.out = position, out


class _Own:
    """What a recursive function keeps: its options, and its bodies while they are traced."""

    def __init__(self, depth: int, result_like: Any) -> None:
        self.depth, self.result_like = depth, result_like
        self.frames: list[_Frame] = []

    def frame(self, trace: Trace) -> _Frame | None:
        """The body that is being traced in `trace`, or around it."""
        for frame in reversed(self.frames):
            inner: Trace | None = trace
            while inner is not None:
                if inner is frame.trace:
                    return frame
                inner = inner.parent
        return None


@record(frozen=False)
class _Frame:
    """The body of a recursive function while it is traced."""

    name: str
    label: str
    tree: pytree.TreeDef
    leaves: list[Any]
    outs: list[Out | None]  # of the leaves that are numbers; None for what is the same in all calls
    result_tree: pytree.TreeDef
    results: list[Out]
    effects: bool
    classes: list[tuple[Class, ...]]  # of each result those that it can be of, if they are several
    found: Sequence[tuple[Class, ...]] = ()  # those that the body has, when it has been traced
    trace: Trace | None = None
    inside: Sequence[Any] = ()

    def again(self, args: Any, kwargs: Any) -> Any:
        """The function calls itself."""
        leaves, tree = pytree.flatten((args, kwargs))
        if tree != self.tree:
            complain(
                errors.CarryError,
                f"{self.name} calls itself with arguments like {show_tree(tree)}, and was called with "
                f"{show_tree(self.tree)}",
                "write its calls alike.",
            )
        numbers = []
        for k, leaf in enumerate(leaves):
            if self.outs[k] is None:
                self._check_same(self.leaves[k], self.inside[k], leaf)
            else:
                numbers.append(self._number(k, leaf))
        token = [order_token()] if self.effects else []
        dtypes = tuple(dtype_name(out.type.dtype) for out in self.types)
        attrs = {"label": self.label, "dtypes": dtypes}
        builder = require_trace().builder
        with builder.at(user_line(2)):
            made = builder.append(OPS["recurse"], [*numbers, *token], attrs).results
        advance(made)
        return self.made(made)

    @property
    def types(self) -> list[Out]:
        """The types of what the op gives: the results, and of which class those are that need it."""
        return [*self.results, *(_TAG for classes in self.classes if classes)]

    def made(self, values: Sequence[Value]) -> Any:
        """The result, of what the op gives."""
        count = len(self.results)
        numbers = [out.wrap(v) for v, out in zip(values[:count], self.results, strict=True)]
        tags = iter(values[count:])
        for number, classes in zip(numbers, self.classes, strict=True):
            if classes:
                of_class(number, next(tags), classes)
        return pytree.unflatten(self.result_tree, numbers)

    def with_classes(self, result: Any) -> Any:
        """What the body gives: its result, and of which class those numbers are that need it."""
        leaves = pytree.flatten(result)[0]
        are_numbers = len(leaves) == len(self.results) and not any(map(np.ndim, leaves))
        if not are_numbers or not all(isinstance(leaf, NUMBERS) for leaf in leaves):
            return result  # refused as it is
        self.found = [classes_of(leaf) for leaf in leaves]
        if not any(self.classes):
            return result
        tags = []
        for leaf, out, classes in zip(leaves, self.results, self.classes, strict=True):
            if classes:
                check_kept_exactly(leaf, out.type.dtype)
                tags.append(tag_of_class(leaf))
        return result, tags

    def _number(self, position: int, leaf: Any) -> Value:
        out = self.outs[position]
        assert out is not None
        if not isinstance(leaf, NUMBERS):
            self._refuse_change(out, leaf)
        weak, value = weak_kind(leaf), as_value(leaf)
        if weak is not None and out.weak is None and fits(weak, out.type.dtype):
            return as_value(leaf, out.type.dtype)
        if value.tensor == out.type and weak == out.weak:
            return value
        strong = weak is None and not value.shape
        if strong and out.weak is not None and fits(out.weak, value.dtype):
            raise _Retyped(position, Out(value.tensor, None, True))
        self._refuse_change(out, leaf)

    def _refuse_change(self, out: Out, leaf: Any) -> NoReturn:
        complain(
            errors.CarryError,
            f"{self.name} was called with {out}, and calls itself with {describe(leaf)} in its place",
            "convert one of them, so that the argument has one type in all calls.",
            operands={"argument": leaf},
        )

    def _check_same(self, before: Any, inside: Any, leaf: Any) -> None:
        same = leaf is before or leaf is inside
        if isinstance(leaf, Tracer) and isinstance(inside, Tracer):
            owner = inside._storage.trace
            same = require_trace().lift(inside.value, owner) is as_value(leaf)
        elif not is_array(leaf) and not is_array(before):
            same = same or _equal(leaf, before)
        if same:
            return
        complain(
            errors.CarryError,
            f"{self.name} calls itself with another {type(leaf).__name__} than it was called with",
            "pass the same array, or object, at each call, and numbers that tell which part of it is "
            "meant.",
            operands={"argument": leaf},
        )


def _equal(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False


def _first(function: Function, own: _Own, args: Any, kwargs: Any) -> Any:
    """The call from outside: trace the body, and append the op."""
    leaves, tree = pytree.flatten((args, kwargs))
    types = [_number_type(leaf) for leaf in leaves]
    frame, region = _settled(function, own, leaves, tree, types)
    trace = require_trace()
    captured = region.captured
    numbers = [
        as_value(leaf, out.type.dtype)
        for leaf, out in zip(leaves, frame.outs, strict=True)
        if out is not None
    ]
    token = [order_token()] if frame.effects else []
    count = len(numbers)
    body = region.close(
        captured,
        [*region.values, *(None for _ in token)],
        [*(out.type for out in frame.types), *(None for _ in token)],
        captures_first=True,
        token_at=count if token else None,
    )
    attrs = {"consts": len(captured), "label": frame.label, "depth": own.depth}
    with trace.builder.at(user_line(2)):
        op = trace.builder.append(OPS["recursion"], [*captured, *numbers, *token], attrs, [body])
    advance(op.results)
    return frame.made(op.results)


def _number_type(leaf: Any) -> Out | None:
    """The type of a number that differs from call to call; None for what does not."""
    if not isinstance(leaf, NUMBERS):
        return None
    if np.ndim(leaf):
        return None
    value = as_value(leaf)
    return Out(value.tensor, weak_kind(leaf), True)


def _guesses(own: _Own) -> list[tuple[Any, list[Out]]]:
    """Results that the function may have, as a tree and the types of its leaves."""
    if own.result_like is not None:
        leaves, tree = pytree.flatten(own.result_like)
        return [(tree, [_like(leaf) for leaf in leaves])]
    tree = pytree.flatten(0)[1]
    return [(tree, [Out(TensorType((), weak_dtype(k)), k, True)]) for k in "ifb"]


def _like(leaf: Any) -> Out:
    if hasattr(leaf, "dtype") and not isinstance(leaf, (np.ndarray, np.generic, Tracer)):
        return Out(TensorType(tuple(leaf.shape), np.dtype(leaf.dtype)), None, True)
    found = _number_type(leaf)
    if found is None:
        complain(
            errors.TransformError,
            f"result_like has {describe(leaf)}",
            "give numbers, or jt.ShapeDtype((), dtype).",
        )
    return found


def _settled(
    function: Function, own: _Own, leaves: list[Any], tree: Any, outs: list[Out | None]
) -> tuple[_Frame, TracedRegion]:
    """The body, traced until its results have the types that its calls of itself have."""
    failure: Exception | None = None
    name = function_name(function)
    label = "".join(c if c.isalnum() else "_" for c in name)
    for result_tree, results in _guesses(own):
        effects = False
        classes: list[tuple[Class, ...]] = [() for _ in results]
        for _ in range(_TRIES):
            frame = _Frame(name, label, tree, leaves, outs, result_tree, results, effects, classes)
            try:
                region = _traced(function, own, frame)
            except _Retyped as other:
                outs = [*outs[: other.position], other.out, *outs[other.position + 1 :]]
                continue
            except (errors.CarryError, errors.TransformError) as error:
                failure = failure or error
                break
            _check_results(name, region, result_tree, bool(frame.found) and any(classes))
            before = results, effects
            results = region.outs[: len(results)]
            effects = effects or have_effects([region])
            if (results, effects) != before:
                continue
            # Which classes there are can be told when calls have the types that results have.
            more = [tuple(dict.fromkeys(a + b)) for a, b in zip(classes, frame.found, strict=True)]
            if more == classes or _are_examples():
                return frame, region
            classes = more
    assert failure is not None
    if own.result_like is None:
        failure.add_note(
            f"{name} calls itself, and was taken to return one number; for more of them write "
            "@jt.recursive(result_like=(0.0, 0))."
        )
    raise failure


def _are_examples() -> bool:
    """Whether numbers are elements of arrays in the end, which have no classes."""
    trace: Trace | None = require_trace()
    while trace is not None and trace.what != "vmap":
        trace = trace.parent
    return trace is not None


def _check_results(
    name: str, region: TracedRegion, tree: pytree.TreeDef, has_classes: bool
) -> None:
    if (region.tree.child(0) if has_classes else region.tree) != tree:
        complain(
            errors.CarryError,
            f"{name} returns {show_tree(region.tree)}, and calls itself",
            "tell what it returns: @jt.recursive(result_like=(0.0, 0)).",
        )
    for out in region.outs:
        if out.type.shape:
            complain(
                errors.TransformError,
                f"the recursive function {name} returns an array, {out}",
                "return numbers; write into no array.",
            )
    if region.mutated:
        complain(
            errors.OuterMutationError,
            f"the recursive function {name} assigns to its arguments",
            "return numbers.",
        )


def _traced(function: Function, own: _Own, frame: _Frame) -> TracedRegion:
    specs: list[Spec | Static] = []
    for out in frame.outs:
        if out is not None:
            specs.append(Spec(out.type, out.weak, True))
    numbers = pytree.flatten((tuple(range(len(specs))), {}))[1]

    @functools.wraps(function, updated=())
    def body(*values: Any) -> Any:
        given = iter(values)
        inside = [
            leaf if out is None else next(given)
            for leaf, out in zip(frame.leaves, frame.outs, strict=True)
        ]
        frame.trace, frame.inside = current_trace(), inside
        require_trace().wraps = True
        args, kwargs = pytree.unflatten(frame.tree, inside)
        return frame.with_classes(function(*args, **kwargs))

    own.frames.append(frame)
    try:
        return trace_region(body, specs, numbers, f"the body of {frame.name}")
    finally:
        own.frames.pop()
