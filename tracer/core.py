"""Tracers and traces: how a call of a Python function becomes a graph.

A `Trace` is one tracing in progress. A `Tracer` stands for an array in it and appends ops to the
trace's graph. Arrays are mutable in NumPy and values are not in the graph: a tracer refers to a
`Storage`, a cell that holds the current value, directly or through a chain of views. Writing
through a view computes a new value for the storage, and every other view of it reads the new one.

    with tracing(Trace(Graph("f"))) as trace:
        x = trace.parameter(TensorType((8,), F32))
        y = emit("mul", as_value(x), as_value(x))      # a Tracer

Traces nest: a loop body or a function to be differentiated is traced as a sub-trace. A value of an
enclosing trace that is used inside becomes a hidden parameter of the inner graph (`captures`).
An *eager* trace computes every op with its NumPy reference as it is appended, so Python may branch
on its values.

The surface of a Tracer (operators, methods, NumPy's protocols) is attached by the modules that
implement it, see `method`.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from weakref import ReferenceType

import numpy as np

from ..ir.build import Builder
from ..ir.graph import Graph, Op, SourceLine, Value
from ..ir.types import BOOL, C128, F64, I64, TOKEN, TensorType, is_inexact, is_supported, type_of
from . import errors
from .accept import check_array as check_array
from .accept import refuse as refuse
from .errors import complain
from .layout import c_strides as c_strides
from .layout import k_order as k_order
from .source import user_line

Array = np.ndarray[Any, Any]
WEAK_DTYPES = {"b": BOOL, "i": I64, "f": F64, "c": C128}
_WEAK_OF: dict[type, str] = {bool: "b", int: "i", float: "f", complex: "c"}

_current: ContextVar[Trace | None] = ContextVar("jitney_trace", default=None)
_active = ctypes.c_int64(0)  # traces going on in the process; native calls read it
_active_lock = threading.Lock()


def current_trace() -> Trace | None:
    """The trace that this thread (or context) is recording, or None outside of tracing."""
    return _current.get()


class EagerBuilder(Builder):
    """A builder that computes each op as it is appended: `arrays[value]` is its ndarray.

    `active` are the float and complex values that depend on what is differentiated: they must not
    become plain numbers unnoticed, which would cut them off from the derivative.
    """

    def __init__(self, graph: Graph, loc: SourceLine | None = None) -> None:
        super().__init__(graph, loc)
        self.arrays: dict[Value, Array] = {}
        self.active: set[Value] = set()
        self.given: tuple[Any, ...] | None = None  # the results of the next op, if they are known

    def appended(self, op: Op) -> None:
        from ..ir.interpreter import evaluate_op

        results, self.given = self.given, None
        if results is None:
            results = evaluate_op(op, [self.arrays.get(v) for v in op.operands])
        self.arrays.update(zip(op.results, results, strict=True))
        active = self.active
        if active and op.name != "stop_gradient" and any(v in active for v in op.operands):
            active.update(v for v in op.results if v.type is not TOKEN and is_inexact(v.dtype))


class Capture:
    """A value from outside that a trace reads: hidden parameter `param`.

    `outer` is a Value of the parent trace, or for an outermost trace the captured ndarray itself,
    which is `private` if the traced function made it and nobody else can reach it.
    """

    __slots__ = ("outer", "param", "private", "snapshot")

    def __init__(self, outer: Value | Array, param: Value, snapshot: Array | None = None) -> None:
        self.outer = outer
        self.param = param
        self.snapshot = snapshot
        self.private = False


class Trace:
    """One tracing in progress. Enter it with `tracing`."""

    def __init__(
        self, graph: Graph, *, parent: Trace | None = None, eager: bool = False, what: str = "jit"
    ) -> None:
        from . import functions  # noqa: F401  (they give tracers their operators)

        self.graph = graph
        self.builder: Builder = EagerBuilder(graph) if eager else Builder(graph)
        self.parent = parent
        self.eager = eager
        self.what = what  # the word for error messages: "jit", "grad", "while_loop body", ...
        self.done = False
        self.index_error: Exception | None = None  # the latest refusal of a tracer to be an index
        self.captures: list[Capture] = []
        self.token: Value | None = None  # the latest order token of effectful ops
        self.adoption: Any = None  # an autograph.adoption.Adoption: what may be assigned to inside
        self.numbers: dict[Any, Value] = {}  # Python numbers that were made into arrays
        self._lifted: dict[Value, Value] = {}
        self._arrays: dict[int, list[Capture]] = {}  # captures of an ndarray, by its id

    def parameter(
        self,
        type: TensorType,
        name: str = "",
        *,
        weak: str | None = None,
        scalar: bool = False,
        writeable: bool = True,
        strides: tuple[int, ...] | None = None,
        concrete: Array | None = None,
        active: bool = False,
    ) -> Tracer:
        """A new graph parameter and its tracer. `strides` count elements; default C order."""
        value = self.graph.add_param(type, name)
        if isinstance(self.builder, EagerBuilder):
            assert concrete is not None, "an eager trace needs a value for each parameter"
            self.builder.arrays[value] = concrete
            if active:
                self.builder.active.add(value)
        storage = Storage(self, value, writeable, parameter=value.index)
        tracer = Tracer(storage, type, weak, scalar or weak is not None)
        if strides is not None:
            tracer._strides = strides
        return tracer

    def capture(self, array: Array) -> Value:
        """The value of an ndarray from outside. It is read again at each call, not frozen.

        An array that the user's own code changes while tracing (a NumPy buffer filled step by step)
        is captured once per state.
        """
        if self.parent is not None:
            return self.lift(self.parent.capture(array), self.parent)
        if self.eager:
            return self.builder.const(array)
        known = self._arrays.setdefault(id(array), [])
        if known and _same_bits(known[-1].snapshot, array):
            return known[-1].param
        param = self.graph.add_param(type_of(array))
        capture = Capture(array, param, array.copy())
        known.append(capture)
        self.captures.append(capture)
        return param

    def lift(self, outer: Value, owner: Trace) -> Value:
        """The value, in this trace, of `outer`, a value of the enclosing trace `owner`."""
        if owner is self:
            return outer
        assert self.parent is not None
        outer = self.parent.lift(outer, owner)
        inner = self._lifted.get(outer)
        if inner is None:
            inner = self._lifted[outer] = self.graph.add_param(outer.type, outer.name)
            self.captures.append(Capture(outer, inner))
            if isinstance(self.builder, EagerBuilder):
                assert isinstance(self.parent.builder, EagerBuilder), "eager inside a graph trace"
                self.builder.arrays[inner] = self.parent.builder.arrays[outer]
                if outer in self.parent.builder.active:
                    self.builder.active.add(inner)
        return inner

    def adopt(self, storage: Storage) -> bool:
        """Take over an array of an enclosing trace to assign to it, where autograph traces."""
        trace: Trace | None = self
        while trace is not storage.trace:
            if trace is None or trace.adoption is None:
                return False
            trace = trace.parent
        self.adoption.adopt(storage)
        return True

    def encloses(self, other: Trace | None) -> bool:
        """Whether `other` is this trace or nested in it."""
        while other is not None:
            if other is self:
                return True
            other = other.parent
        return False


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the current one. At the end it is done: its tracers are dead."""
    with _active_lock:
        _active.value += 1
    try:
        reset = _current.set(trace)
        try:
            yield trace
        finally:
            _current.reset(reset)
            trace.done = True
    finally:
        with _active_lock:
            _active.value -= 1


