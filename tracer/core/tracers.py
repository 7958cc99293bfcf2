"""Tracers: what stands for an array while a Python function is called to become a graph.

A `Tracer` appends ops to the graph of its `Trace`. Arrays are mutable in NumPy and values are not in
the graph: a tracer refers to a `Storage`, a cell that holds the current value, directly or through a
chain of views. Writing through a view computes a new value for the storage, and every other view of
it reads the new one.

    with tracing(Trace(Graph("f"))) as trace:
        x = parameter(trace, TensorType((8,), F32))
        y = emit("mul", as_value(x), as_value(x))      # a Tracer

The surface of a Tracer (operators, methods, NumPy's protocols) is attached by the modules that
implement it, see `method`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Value
from ...ir.types import BOOL, C128, F64, I64, TOKEN, TensorType, is_inexact, is_supported
from ...runtime.cuda.array import DeviceArray
from ..data.accept import plain_array, refuse
from ..data.foreign import borrow
from ..data.layout import c_strides, new_strides
from ..data.objects import in_cell
from ..messages import errors
from ..messages.errors import TracerBase, complain
from ..messages.source import user_line
from .specs import WEAK_DTYPES as WEAK_DTYPES
from .specs import weak_kind as weak_kind
from .trace import CURRENT, Array, EagerBuilder, Trace, current_trace, require_trace

if TYPE_CHECKING:
    from .sharing import Doubt, Relation


class Storage:
    """A mutable cell: the array that views share. `parameter` is its index if it is an argument.

    `part` is the array of an enclosing trace of which this is a copy where NumPy has a view; then it is
    not writeable. `perhaps` are relations to storages that this one may be, depending on which way run
    time takes, and `missed` the assignments into those that this one did not see (see `sharing`).
    `which` says which one it is, if that is followed: the number of an origin, known now or when the
    program runs; 0 is none of them (see `identity.origins`). `exact` is the same number as a union of
    its kinds, if it is of one class on one way and of another on another: an int or a float, say, of
    which this is the float (see `control.unions`). `first` is the value that it began with, in the trace
    `home`, None of a copy, and `kept` says that a container holds it as it is (see `core.kept`); `box`
    is the place in memory of containers where its numbers lie, if that is known.
    """

    __slots__ = (
        *("trace", "value", "version", "writeable", "parameter", "perhaps", "part", "which"),
        *("exact", "missed", "first", "home", "kept", "box"),
        "__weakref__",
    )

    def __init__(
        self, trace: Trace, value: Value, writeable: bool = True, parameter: int | None = None
    ) -> None:
        self.trace = trace
        self.value = value
        self.version = 0  # counts writes
        self.writeable = writeable
        self.parameter = parameter
        self.perhaps: tuple[Relation, ...] = ()
        self.missed: list[Doubt] | None = None
        self.part: Storage | None = None
        self.which: Any = None
        self.exact: Any = None
        self.first: Value | None = value
        self.home = trace
        self.kept = False
        self.box: Any = None


def _read(storage: Storage) -> None:
    """An array is read after an assignment that it perhaps had to see."""
    for doubt in storage.missed or ():
        doubt.is_read = True


class ViewStep:
    """How a view reads its base and writes to it. See `views.view`. `subscript` is what makes it
    of an array whatever the lengths of that are, and which array that is."""

    __slots__ = ("base", "forward", "inverse", "numpy", "subscript", "version", "value")

    def __init__(
        self,
        base: Tracer,
        forward: Callable[[Builder, Value], Value],
        inverse: Callable[[Builder, Value, Value], Value] | None,
        numpy: Callable[[Array], Array] | None,
        value: Value,
    ) -> None:
        self.base = base
        self.subscript: tuple[Callable[[Array], Array], Tracer] | None = None
        self.forward = forward
        self.inverse = inverse
        self.numpy = numpy
        self.version = base._storage.version
        self.value = value


DESCRIBED = threading.local()  # `tracers`: those that have described themselves, for who asks


class Tracer(TracerBase):
    """Stands for an array while a function is traced.

    `weak` is None, or "b", "i", "f", "c" for a Python bool, int, float, complex: it promotes as one
    (NEP 50). `scalar` tells a NumPy scalar (immutable, what a reduction to 0-d gives) from a 0-d array.
    """

    __slots__ = ("_storage", "_view", "_strides", "type", "weak", "scalar", "__weakref__")
    __array_priority__ = 1000.0

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
        if storage.missed is not None:
            _read(storage)
        if view is None:
            return storage.value
        if view.version != storage.version:
            view.value = view.forward(storage.trace.builder, view.base.value)
            view.version = storage.version
        return view.value

    @property
    def name(self) -> str:
        """What `jt.name` calls the value, or the parameter that it is; else empty."""
        return self.value.name

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

    def _described(self) -> str:
        names = {"b": "bool", "i": "int", "f": "float", "c": "complex"}
        kind = f"traced Python {names[self.weak]}" if self.weak else "traced"
        return f"{kind} {self.type}"

    def __repr__(self) -> str:
        weak = f", weak {self.weak!r}" if self.weak else ""
        trace = self._storage.trace
        if isinstance(trace.builder, EagerBuilder) and not trace.done:
            return f"Tracer({np.array2string(concrete(self), threshold=20)}, {self.type}{weak})"
        described = getattr(DESCRIBED, "tracers", None)
        if described is not None:
            described.append(self)
        return f"Tracer({self.type}{weak})"

    if TYPE_CHECKING:  # attached by views.py, conversions.py, operators.py, methods.py, indexing.py
        assign: Any
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


def parameter(
    trace: Trace,
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
    value = trace.graph.add_param(type, name)
    if isinstance(trace.builder, EagerBuilder):
        assert concrete is not None, "an eager trace needs a value for each parameter"
        trace.builder.arrays[value] = concrete
        if active:
            trace.builder.active.add(value)
    storage = Storage(trace, value, writeable, parameter=value.index)
    tracer = Tracer(storage, type, weak, scalar or weak is not None)
    if tracer.scalar:
        trace.singles.add(value.index)
    if strides is not None:
        tracer._strides = strides
    return tracer


def wrap(value: Value, weak: str | None = None, *, scalar: bool | None = None) -> Tracer:
    """A tracer with fresh storage for `value` of the current trace.

    A 0-d value is a NumPy scalar (immutable) unless `scalar=False`, as after `np.zeros(())`.
    """
    type = value.tensor
    if scalar is None or weak is not None:
        scalar = not type.shape
    return Tracer(Storage(require_trace(), value), type, weak, scalar)


def wrap_like(
    value: Value,
    operands: Sequence[Any],
    *,
    scalar: bool | None = None,
    order: str = "K",
    copy: bool = False,
) -> Tracer:
    """As `wrap`, with the memory order that NumPy gives results of these operands.

    The order of a result decides whether reshaping it later gives a view. See `layout.new_strides`.
    """
    result = wrap(value, scalar=scalar)
    if copy:
        result._storage.first = None
    layouts = [layout_of(x) for x in operands if isinstance(x, (Tracer, np.ndarray, tuple))]
    if order == "F" or any(strides is not None for _, strides in layouts):
        complete = [(shape, strides or c_strides(shape)) for shape, strides in layouts]
        result._strides = new_strides(value.shape, complete, order, copy)
    return result


def layout_of(x: Any) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """The shape and the strides, in elements, of an array; None for C order. Or they are `x`."""
    if isinstance(x, Tracer):
        return x.shape, x._strides
    if isinstance(x, tuple):
        return x
    if x.flags.c_contiguous:
        return x.shape, None
    return x.shape, tuple(s // x.itemsize for s in x.strides)


def as_value(x: Any, dtype: np.dtype[Any] | None = None) -> Value:
    """The value of `x` in the current trace, converted to `dtype` if that is given.

    Takes tracers of this trace or of an enclosing one, arrays (captured by reference; other
    libraries' too), NumPy and Python scalars. Anything else is an ArgumentError.
    """
    trace = CURRENT.get()
    if trace is None:
        if isinstance(x, Tracer):
            refuse_leaked(x)
        trace = require_trace()
    if isinstance(x, Tracer):
        storage = x._storage
        if storage.missed is not None:
            _read(storage)
        if storage.trace is trace and not trace.done:
            value = storage.value if x._view is None else x.value
        else:
            value = _from_enclosing(x, trace)
    elif isinstance(x, np.ndarray):
        value = trace.capture(plain_array(x))
    elif isinstance(x, DeviceArray):
        value = trace.capture_on_device(x)
    elif isinstance(x, (bool, int, float, complex)):
        if dtype is not None and type(x) is int and is_inexact(dtype):
            x = float(x)  # ints may be of any size
        if dtype == I64 and type(x) is int and not -(1 << 63) <= x < 1 << 63:
            raise OverflowError(
                "Python int too large to convert to C long: a compiled function keeps ints of 64 bits. "
                "Write a bound that fits, such as 1 << 62, or a float"
            )
        return _at(trace, lambda b: b.const(x, _scalar_dtype(x) if dtype is None else dtype))
    elif isinstance(x, np.generic) and is_supported(x.dtype):
        return _at(trace, lambda b: b.const(x, dtype))
    elif (held := in_cell(x)) is not x:
        return as_value(held, dtype)
    else:
        array = np.asarray(x) if isinstance(x, np.generic) else borrow(x)
        if array is None:
            refuse(x, f"a value of type {type(x).__name__}")
        value = trace.capture(plain_array(array))
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
        dtype = np.asarray(x).dtype
        if dtype.kind == "O":
            raise OverflowError("Python int too large to convert to C long")
        return dtype
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


def as_tracer(x: DeviceArray) -> Tracer:
    """A DeviceArray that meets a tracer: its elements, which do not change, are part of the trace."""
    return wrap(as_value(x))
