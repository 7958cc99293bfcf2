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

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from ..ir.build import Builder
from ..ir.graph import Graph, Op, SourceLine, Value
from ..ir.types import BOOL, F64, I64, TOKEN, TensorType, is_float, is_supported, type_of
from . import errors
from .errors import complain
from .source import user_line

Array = np.ndarray[Any, Any]
WEAK_DTYPES = {"b": BOOL, "i": I64, "f": F64}
_WEAK_OF: dict[type, str] = {bool: "b", int: "i", float: "f"}

_current: ContextVar[Trace | None] = ContextVar("jitney_trace", default=None)


def current_trace() -> Trace | None:
    """The trace that this thread (or context) is recording, or None outside of tracing."""
    return _current.get()


class EagerBuilder(Builder):
    """A builder that computes each op as it is appended: `arrays[value]` is its ndarray.

    `active` are the float values that depend on what is differentiated: they must not become plain
    numbers unnoticed, which would cut them off from the derivative.
    """

    def __init__(self, graph: Graph, loc: SourceLine | None = None) -> None:
        super().__init__(graph, loc)
        self.arrays: dict[Value, Array] = {}
        self.active: set[Value] = set()

    def appended(self, op: Op) -> None:
        from ..ir.interpreter import evaluate_op

        results = evaluate_op(op, [self.arrays.get(v) for v in op.operands])
        self.arrays.update(zip(op.results, results, strict=True))
        active = self.active
        if active and op.name != "stop_gradient" and any(v in active for v in op.operands):
            active.update(v for v in op.results if v.type is not TOKEN and is_float(v.dtype))


class Capture:
    """A value from outside that a trace reads: hidden parameter `param`.

    `outer` is a Value of the parent trace, or for an outermost trace the captured ndarray itself.
    """

    __slots__ = ("outer", "param", "snapshot")

    def __init__(self, outer: Value | Array, param: Value, snapshot: Array | None = None) -> None:
        self.outer = outer
        self.param = param
        self.snapshot = snapshot