def require_trace() -> Trace:
    trace = _current.get()
    if trace is None:
        complain(
            errors.LeakedTracerError,
            "a tracer was used outside of the call that it stands for",
            "return the array from the function instead of storing it in a global, an attribute, "
            "a list or a cache.",
        )
    return trace


class Storage:
    """A mutable cell: the array that views share. `parameter` is its index if it is an argument.

    `perhaps` are storages that this one may be, depending on which way run time takes (autograph).
    """

    __slots__ = ("trace", "value", "version", "writeable", "parameter", "perhaps", "__weakref__")

    def __init__(
        self, trace: Trace, value: Value, writeable: bool = True, parameter: int | None = None
    ) -> None:
        self.trace = trace
        self.value = value
        self.version = 0  # counts writes
        self.writeable = writeable
        self.parameter = parameter
        self.perhaps: tuple[ReferenceType[Storage], ...] = ()


class ViewStep:
    """How a view reads its base and writes to it. See `views.view`."""

    __slots__ = ("base", "forward", "inverse", "numpy", "version", "value")

    def __init__(
        self,
        base: Tracer,
        forward: Callable[[Builder, Value], Value],
        inverse: Callable[[Builder, Value, Value], Value] | None,
        numpy: Callable[[Array], Array] | None,
        value: Value,
    ) -> None:
        self.base = base
        self.forward = forward
        self.inverse = inverse
        self.numpy = numpy
        self.version = base._storage.version
        self.value = value


