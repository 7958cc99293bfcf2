"""`trace_function`: call a function with tracers and get its graph.

Used by jit (an outermost trace), by the transformations (eager or nested traces) and by control
flow (the regions of cond and while).
"""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ...ir.graph import Graph, Op, Value
from ...ir.opdef import OPS
from ...ir.record import replace
from ...ir.types import I64, TensorType, is_inexact, type_of
from ...runtime.cuda.array import DeviceArray
from ..data import pytree
from ..data.accept import refuse
from ..data.objects import kind_of, parameters
from ..data.opened import opened
from ..messages import errors
from ..messages.errors import complain
from ..messages.expressions import tell_of_traced
from ..messages.scopes import own_names
from .kept import settle
from .specs import Same, Spec, Static
from .threaded_state import BorrowedStates, refuse_rebound, refuse_written
from .trace import (
    Array,
    Capture,
    EagerBuilder,
    Trace,
    TraceOptions,
    current_trace,
    require_trace,
    tracing,
)
from .traced import LastingView as LastingView
from .traced import Presented as Presented
from .traced import Result as Result
from .traced import Traced as Traced
from .tracers import Storage, Tracer, as_value, parameter, weak_kind

_FOLD_BYTES = 4096  # larger arrays stay hidden parameters: native code need not hold their data
_IMMUTABLE = (
    int,
    float,
    complex,
    str,
    bytes,
    np.generic,
    np.dtype,
    enum.Enum,
    type,
    FunctionType,
    BuiltinFunctionType,
    np.ufunc,
    ModuleType,
    range,
    slice,
    type(Ellipsis),
    type(NotImplemented),
)


# Makes autograph's twin of a function. Autograph lies above, and `tracer/__init__` puts it here.
_twins: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = []


