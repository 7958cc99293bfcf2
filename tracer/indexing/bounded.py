"""Arrays whose length is a value: `x[:n]`, `x[lo:hi]` and `x[mask]` with traced bounds and masks.

A graph's shapes are static. A `Bounded` is a traced array of static shape, `padded`, with a traced int
for each axis that is shorter than that: so many elements are there, what lies behind them is nobody's.
What reads it (`functions.bounded`) masks what is not there, or asks for the axis' elements alone.

    x = jt.arange(8.0)[:n]      padded f64[8], counts {0: n}

Two of them go together if their counts agree, which is checked when the compiled function runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from ...ir.graph import Value
from ...ir.types import BOOL, I64
from ..arrays.common import array, build, common_dtype, operand, shape_of
from ..arrays.creation import COUNTED
from ..arrays.table import LAZY, ArrayFunction
from ..core.constants import known_array
from ..core.effects import check
from ..core.linear_forms import plain, same_value
from ..core.trace import require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain

F = TypeVar("F", bound=Callable[..., Any])

# What functions of the table do with bounded arrays, by name; see `functions.bounded`.
RULES: dict[str, Callable[..., Any]] = {}


class Bounded:
    """The first `counts[axis]` elements of `padded` along each axis of `counts`.

    `origin` is the array, with an index, that this is a view of.
    """

    _jitney_lazy = True
    __array_priority__ = 1002.0

    def __init__(self, padded: Tracer, counts: Mapping[int, Tracer]) -> None:
        self.padded = padded
        self.counts = dict(counts)
        self.origin: tuple[Any, ...] | None = None
        self._line = errors.user_line(1)

    if TYPE_CHECKING:  # attached by bounded_index.py and functions/bounded.py
        __getitem__: Any
        __setitem__: Any
        __mul__: Any
        __rmul__: Any
        __sub__: Any
        __invert__: Any
        __abs__: Any

        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.padded.dtype

    @property
    def ndim(self) -> int:
        return self.padded.ndim

    @property
    def itemsize(self) -> int:
        return self.padded.itemsize

    @property
    def shape(self) -> tuple[Any, ...]:
        return tuple(self.counts.get(i, n) for i, n in enumerate(self.padded.shape))

    @property
    def size(self) -> Any:
        total: Any = 1
        for n in self.shape:
            total = n * total
        return total

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    def materialise(self, *_: Any, **__: Any) -> NoReturn:
        """Called where an array of static shape is needed."""
        refuse(self)

    __array__ = __iter__ = materialise

    def refuse_kept(self) -> None:
        """Called when a container or object keeps it behind the call: one that an argument's memory is
        of would have to be the argument, or a view of it."""
        trace = require_trace()
        if self.padded._storage in trace.sized:
            refuse(self, "keeping a view")

    def walked(self) -> tuple[Any, Callable[[Any], Any]]:
        """How many rows there are, and what gives one: for lists that are made of them."""
        return self.shape[0], self.__getitem__

    def __len__(self) -> int:
        count = self.counts.get(0)
        if count is None:
            return self.padded.shape[0]
        complain(
            errors.TracerIndexError,
            "len() of an array whose length is a value, which is known only when the compiled "
            "function runs",
            "write x.shape[0], a traced int.",
            operands={"x": self.padded},
            line=self._line,
            asks=[count],
        )

    def __bool__(self) -> NoReturn:
        complain(
            errors.ArrayTruthError,
            "the truth value of an array with more than one element is ambiguous",
            "reduce it with np.any(x) or np.all(x).",
            operands={"condition": self.padded},
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tracer, name):
            raise AttributeError(f"an array whose length is a value has no attribute {name!r}")
        refuse(self, f"x.{name}")

    def __format__(self, spec: str) -> NoReturn:
        refuse(self, "the text")

    def __str__(self) -> str:
        return format(self)

    def __repr__(self) -> str:
        return f"Bounded({self.padded!r}, axes={tuple(self.counts)})"

    def _call(self, entry: ArrayFunction, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """A function of the table of which this is an argument."""
        rule = RULES.get(entry.name)
        if rule is None:
            refuse(self, entry.name)
        return rule(entry, *args, **options)

    def __array_ufunc__(self, ufunc: np.ufunc, how: str, *inputs: Any, **options: Any) -> Any:
        from_numpy = RULES["ufunc"]
        return from_numpy(ufunc, how, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return RULES["function"](function, args, options)


def refuse(x: Bounded, what: str | None = None) -> NoReturn:
    """DynamicShapeError: something needs the length of `x` while tracing."""
    done = f"{what} of an array" if what else "an array is needed here"
    complain(
        errors.DynamicShapeError,
        f"{done} whose length is a value, known only when the compiled function runs, "
        "cannot be compiled"
        if what
        else "an array whose length is a value, known only when the compiled function runs, stands "
        "where its length must be known",
        "such arrays can be indexed, computed with by element, reduced, multiplied, sorted, "
        "assigned and returned; else give the length: jt.extract(mask, x, size=n), or "
        "jt.where(mask, x, other) with the full length.",
        operands={"x": x.padded},
        line=x._line,
        asks=[*x.counts.values()],
    )


def bounded_method(*names: str) -> Callable[[F], F]:
    """Attach a function to `Bounded` as a method."""

    def attach(function: F) -> F:
        for name in names:
            setattr(Bounded, name, function)
        return function

    return attach


def rule(*names: str) -> Callable[[F], F]:
    """Make the decorated function what functions of the table do with bounded arrays. It is called
    with the table's entry and the arguments."""

    def enter(function: F) -> F:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