class Tracer:
    """Stands for an array while a function is traced.

    `weak` is None, or "b", "i", "f", "c" for a Python bool, int, float, complex: it promotes as one
    (NEP 50). `scalar` tells a NumPy scalar (immutable, what a reduction to 0-d gives) from a 0-d array.
    """

    __slots__ = ("_storage", "_view", "_strides", "type", "weak", "scalar", "__weakref__")
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        storage: Storage,
        type: TensorType,
        weak: str | None = None,
        scalar: bool = False,
        view: ViewStep | None = None,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self._storage = storage
        self._view = view
        self._strides = strides
        self.type = type
        self.weak = weak
        self.scalar = scalar

    @property
    def value(self) -> Value:
        """The current value, in the tracer's own trace (see `as_value` for the current one)."""
        view, storage = self._view, self._storage
        if view is None:
            return storage.value
        if view.version != storage.version:
            view.value = view.forward(storage.trace.builder, view.base.value)
            view.version = storage.version
        return view.value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def itemsize(self) -> int:
        return self.type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.type.nbytes

    @property
    def element_strides(self) -> tuple[int, ...]:
        """The strides that the NumPy array would have, counted in elements."""
        return c_strides(self.shape) if self._strides is None else self._strides

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(s * self.itemsize for s in self.element_strides)

    @property
    def writeable(self) -> bool:
        if self.scalar or not self._storage.writeable:
            return False
        tracer = self
        while tracer._view is not None:
            if tracer._view.inverse is None:
                return False
            tracer = tracer._view.base
        return True

    def assign(self, new: Value) -> None:
        """Overwrite all elements with `new`, a value of the current trace of the same type."""
        from .views import assign

        assign(self, new)

    def __repr__(self) -> str:
        weak = f", weak {self.weak!r}" if self.weak else ""
        trace = self._storage.trace
        if isinstance(trace.builder, EagerBuilder) and not trace.done:
            return f"Tracer({np.array2string(concrete(self), threshold=20)}, {self.type}{weak})"
        return f"Tracer({self.type}{weak})"

    if TYPE_CHECKING:  # attached by conversions.py, operators.py, methods.py, indexing.py
        __len__: Any
        __iter__: Any
        __float__: Any
        __int__: Any
        __complex__: Any
        __index__: Any
        __array__: Any
        __add__: Any
        __radd__: Any
        __sub__: Any
        __rsub__: Any
        __mul__: Any
        __rmul__: Any
        __truediv__: Any
        __rtruediv__: Any
        __floordiv__: Any
        __rfloordiv__: Any
        __mod__: Any
        __rmod__: Any
        __pow__: Any
        __rpow__: Any
        __matmul__: Any
        __rmatmul__: Any
        __and__: Any
        __rand__: Any
        __or__: Any
        __ror__: Any
        __xor__: Any
        __rxor__: Any
        __lshift__: Any
        __rlshift__: Any
        __rshift__: Any
        __rrshift__: Any
        __divmod__: Any
        __rdivmod__: Any
        __neg__: Any
        __pos__: Any
        __abs__: Any
        __invert__: Any
        __lt__: Any
        __le__: Any
        __gt__: Any
        __ge__: Any

        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Tracer: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...


F = TypeVar("F", bound=Callable[..., Any])


def method(*names: str) -> Callable[[F], F]:
    """Attach a function to `Tracer` as a method: `@method("sum")`."""

    def attach(function: F) -> F:
        for name in names:
            setattr(Tracer, name, function)
        return function

    return attach


def attribute(name: str) -> Callable[[F], F]:
    """Attach a function to `Tracer` as a read-only attribute: `@attribute("T")`."""

    def attach(function: F) -> F:
        setattr(Tracer, name, property(function))
        return function

    return attach


def wrap(value: Value, weak: str | None = None, *, scalar: bool | None = None) -> Tracer:
    """A tracer with fresh storage for `value` of the current trace.

    A 0-d value is a NumPy scalar (immutable) unless `scalar=False`, as after `np.zeros(())`.
    """
    type = value.tensor
    if scalar is None or weak is not None:
        scalar = not type.shape
    return Tracer(Storage(require_trace(), value), type, weak, scalar)


