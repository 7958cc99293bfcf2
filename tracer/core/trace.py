"""One tracing in progress, and which one is: the graph under construction and what it captures.

Traces nest: a loop body or a function to be differentiated is traced as a sub-trace. A value of an
enclosing trace that is used inside becomes a hidden parameter of the inner graph (`captures`).
An *eager* trace computes every op with its NumPy reference as it is appended, so Python may branch
on its values.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.build import Builder
from ...ir.graph import Graph, Op, Value
from ...ir.integers.intervals import Interval, remembered
from ...ir.surface import ensure
from ...ir.types import I64, TensorType, is_inexact, type_of
from ...runtime.cuda.array import DeviceArray
from ..messages import errors
from ..messages.errors import complain
from .current import CURRENT as CURRENT
from .current import FORMS as FORMS
from .current import TraceOptions as TraceOptions
from .current import current_trace as current_trace
from .current import native_calls_held as native_calls_held
from .traced import Array as Array
from .traced import Capture as Capture
from .traced import Cast as Cast

if TYPE_CHECKING:
    from .slots import Watched
    from .tracers import Storage, Tracer


_DEFAULTS = TraceOptions()


def _memory(array: Array) -> Any:
    """What owns the elements of an array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class EagerBuilder(Builder):
    """A builder that computes each op as it is appended: `arrays[value]` is its ndarray.

    `active` are the float and complex values that depend on what is differentiated: they must not
    become plain numbers unnoticed, which would cut them off from the derivative.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.arrays: dict[Value, Array] = {}
        self.active: set[Value] = set()
        # The results of the next op, if they are known.
        self.next_results: tuple[Any, ...] | None = None

    def appended(self, op: Op) -> None:
        from ...ir.interpreter import evaluate_op

        results, self.next_results = self.next_results, None
        if results is None:
            results = evaluate_op(op, [self.arrays.get(v) for v in op.operands])
        self.arrays.update(zip(op.results, results, strict=True))
        active = self.active
        if active and op.name != "stop_gradient" and any(v in active for v in op.operands):
            numbers = (v for v in op.results if isinstance(v.type, TensorType))
            active.update(v for v in numbers if is_inexact(v.dtype))


class _Nesting(threading.local):
    """How many traces may be inside of each other: each of a function that calls itself under a traced
    condition is inside of one more. And how many may be far inside of others, as there are twice as many
    at each depth where such a function calls itself twice."""

    most = 300
    many = 20_000

    def note(self, depth: int) -> None:
        """A trace begins."""
        if depth > _DEEP:
            self.many -= 1
        if depth > self.most or self.many < 0:
            raise RecursionError("traces inside of each other without end")


_DEEP = 12
nesting = _Nesting()


class Trace:
    """One tracing in progress. Enter it with `tracing`."""

    def __init__(
        self,
        graph: Graph,
        *,
        parent: Trace | None = None,
        eager: bool = False,
        what: str = "jit",
        options: TraceOptions | None = None,
    ) -> None:
        ensure("trace")
        self.graph = graph
        self.options: TraceOptions = options or (parent.options if parent else _DEFAULTS)
        self.builder: Builder = EagerBuilder(graph) if eager else Builder(graph)
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        nesting.note(self.depth)
        self.eager = eager
        self.what = what  # the word for error messages: "jit", "grad", "while_loop body", ...
        self.done = False
        self.checks: list[Callable[[], None]] = []  # asked when the function has returned
        self.conditional = False  # a region that may run never or often: a branch, a loop's body
        # A threaded_state.Borrowed, where states from outside may be taken over.
        self.borrowed: Any = None
        self.index_error: Exception | None = None  # the latest refusal of a tracer to be an index
        self.captures: list[Capture] = []
        self.token: Value | None = None  # the latest order token of effectful ops
        self.adoption: Any = None  # an autograph.adoption.Adoption: what may be assigned to inside
        # Copies of parts of arrays of enclosing traces, as weak references, and the arrays; see `views`.
        self.parts: list[tuple[Any, Storage]] = []
        self.rolled: dict[Any, Any] = {}  # which loops became ops, see autograph.rolling
        self.closed: Any = None  # a captures.closed.ClosedCode: which code nothing traced can reach
        self.singles: set[int] = set()  # parameters that are numbers, no arrays without dims
        self.nonzero: set[Value] = set()  # Python numbers by which was divided
        self.counters: set[Value] = set()  # numbers of iterations, which count from 0
        self.arrived: set[Value] = set()  # handles of objects of outside that have their record
        # Whether this is a part of a loop that counts, or of one that does not: see `late_checks`.
        self.counts: bool | None = None
        self.late_checks: dict[Any, Storage] = {}
        self.uncertain: Any = None  # a `late_checks.Uncertain`
        self.numbers: dict[Any, Value] = {}  # Python numbers that were made into arrays
        self.constants: dict[Value, Array | None] = {}  # see `constants`
        self.lent: dict[Value, Value] = {}  # what parameters stand for, if always for one value
        # By id of an array outside: what stands in for it here and below, see `threaded_state.stand_in`.
        self.stand_ins: dict[int, Tracer] | None = None
        # Whether an object is one of those that the guards of this trace compare by identity.
        self.is_guarded: Callable[[Any], bool] | None = None
        # Of the outermost trace: which computed numbers are known, see `jit.computed_numbers`.
        self.answers: Any = None
        # Gives the user's own form of a callback, see `captures.callbacks.reads`.
        self.own: Callable[[Any], Any] | None = None if parent is None else parent.own
        # Arrays that results of branches may be, where it matters which (see `identity.origins`).
        self.origins: list[Storage] | None = None if parent is None else parent.origins
        # What functions assign to outside of them, see `slots`.
        self.watched: Watched | None = None if parent is None else parent.watched
        # Nothing is watched, as the code seemed to change nothing outside; `WantsHeap` if it does.
        self.lacks_heap: bool = parent is not None and parent.lacks_heap
        # Arrays outside that the function sees themselves, and copies: it must not change them.
        self.still: Sequence[tuple[Array, Array]] = () if parent is None else parent.still
        # Whether eager traces call autograph's twins, too.
        self.converts: bool = parent is not None and parent.converts
        # How often run time came to a line, for what is to happen sometimes only (`control.debugging`).
        self.times: dict[Any, Iterator[int]] = {} if parent is None else parent.times
        self.derivatives_taken = 0  # of those around it, see `custom_call.after`
        # Of a rule: the call that it is the derivative of, a custom_call.KnownCall.
        self.known_call: Any = None
        # Of Python's integers and of what counts trips: the least and greatest; and what loops hand on.
        self.reaches: dict[Value, Interval] = {}
        self.steps: set[Value] = set()
        # Those that cannot outgrow 64 bits, whatever they are computed of.
        self.exact: set[Value] = set() if parent is None else parent.exact
        # Of values that are of one form or another, see `control.unions`: the forms, by number (those of
        # the outermost trace), what is known of tags here, and what would be if a condition held or not.
        known = FORMS.get()
        self.forms: list[Any] = known if known is not None else []
        if parent is not None:
            self.forms = parent.forms
        # Of arrays that native containers hold (`core.kept`): storages, and types; those assigned into.
        self.holding: list[Any] = []
        self.kept: list[Any] = [] if parent is None else parent.kept
        self.written: list[Any] = [] if parent is None else parent.written
        self.facts: dict[Value, frozenset[int]] = {}
        self.implied: dict[Value, tuple[Any, Any]] = {}
        # Arrays that a scalar makes float64: lines, and what happened there.
        self.casts: list[Cast] = [] if parent is None else parent.casts
        # Of arrays whose first axis has a length that each call binds: these, by name (see `lengths`).
        self.lengths: dict[str, Tracer] = {}
        # Of what is traced in their place, them or copies with more rows: the arrays.
        self.sized: dict[Storage, Tracer] = {}
        self.unasked = False  # what is read is no program's wish
        # They wrap here, since what is checked would be checked in one order for all examples.
        self.wraps: bool = parent is not None and parent.wraps
        self._lifted: dict[Value, Value] = {}
        self._arrays: dict[int, list[Capture]] = {}  # captures of an ndarray, by its id

    def capture(self, array: Array) -> Value:
        """The value of an ndarray from outside. It is read again at each call, not frozen.

        An array that the user's own code changes while tracing (a NumPy buffer filled step by step)
        is captured once per state.
        """
        if self.parent is not None:
            return self.lift(self.parent.capture(array), self.parent)
        if self.eager:
            native = array.astype(array.dtype.newbyteorder("="), copy=False)
            return self.builder.const(native)
        captures = self._arrays.setdefault(id(array), [])
        if captures and _same_bits(captures[-1].snapshot, array):
            return captures[-1].param
        param = self.graph.add_param(type_of(array))
        capture = Capture(array, param, array.copy())
        captures.append(capture)
        self.captures.append(capture)
        return param

    def let_go(self, array: Array) -> None:
        """Keep what was captured of an array, and of others in its memory, but not these arrays."""
        root = self
        while root.parent is not None:
            root = root.parent
        memory = _memory(array)
        for capture in root.captures:
            outer = capture.outer
            if isinstance(outer, np.ndarray) and _memory(outer) is memory:
                root._arrays.pop(id(outer), None)
                capture.outer = capture.snapshot

    def capture_on_device(self, array: DeviceArray) -> Value:
        """The value of an array in a GPU's memory, which never changes."""
        if self.parent is not None:
            return self.lift(self.parent.capture_on_device(array), self.parent)
        if self.eager:
            return self.builder.const(np.asarray(array))
        captures = self._arrays.setdefault(id(array), [])
        if not captures:
            param = self.graph.add_param(TensorType(array.shape, array.dtype))
            captures.append(Capture(array, param))
            self.captures.append(captures[0])
        return captures[0].param

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
            if outer.type == TensorType((), I64):
                self.reaches[inner] = remembered(outer, self.parent.reaches)
                if outer in self.parent.steps:
                    self.steps.add(inner)
            if isinstance(self.builder, EagerBuilder):
                assert isinstance(self.parent.builder, EagerBuilder), "eager inside a graph trace"
                self.builder.arrays[inner] = self.parent.builder.arrays[outer]
                if outer in self.parent.builder.active:
                    self.builder.active.add(inner)
        return inner

    def lifted(self) -> Iterable[tuple[Value, Value]]:
        """The values of the enclosing trace that are used here, with what they are here."""
        return self._lifted.items()

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
    with native_calls_held():
        reset = CURRENT.set(trace)
        try:
            yield trace
        finally:
            CURRENT.reset(reset)
            trace.done = True


def bounds_checked() -> bool:
    """Whether indices that are known only when the code runs are to be checked."""
    trace = CURRENT.get()
    return trace is None or trace.options.boundscheck


def require_trace() -> Trace:
    """The trace in progress; LeakedTracerError if there is none."""
    trace = CURRENT.get()
    if trace is None:
        complain(
            errors.LeakedTracerError,
            "a tracer was used outside of the call that it stands for",
            "return the array from the function instead of storing it in a global, an attribute, "
            "a list or a cache.",
        )
    return trace


def lifted(b: Builder, values: Sequence[Value], owner: Trace) -> list[Value]:
    """Values of `owner` in the trace that `b` builds: what a view refers to beside its base, which a
    branch or a loop inside may have taken over."""
    trace: Trace | None = require_trace()
    while trace is not None and trace.builder is not b:
        trace = trace.parent
    return [v if trace is None else trace.lift(v, owner) for v in values]


def _same_bits(a: Array | None, b: Array) -> bool:
    return a is not None and a.shape == b.shape and a.tobytes() == b.tobytes()