# Lengths


def number(x: Any) -> Tracer:
    """A traced Python int."""
    return wrap(as_value(x, I64), "i")


def bounded(padded: Tracer, counts: Mapping[int, Any]) -> Any:
    """A `Bounded`, or the array itself where all counts are known."""
    left: dict[int, Any] = {}
    index: list[Any] = [slice(None)] * padded.ndim
    for axis, count in counts.items():
        constant = known_array(count)
        if constant is None:
            left[axis] = count
        elif int(constant) != padded.shape[axis]:
            index[axis] = slice(int(constant))
    if any(i != slice(None) for i in index):
        padded = padded[tuple(index)]
    return Bounded(padded, left) if left else padded


def live(x: Bounded, axes: Sequence[int] | None = None) -> Tracer:
    """Which elements of `padded` are there, along some of the axes, in `padded`'s shape."""
    return wrap(live_in(x.padded.shape, x.counts, axes), scalar=False)


def live_in(shape: tuple[int, ...], counts: Mapping[int, Any], axes: Any = None) -> Value:
    """The same for an array of a shape, as a value."""
    b, mask = build(), None
    for axis, count in counts.items():
        if axes is not None and axis not in axes:
            continue
        here = b.lt(
            b.iota(shape=shape, dtype=I64, axis=axis),
            b.broadcast(as_value(count, I64), shape=shape, dims=()),
        )
        mask = here if mask is None else b.bitwise_and(mask, here)
    return b.full(shape, True, BOOL) if mask is None else mask


def filled(x: Any, fill: Any, axes: Sequence[int] | None = None) -> Tracer:
    """The padded array with `fill` in place of what is not there."""
    if not isinstance(x, Bounded):
        return array(x)
    value = as_value(x.padded)
    counts = {a: c for a, c in x.counts.items() if axes is None or a in axes}
    if not counts or (fill == 0 and _zeros_behind(value, counts)):
        return x.padded
    b = build()
    filler = b.full(value.shape, fill, value.dtype)
    return wrap(b.select(live_in(value.shape, counts), value, filler), scalar=False)


def _zeros_behind(value: Value, counts: Mapping[int, Any]) -> bool:
    """Whether a value is a window, which ends in zeros, with these counts."""
    op = value.op
    if op is None or op.name != "bounded_slice":
        return False
    axes = op.attrs["axes"]
    ends = dict(zip(axes, op.operands[1 + len(axes) :], strict=True))
    return all(a in ends and same_value(ends[a], as_value(c, I64)) for a, c in counts.items())


def resized(padded: Tracer, axis: int, size: int) -> Tracer:
    """The array cut, or filled up with zeros, to a size along an axis."""
    n = padded.shape[axis]
    if n == size:
        return padded
    if n > size:
        cut: Tracer = padded[tuple(slice(size if d == axis else None) for d in range(padded.ndim))]
        return cut
    b, none = build(), (0,) * padded.ndim
    high = tuple(size - n if d == axis else 0 for d in range(padded.ndim))
    value = b.pad(as_value(padded), b.const(0, padded.dtype), low=none, high=high, interior=none)
    return wrap(value, scalar=False)


def require_equal(a: Any, b: Any, text: str, error: str = "ValueError") -> None:
    """An error when the compiled function runs unless two lengths are equal."""
    one, other = as_value(a, I64), as_value(b, I64)
    if not same_value(one, other):
        _refuse_parts(one, other)
        check(wrap(build().eq(one, other)), text, wrap(one), wrap(other), error=error)