class Trace:
    """One tracing in progress. Enter it with `tracing`."""

    def __init__(
        self, graph: Graph, *, parent: Trace | None = None, eager: bool = False, what: str = "jit"
    ) -> None:
        self.graph = graph
        self.builder: Builder = EagerBuilder(graph) if eager else Builder(graph)
        self.parent = parent
        self.eager = eager
        self.what = what  # the word for error messages: "jit", "grad", "while_loop body", ...
        self.done = False
        self.captures: list[Capture] = []
        self.token: Value | None = None  # the latest order token of effectful ops
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
    reset = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(reset)
        trace.done = True


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
    """A mutable cell: the array that views share. `parameter` is its index if it is an argument."""

    __slots__ = ("trace", "value", "version", "writeable", "parameter")

    def __init__(
        self, trace: Trace, value: Value, writeable: bool = True, parameter: int | None = None
    ) -> None:
        self.trace = trace
        self.value = value
        self.version = 0  # counts writes
        self.writeable = writeable
        self.parameter = parameter


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

    `weak` is None, or "b", "i", "f" for a Python bool, int, float (it promotes as one, NEP 50).
    `scalar` tells a NumPy scalar (immutable, what a reduction to 0-d gives) from a 0-d array.
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

    def __len__(self) -> int:
        if not self.shape:
            complain(
                errors.TracerIterationError,
                "len() of an unsized object: a 0-d value has no length",
                "use x.size, or give the value an axis with x.reshape(1).",
                operands={"x": self},
            )
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            complain(
                errors.TracerIterationError,
                "iteration over a 0-d value",
                "iterate over an array with an axis; for a traced count write "
                "jt.fori_loop(0, n, body, init).",
                operands={"x": self},
            )
        return (self[i] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        if _is_concrete(self):
            return bool(concrete(self))
        if self.size > 1:
            complain(
                errors.ArrayTruthError,
                "the truth value of an array with more than one element is ambiguous",
                "reduce it with np.any(x) or np.all(x), and branch with jt.where or jt.cond: the "
                "values are known only when the compiled function runs.",
                operands={"condition": self},
            )
        complain(
            errors.TracerBoolError,
            "a traced value has no truth value yet: it is known only when the compiled function "
            "runs, but `if`, `while`, `and`, `or`, `not`, `assert` and comparisons in a chain ask "
            "for it now",
            "write jt.where(condition, a, b) to choose by element, jt.cond(condition, then, "
            "otherwise, *operands) or jt.while_loop to branch, & | ~ for logic; or "
            f"{_make_static(self)}.",
            operands={"condition": self},
        )

    def __float__(self) -> float:
        return float(_to_python(self, "float()"))

    def __int__(self) -> int:
        return int(_to_python(self, "int()"))

    def __complex__(self) -> complex:
        return complex(_to_python(self, "complex()"))

    def __index__(self) -> int:
        if _is_concrete(self):
            return concrete(self).__index__()
        complain(
            errors.TracerIndexError,
            "Python needs an integer here (range, a shape, a list index, a slice bound), and a "
            "traced value is known only when the compiled function runs",
            f"{_make_static(self)}, loop with jt.fori_loop, or index an array with x[i] or "
            "jt.take(x, i).",
            operands={"index": self},
        )

    def __format__(self, spec: str) -> str:
        if spec and _is_concrete(self) and not self.shape:
            return format(concrete(self).item(), spec)
        return format(repr(self), spec)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if _is_concrete(self):
            _refuse_active(self, "np.asarray(x)")
            return np.array(concrete(self), dtype=dtype)
        complain(
            errors.TracerConversionError,
            "NumPy asked a traced value for its elements, which are known only when the compiled "
            "function runs (np.asarray(x), np.array([x, 1.0]), or an assignment into an array "
            "that NumPy made, as in `out = np.zeros(n); out[0] = x`)",
            "make the array with jt.zeros, jt.empty, jt.asarray, jt.stack or np.zeros_like(x), "
            "which assignments into are traced.",
            operands={"x": self},
        )

    if TYPE_CHECKING:  # attached by operators.py, methods.py, protocols.py, indexing.py
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


def c_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a C-contiguous array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


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
    tracers = [x for x in operands if isinstance(x, Tracer)]
    if any(x._strides is not None for x in tracers):
        result._strides = k_order(value.shape, [(x.shape, x.element_strides) for x in tracers])
    return result


def k_order(
    shape: tuple[int, ...], operands: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
) -> tuple[int, ...]:
    """Strides, in elements, of a new array in the memory order of (shape, strides) operands.

    The axes are sorted as NumPy's iterator sorts them: inner axes have the smaller strides, and in
    a conflict between operands C order wins.
    """
    rank = len(shape)
    aligned = []
    for own, strides in operands:
        lead = rank - len(own)
        steps = [abs(s) if n != 1 else 0 for n, s in zip(own, strides, strict=True)]
        aligned.append([0] * lead + steps)
    axes: list[int] = []  # from the innermost
    for axis in reversed(range(rank)):
        place = len(axes)
        for i in reversed(range(len(axes))):
            pairs = [(s[axes[i]], s[axis]) for s in aligned if s[axes[i]] and s[axis]]
            if not pairs:
                continue
            if any(inner <= outer for inner, outer in pairs):
                break
            place = i
        axes.insert(place, axis)
    found, step = [0] * rank, 1
    for axis in axes:
        found[axis] = step
        step *= max(shape[axis], 1)
    return tuple(found)


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
        owner = x._storage.trace
        value = x.value if owner is trace and not trace.done else _from_enclosing(x, trace)
    elif isinstance(x, np.ndarray):
        value = trace.capture(check_array(x))
    elif isinstance(x, (bool, int, float)):
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
    return np.asarray(x).dtype if isinstance(x, int) else F64


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


def check_array(x: Array) -> Array:
    """`x` itself, if it is an ndarray that can live in a graph; otherwise an ArgumentError."""
    if type(x) is not np.ndarray:
        if isinstance(x, np.ma.MaskedArray):
            refuse(x, "a masked array", "compute with x.data and x.mask as two arrays")
        if isinstance(x, np.matrix):
            refuse(x, "np.matrix", "pass np.asarray(x) and write @ for the matrix product")
        if isinstance(x, np.memmap):
            return x.view(np.ndarray)
        refuse(x, f"{type(x).__name__}, a subclass of ndarray,", "pass np.asarray(x)")
    if not is_supported(x.dtype):
        if is_supported(x.dtype.newbyteorder("=")):
            return x.astype(x.dtype.newbyteorder("="))
        refuse(x, f"dtype {x.dtype}", _dtype_remedy(x.dtype))
    return x


def _dtype_remedy(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "O":
        return "give the array a number dtype with x.astype(np.float64); ragged lists need padding"
    if dtype.kind == "c":
        return "pass the real and the imaginary part as two arrays"
    if dtype.kind in "SU":
        return "strings stay outside of the compiled function; pass codes (integers)"
    return "convert it with x.astype(np.float64), or np.float32"


def refuse(x: Any, what: str, remedy: str | None = None) -> NoReturn:
    """Raise ArgumentError: `x` cannot be traced."""
    complain(
        errors.ArgumentError,
        f"jitney cannot trace {what}: arrays of bool, integers, float32 and float64, Python and "
        "NumPy scalars, and pytrees of them, can be traced",
        f"{remedy or 'pass an array or a number'}.",
        operands={"value": x},
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
    """How `x` promotes: "b", "i", "f" for Python scalars and their tracers, None for arrays."""
    if isinstance(x, Tracer):
        return x.weak
    return _WEAK_OF.get(type(x))


def _make_static(x: Tracer) -> str:
    """The advice to make `x`, or what it was computed from, a static argument."""
    value = x._storage.value
    if x._storage.parameter is None or x._storage.version or not value.name:
        return "make the argument that it depends on static (static_argnames)"
    return f"make `{value.name}` static (static_argnames={value.name!r})"


def _is_concrete(x: Tracer) -> bool:
    """Whether the value is known. Python asks for it now, so a tracer must be alive."""
    trace = x._storage.trace
    if trace.done:
        refuse_leaked(x)
    return isinstance(trace.builder, EagerBuilder)


def _to_python(x: Tracer, what: str) -> Any:
    if _is_concrete(x):
        if what != "int()":
            _refuse_active(x, what)
        array = concrete(x)
        return array if array.ndim else array[()]
    complain(
        errors.TracerConversionError,
        f"{what} needs a number, and a traced value is known only when the compiled function runs "
        "(math functions and formatting ask for it too, and so does an assignment into an array "
        "that NumPy made: `out = np.zeros(n); out[0] = x`)",
        "stay with arrays: x.astype(dtype) to convert, jt.sin instead of math.sin, jt.zeros "
        f"instead of np.zeros for arrays that you fill; or {_make_static(x)}.",
        operands={"x": x},
    )


def _refuse_active(x: Tracer, what: str) -> None:
    """A value that is being differentiated must not turn into a constant without a word."""
    trace = x._storage.trace
    assert isinstance(trace.builder, EagerBuilder)
    if x.value not in trace.builder.active:
        return
    complain(
        errors.TracerConversionError,
        f"{what} makes a plain number of a value that {trace.what} differentiates, and the "
        "derivative would be lost (math functions ask for one, and so does an assignment into an "
        "array that NumPy made: `out = np.zeros(n); out[0] = x`)",
        "stay with arrays: jt.sin instead of math.sin, jt.zeros or np.zeros_like(x) instead of "
        "np.zeros for arrays that you fill; for the number as a constant write "
        "float(jt.stop_gradient(x)).",
        operands={"x": x},
    )


def _same_bits(a: Array | None, b: Array) -> bool:
    return a is not None and a.shape == b.shape and a.tobytes() == b.tobytes()