def wrap_like(value: Value, operands: Sequence[Any], *, scalar: bool | None = None) -> Tracer:
    """As `wrap`, with the memory order that NumPy gives results of these operands (order "K").

    The order of a result decides whether reshaping it later gives a view.
    """
    result = wrap(value, scalar=scalar)
    for x in operands:
        if isinstance(x, Tracer) and x._strides is not None:
            tracers = [x for x in operands if isinstance(x, Tracer)]
            result._strides = k_order(value.shape, [(x.shape, x.element_strides) for x in tracers])
            break
    return result


def as_value(x: Any, dtype: np.dtype[Any] | None = None) -> Value:
    """The value of `x` in the current trace, converted to `dtype` if that is given.

    Takes tracers of this trace or of an enclosing one, arrays (captured by reference), NumPy and
    Python scalars. Anything else is an ArgumentError.
    """
    trace = _current.get()
    if trace is None:
        if isinstance(x, Tracer):
            refuse_leaked(x)
        trace = require_trace()
    if isinstance(x, Tracer):
        storage = x._storage
        if storage.trace is trace and not trace.done:
            value = storage.value if x._view is None else x.value
        else:
            value = _from_enclosing(x, trace)
    elif isinstance(x, np.ndarray):
        value = trace.capture(check_array(x))
    elif isinstance(x, (bool, int, float, complex)):
        return _at(trace, lambda b: b.const(x, _scalar_dtype(x) if dtype is None else dtype))
    elif isinstance(x, np.generic) and is_supported(x.dtype):
        return _at(trace, lambda b: b.const(x, dtype))
    else:
        refuse(x, "here")
    if dtype is not None and value.dtype != dtype:
        return _at(trace, lambda b: b.convert(value, dtype=dtype))
    return value


def _at(trace: Trace, build: Callable[[Builder], Any]) -> Any:
    """Build at the user's line."""
    with trace.builder.at(user_line(2)):
        return build(trace.builder)


def _scalar_dtype(x: Any) -> np.dtype[Any]:
    if isinstance(x, bool):
        return BOOL
    if isinstance(x, int):
        return np.asarray(x).dtype
    return C128 if isinstance(x, complex) else F64


def _from_enclosing(x: Tracer, trace: Trace) -> Value:
    owner = x._storage.trace
    if not owner.done and owner.encloses(trace):
        return trace.lift(x.value, owner)
    refuse_leaked(x)


def refuse_leaked(x: Tracer) -> NoReturn:
    """Raise LeakedTracerError: `x` is used outside of its trace."""
    owner = x._storage.trace
    op = x._storage.value.op
    made = f"made at {op.loc}" if op is not None and op.loc else "an argument of the function"
    complain(
        errors.LeakedTracerError,
        f"this tracer, {made}, was kept after its call of {owner.what} ({owner.graph.name}) had "
        "been traced, or comes from another thread",
        "return the array from the function instead of storing it in a global, an attribute, a "
        "list or a cache.",
        operands={"tracer": x},
    )


def emit(name: str, *values: Value, weak: str | None = None, **attrs: Any) -> Any:
    """Append the op `name` to the current trace at the user's line; wrap its result(s)."""
    trace = require_trace()
    with trace.builder.at(user_line(2)):
        result = trace.builder.op(name, *values, **attrs)
    if isinstance(result, tuple):
        return tuple(wrap(v, weak) if v.type is not TOKEN else v for v in result)
    return wrap(result, weak)


def concrete(x: Tracer | Value) -> Array:
    """The ndarray that stands behind a value of an eager trace. Read-only by convention."""
    if isinstance(x, Tracer):
        builder = x._storage.trace.builder
        assert isinstance(builder, EagerBuilder)
        return builder.arrays[x.value]
    trace = current_trace()
    while trace is not None:
        if isinstance(trace.builder, EagerBuilder) and x in trace.builder.arrays:
            return trace.builder.arrays[x]
        trace = trace.parent
    raise KeyError(f"{x} has no concrete value")


def weak_kind(x: Any) -> str | None:
    """How `x` promotes: "b", "i", "f", "c" for Python scalars and their tracers, None for arrays."""
    if isinstance(x, Tracer):
        return x.weak
    return _WEAK_OF.get(type(x))


def _same_bits(a: Array | None, b: Array) -> bool:
    return a is not None and a.shape == b.shape and a.tobytes() == b.tobytes()


from . import conversions  # noqa: E402, F401  (a Tracer is never without its conversions)