def _refuse_parts(*lengths: Value) -> None:
    """DynamicShapeError for the length of a part of an axis of any length: `x - x[:1]` is broadcast, and
    only the axes' own lengths are known not to be 1."""
    trace: Any = require_trace()
    while trace.parent is not None:
        trace = trace.parent
    if trace.lengths and any(_is_computed(n) for n in lengths):
        complain(
            errors.DynamicShapeError,
            "a part of an axis of any length, which may have a length of 1, meets another length",
            "give the sizes.",
        )


def _is_computed(length: Value) -> bool:
    """Whether a length is neither a constant nor a parameter: `maximum(n, 0)`, as of np.arange, is n."""
    op = plain(length).op
    while op is not None and op.name == "maximum" and known_array(wrap(op.operands[1])) == 0:
        op = plain(op.operands[0]).op
    return op is not None and op.name != "constant"


MISMATCH = "operands could not be broadcast together with shapes ({0},) ({1},)"


class Aligned:
    """Operands broadcast against each other: `padded` are they with axes of one size (or 1 or no
    axis), `counts` those of the result, `shape` its padded shape."""

    def __init__(
        self, operands: Sequence[Any], text: str = MISMATCH, error: str = "ValueError"
    ) -> None:
        self.padded = [x.padded if isinstance(x, Bounded) else operand(x) for x in operands]
        rank = max(len(shape_of(x)) for x in self.padded)
        self.counts: dict[int, Any] = {}
        sizes = []
        for axis in range(rank):
            sizes.append(self._axis(operands, axis - rank, text, error))
            count = self._count
            if count is not None:
                self.counts[axis] = count
        self.shape = tuple(sizes)

    def _axis(self, operands: Sequence[Any], axis: int, text: str, error: str) -> int:
        """The size of an axis, counted from the end; `_count` is its count, if it has one."""
        self._count = None
        cut: list[int] = []
        static = 1
        bounds = []
        for k, x in enumerate(operands):
            shape = shape_of(self.padded[k])
            if -axis > len(shape):
                continue
            if isinstance(x, Bounded) and axis + len(shape) in x.counts:
                cut.append(k)
                bounds.append(shape[axis])
            elif shape[axis] != 1:
                static = shape[axis]
        if not cut:
            return static
        counts = [operands[k].counts[axis + operands[k].ndim] for k in cut]
        size = min(bounds)
        if static != 1:
            size = static
            for count in counts:
                require_equal(count, static, text, error)
        else:
            self._count = counts[0]
            for count in counts[1:]:
                require_equal(counts[0], count, text, error)
        for k in cut:
            x = self.padded[k]
            self.padded[k] = resized(x, x.ndim + axis, size)
        return size

    def guarded(self, operands: Sequence[Any], fill: Any = 1) -> list[Any]:
        """The operands; of those that are no bounded arrays, elements that meet nothing are `fill`, so
        that no derivative comes back from there."""
        if not self.counts:
            return self.padded
        b, mask, guarded = build(), None, []
        for x, padded in zip(operands, self.padded, strict=True):
            inexact = isinstance(padded, Tracer) and padded.dtype.kind in "fcV"
            if isinstance(x, Bounded) or not inexact:
                guarded.append(padded)
                continue
            dtype = padded.dtype if padded.weak is None else common_dtype(*self.padded)
            mask = live_in(self.shape, self.counts) if mask is None else mask
            value = b.broadcast_to(as_value(padded, dtype), self.shape)
            filler = b.full(self.shape, fill, dtype)
            guarded.append(wrap(b.select(mask, value, filler), scalar=False))
        return guarded

    def result(self, x: Any) -> Any:
        """A result of the operands' shape, or a tuple of them."""
        if isinstance(x, tuple):
            return tuple(self.result(part) for part in x)
        return bounded(x, self.counts)


# Bounded arrays go into and out of loops, branches and functions as their parts. An array of NumPy's
# comes out at the end.


def _flatten(x: Bounded) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    axes = tuple(sorted(x.counts))
    return (x.padded, *(x.counts[a] for a in axes)), axes


def _unflatten(axes: tuple[int, ...], parts: Sequence[Any]) -> Any:
    padded, *counts = parts
    if isinstance(padded, np.ndarray):
        cut = dict(zip(axes, counts, strict=True))
        index = tuple(slice(int(cut[d])) if d in cut else slice(None) for d in range(padded.ndim))
        return padded[index].copy()
    x = object.__new__(Bounded)
    x.padded, x.counts = padded, dict(zip(axes, counts, strict=True))
    x.origin = x._line = None
    return x


LAZY.add(Bounded)
COUNTED.append(lambda padded, lengths: bounded(padded, {a: number(n) for a, n in lengths.items()}))
pytree.register_pytree(Bounded, _flatten, _unflatten)