def serve_twins(make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Let `make` give what is called in place of a function that is traced."""
    _twins[:] = [make]


def twin_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """What the current trace calls in place of a function."""
    trace = require_trace()
    twin = trace.options.autograph and (trace.converts or not trace.eager)
    return _twins[0](function) if twin else function


LEFT_REGION = "_jitney_left_region"  # an attribute of exceptions, see `tries`


def _mark(error: Exception, conditional: bool) -> None:
    """Python raised it where it is not known whether the code there runs."""
    if conditional:
        with suppress(AttributeError):  # of exceptions with slots
            setattr(error, LEFT_REGION, True)


@contextmanager
def _alone(trace: Trace) -> Iterator[None]:
    """What a function that is compiled begins with: no names around it, and the state of
    `np.errstate` in which it has to end."""
    with own_names(trace.graph), np.errstate(all="warn"):
        before = np.geterr()
        yield
        if np.geterr() != before:
            complain(
                errors.ImpureFunctionError,
                "np.seterr changes how NumPy tells of floating-point errors after the call, too: it "
                "would do so once, while the function is traced",
                'write `with np.errstate(divide="raise"):` around what it is for.',
            )


def _explain(error: Exception, trace: Trace) -> None:
    """Raise what went wrong where another error hides it; tell of the traced values in Python's own."""
    if isinstance(error, (TypeError, ValueError)):
        if isinstance(error.__cause__, errors.JitneyError):
            # NumPy's "setting an array element with a sequence" would hide what went wrong.
            raise error.__cause__ from None
        if trace.index_error is not None and "got 'Tracer(" in str(error):
            raise trace.index_error from None  # NumPy's own words for `np.zeros(n)`
    elif isinstance(error, errors.JitneyError):
        return
    tell_of_traced(error)
    _mark(error, trace.conditional)


def trace_function(
    function: Callable[..., Any],
    specs: Sequence[Spec | Static | Same],
    tree: pytree.TreeDef,
    *,
    what: str = "jit",
    eager: bool = False,
    concrete: Sequence[Array] | None = None,
    name: str | None = None,
    values_only: bool = True,
    views: bool = True,
    refuse_as: Callable[..., Any] | None = None,
    conditional: bool = False,
    borrowed: BorrowedStates | None = None,
    options: TraceOptions | None = None,
    sharing: bool = False,
    adapted: bool = False,
    converts: bool = False,
    present: Callable[[Any], Any] | None = None,
    lent: Sequence[Value] = (),
) -> Traced:
    """Call `function` with tracers for its leaves and return what it did.

    `tree` unflattens the leaves to `(args, kwargs)`; `specs` tells what each leaf is. An eager
    trace needs `concrete`, the values of the traced leaves. With `values_only` every leaf of the
    result becomes an output of the graph; without it (as jit wants) arguments that are returned as
    they came, and results that are no arrays, do not; nor, with `views`, do views of arguments
    that NumPy can make. `refuse_as` is the function that error messages name. What is `conditional`
    may run never or often each time that the enclosing trace's graph runs; what is not may be given
    `borrowed`, and its caller then writes back what was `advanced`. `options` are those of the
    enclosing trace unless they are given. Where they ask for autograph its twin is called in place of
    `function`, unless what that calls is `adapted` already; in eager traces only if one `converts`. With
    `sharing`, leaves that are views of one array made inside come back as such. `present` makes the
    result of what the function returns. `lent` are the values of the enclosing trace for which the
    graph's parameters stand, if it is run once and with these.
    """
    name = name or str(getattr(function, "__name__", what))
    settle(current_trace())
    trace = Trace(Graph(name), parent=current_trace(), eager=eager, what=what, options=options)
    trace.conditional, trace.borrowed = conditional, borrowed
    trace.converts = trace.converts or converts
    trace.origins = [] if sharing else trace.origins
    alone = trace.parent is None and not eager
    with tracing(trace), borrowed or nullcontext(), _alone(trace) if alone else nullcontext():
        leaves = _parameters(trace, specs, concrete)
        # Not those that have derivatives, which would be lost if Python were to know them.
        pairs = zip(trace.graph.params, lent, strict=False)
        trace.lent.update(
            (p, v) for p, v in pairs if isinstance(v.type, TensorType) and not is_inexact(v.dtype)
        )
        watched = trace.watched if conditional else None
        before = None if watched is None else watched.snapshot()
        args, kwargs = pytree.unflatten(tree, _held(specs, leaves))
        called = function if adapted else twin_of(function)
        try:
            with watched.undone(before) if watched is not None else nullcontext():
                out = called(*args, **kwargs)
        except Exception as error:
            _explain(error, trace)
            raise
        if present is not None:
            out = present(out)
        for check in trace.checks:
            check()
        if trace.parent is not None:
            trace.parent.checks += trace.checks
        refuse_lazy(out, refuse_as or function, what)
        if watched is not None:
            refuse_rebound(trace, before)
        if conditional:
            refuse_written(trace)
        if values_only:
            out = opened_results(out)
        out_leaves, out_tree = pytree.flatten(out)
        outputs = _Outputs(trace, values_only, views)
        outputs.shared = _shared(out_leaves) if sharing else set()
        results = [outputs.add(leaf) for leaf in out_leaves]
        mutated = _mutated(leaves)
        trace.graph.outputs = outputs.values + [tracer._storage.value for tracer in mutated]
        parameters = [tracer._storage.parameter for tracer in mutated]
        if trace.parent is not None:
            settle(trace, trace.graph.outputs)
    del out, out_leaves, outputs, args, kwargs, leaves
    if alone:
        _settle_captures(trace)
    if trace.lengths:
        _lengths_last(trace)
    if not values_only:
        results = [_result_is_capture(trace, result) for result in results]
    return Traced(
        trace.graph,
        out_tree,
        results,
        trace.captures,
        [p for p in parameters if p is not None],
        trace.builder.arrays if isinstance(trace.builder, EagerBuilder) else None,
        trace.token,
        advanced=[] if borrowed is None else borrowed.advanced,
        casts=trace.casts,
        lengths=tuple(trace.lengths),
    )


def _lengths_last(trace: Trace) -> None:
    """The parameters that are lengths come behind what is captured."""
    lengths = [count._storage.value for count in trace.lengths.values()]
    others = [value for value in trace.graph.params if value not in lengths]
    trace.graph.params = [*others, *lengths]
    for index, value in enumerate(trace.graph.params):
        value.index = index


def opened_results(out: Any) -> Any:
    """What a function returns to a transformation, with the objects in it opened that hold values of the
    current trace. Others are there outside of it, too."""
    leaves, tree = pytree.flatten(out)
    if not any(kind_of(leaf) is not None for leaf in leaves):
        return out
    trace = require_trace()
    return pytree.unflatten(
        tree, [opened(leaf) if _holds_values(leaf, trace) else leaf for leaf in leaves]
    )


def _holds_values(leaf: Any, trace: Trace) -> bool:
    if kind_of(leaf) is None:
        return False
    if trace.watched is not None and trace.watched.has(leaf):
        return False
    arrays = [p.array for p in parameters(leaf)]
    return any(isinstance(x, Tracer) and x._storage.trace is trace for x in arrays)


def _parameters(
    trace: Trace, specs: Sequence[Spec | Static | Same], concrete: Sequence[Array] | None
) -> list[Any]:
    leaves: list[Any] = []
    values = iter(concrete or ())
    for spec in specs:
        if isinstance(spec, Spec):
            leaves.append(
                parameter(
                    trace,
                    spec.type,
                    spec.name,
                    weak=spec.weak,
                    scalar=spec.scalar,
                    writeable=spec.writeable,
                    strides=spec.strides,
                    concrete=next(values) if trace.eager else None,
                    active=spec.active,
                )
            )
        else:
            leaves.append(spec.value if isinstance(spec, Static) else leaves[spec.leaf])
    return leaves


def _held(specs: Sequence[Spec | Static | Same], leaves: Sequence[Any]) -> list[Any]:
    """The leaves as the function sees them: objects whose state was taken out, with their state."""
    objects: list[Any] = []
    for spec, leaf in zip(specs, leaves, strict=True):
        if isinstance(spec, Same):
            objects.append(objects[spec.leaf])
        else:
            holder = spec.holder if isinstance(spec, Spec) else None
            objects.append(leaf if holder is None else holder(leaf))
    return objects


def _mutated(leaves: Sequence[Any]) -> list[Tracer]:
    tracers = {id(x._storage): x for x in leaves if isinstance(x, Tracer) and x._storage.version}
    return list(tracers.values())


def refuse_lazy(out: Any, function: Callable[..., Any], what: str = "jit") -> None:
    """Raise TransformError for a result that has not been computed yet."""
    if isinstance(out, Iterator) or inspect.isasyncgen(out) or inspect.iscoroutine(out):
        if inspect.isgenerator(out) or inspect.iscoroutine(out):
            out.close()
        name = getattr(function, "__qualname__", "the function")
        complain(
            errors.TransformError,
            f"{name} is a generator or coroutine, or gives an iterator: nothing has run of it when the "
            f"call returns, so {what} has nothing to trace",
            "return a list or a tuple of arrays from a plain function.",
        )


class _Outputs:
    """Collects the leaves of a result as outputs of the graph; equal tracers share one output."""

    def __init__(self, trace: Trace, values_only: bool, views: bool) -> None:
        self.trace = trace
        self.views = views
        self.values_only = values_only
        self.values: list[Value] = []
        self.shared: set[Storage] = set()  # of which several leaves are views
        self._wholes: dict[Storage, Result] = {}
        self._results: dict[int, Result] = {}
        self._leaves: list[Any] = []  # keeps ids unique

    def add(self, leaf: Any) -> Result:
        result = self._results.get(id(leaf))
        if result is None and isinstance(leaf, Presented):
            array = self.add(leaf.value)
            result = replace(array, views=(leaf.view,), scalar=False)
        if result is None:
            result = self._results[id(leaf)] = self._result(leaf)
            self._leaves.append(leaf)
        return result

    def _result(self, leaf: Any) -> Result:
        if isinstance(leaf, Tracer):
            if not self.values_only and leaf._storage.trace is self.trace:
                result = _argument_itself(leaf)
                if result is not None and (self.views or not result.views):
                    return result
            if leaf._storage in self.shared and (steps := numpy_views(leaf)) is not None:
                return replace(self._whole(leaf), views=steps)
            return self._output(as_value(leaf), leaf.weak, leaf.scalar, leaf._strides)
        if self.values_only:
            weak = weak_kind(leaf)
            return self._output(as_value(leaf), weak, not isinstance(leaf, np.ndarray))
        if isinstance(leaf, np.ndarray):
            return self._output(as_value(leaf), None, False)
        if isinstance(leaf, _IMMUTABLE):
            return Result(static=leaf)
        what = f"a result of type {type(leaf).__name__}"
        remedy = "return arrays and numbers, or teach jitney the type with jt.register_pytree"
        return refuse(leaf, *getattr(leaf, "as_result", (what, remedy)))

    def _whole(self, leaf: Tracer) -> Result:
        """The array that a leaf is a view of."""
        while leaf._view is not None:
            leaf = leaf._view.base
        whole = self._wholes.get(leaf._storage)
        if whole is None:
            whole = self._output(as_value(leaf), leaf.weak, leaf.scalar, leaf._strides)
            self._wholes[leaf._storage] = whole
        return whole

    def _output(
        self,
        value: Value,
        weak: str | None,
        scalar: bool,
        strides: tuple[int, ...] | None = None,
    ) -> Result:
        self.values.append(value)
        return Result(output=len(self.values) - 1, weak=weak, scalar=scalar, strides=strides)


def _shared(leaves: Sequence[Any]) -> set[Storage]:
    """The arrays made inside that several of the leaves are, or are views of."""
    tracers = {id(x): x for x in leaves if isinstance(x, Tracer) and not x.scalar}
    storages = [x._storage for x in tracers.values()]
    return {s for s in storages if s.parameter is None and storages.count(s) > 1}


def _argument_itself(x: Tracer) -> Result | None:
    """How to return `x` if it is an argument or a view of one that NumPy can make, else None."""
    parameter, steps = x._storage.parameter, numpy_views(x)
    if parameter is None or steps is None:
        return None
    return Result(argument=parameter, views=steps, weak=x.weak, scalar=x.scalar)


def numpy_views(x: Tracer, any_length: bool = False) -> tuple[Callable[[Array], Array], ...] | None:
    """What NumPy does to make `x` of the array that it is a view of; None if it cannot. With
    `any_length` that holds where axes have other lengths when the program runs."""
    steps = []
    view = x._view
    while view is not None:
        step = (view.numpy, view.base) if not any_length else view.subscript
        if step is None or step[0] is None:
            return None
        steps.append(step[0])
        view = step[1]._view
    return tuple(reversed(steps))


def _result_is_capture(trace: Trace, result: Result) -> Result:
    """A captured array that is returned unchanged is returned itself."""
    if result.output is None or result.scalar:
        return result
    value = trace.graph.outputs[result.output]
    if value.op is None and any(value is capture.param for capture in trace.captures):
        return Result(argument=value.index)
    return result


# Captured arrays that nobody else can reach were made by the traced function itself (np.arange(n),
# np.array([1, 2])). Nobody can change them later, so they are constants. Arrays that the user's
# code changed while it was traced are constants too: each use has seen its own state.


def _references(capture: Capture) -> int:
    return sys.getrefcount(capture.outer)


def _base_references(capture: Capture) -> int:
    return sys.getrefcount(capture.outer.base)


_ALONE = _references(Capture(np.empty(1), None))  # type: ignore[arg-type]
_BASE_ALONE = _base_references(Capture(np.empty(1)[:], None))  # type: ignore[arg-type]


def is_private(capture: Capture, count: int = 1) -> bool:
    """Whether the traced function made the array and nobody else can reach it. `count` captures of
    the trace refer to it."""
    if not isinstance(capture.outer, np.ndarray) or _references(capture) != _ALONE + count - 1:
        return False
    base = capture.outer.base
    if base is None:
        return True
    del base
    return type(capture.outer.base) is np.ndarray and _base_references(capture) == _BASE_ALONE


def _settle_captures(trace: Trace) -> None:
    uses: dict[int, int] = {}
    for capture in trace.captures:
        uses[id(capture.outer)] = uses.get(id(capture.outer), 0) + 1
    captures: list[Capture] = []
    constants: list[Op] = []
    for capture in trace.captures:
        count = uses[id(capture.outer)]
        private = is_private(capture, count)  # before a variable here refers to it
        array, snapshot = capture.outer, capture.snapshot
        if isinstance(array, DeviceArray):
            captures.append(capture)
            continue
        assert isinstance(array, np.ndarray) and snapshot is not None
        changed = count > 1 or snapshot.tobytes() != array.tobytes()
        ops = None
        if changed or private:
            native = snapshot.astype(capture.param.dtype, copy=False)  # of any order of bytes
            ops = _constant_ops(capture.param, native)
        capture.private = changed or private
        if ops is None and changed:
            capture.outer = snapshot
        if ops is None:
            captures.append(capture)
        else:
            constants += ops
        capture.snapshot = None
    explicit = len(trace.graph.params) - len(trace.captures)
    trace.graph.params[explicit:] = [capture.param for capture in captures]
    for index, value in enumerate(trace.graph.params):
        value.index = index
    trace.graph.ops[:0] = constants
    trace.captures = captures


def _constant_ops(value: Value, array: Array) -> list[Op] | None:
    """Ops whose last result is `value`, now a constant; None if it is too large for the code."""
    if array.size > 1 and _is_uniform(array):
        scalar = _constant(array.reshape(-1)[:1].reshape(()))
        scalar.results = (Value(type_of(scalar.attrs["value"]), scalar, 0),)
        attrs = {"shape": value.shape, "dims": ()}
        ops = [scalar, Op(OPS["broadcast"], scalar.results, attrs)]
    elif (axis := _counts_along(array)) is not None:
        ops = [Op(OPS["iota"], (), {"shape": array.shape, "dtype": array.dtype, "axis": axis})]
    elif array.nbytes > _FOLD_BYTES and _is_lower_triangle(array):
        counts = [
            Op(OPS["iota"], (), {"shape": array.shape, "dtype": I64, "axis": d}) for d in (0, 1)
        ]
        for op in counts:
            op.results = (Value(TensorType(array.shape, I64), op, 0),)
        rows, columns = (op.results[0] for op in counts)
        ops = [*counts, Op(OPS["le"], (columns, rows), {})]
    elif array.nbytes <= _FOLD_BYTES:
        ops = [_constant(np.ascontiguousarray(array).reshape(array.shape))]
    else:
        return None
    value.op, value.index = ops[-1], 0
    ops[-1].results = (value,)
    return ops


def _is_lower_triangle(array: Array) -> bool:
    """Whether an array is np.tri's: true up to the diagonal, the mask of causal attention."""
    if array.dtype != np.bool_ or array.ndim != 2:
        return False
    return np.array_equal(array, np.tri(*array.shape, dtype=np.bool_))


def _counts_along(array: Array) -> int | None:
    """The axis along which an integer array is 0, 1, 2, ...: what np.arange and np.indices make."""
    if array.dtype.kind not in "iu" or array.size < 2 or array.flat[0] != 0:
        return None
    for axis, n in enumerate(array.shape):
        if n > 1 and array.flat[-1] == n - 1:
            count = np.arange(n).reshape([-1 if d == axis else 1 for d in range(array.ndim)])
            if bool((array == count).all()):
                return axis
    return None


def _constant(array: Array) -> Op:
    array = array.copy()
    array.setflags(write=False)
    return Op(OPS["constant"], (), {"value": array})


def _is_uniform(array: Array) -> bool:
    flat = array.reshape(-1).view(f"V{array.itemsize}")
    return bool((flat == flat[0]).all())
