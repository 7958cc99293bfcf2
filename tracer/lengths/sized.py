"""What an array is for a function that is traced for any length of its first axis, and what the function
may do with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...ir.record import record
from ...ir.types import I64, TensorType
from ..data import pytree
from ..data.shapes import ShapeDtype
from ..messages import errors
from ..messages.errors import TraceAgain, complain

if TYPE_CHECKING:
    from ..core.trace import Trace
    from ..core.tracers import Tracer


ROUNDS = 8  # after so many refusals a call is given up


class OneSize(TraceAgain):
    """A call cannot be compiled for any length: it is compiled for the one that it has."""


def refuse_opened(error: BaseException, arguments: Any) -> None:
    """DynamicShapeError if among the arguments there is a ShapeDtype of any length."""
    leaves = pytree.flatten(arguments)[0]
    if any(isinstance(leaf, ShapeDtype) and leaf.length is not None for leaf in leaves):
        complain(
            errors.DynamicShapeError,
            f"this cannot be compiled for any length of an axis: {error.__cause__ or error}",
            "give the sizes.",
        )


class NotGeneral(Exception):
    """Why not."""


@record
class Sized:
    """What an array is for the function that is traced: its first axis has the length `name`. Where it
    is `padded`, the function works on a copy of so many rows, of which it counts the first ones."""

    name: str
    padded: int = 0

    def __call__(self, leaf: Any) -> Any:
        # Only tracing wants these.
        from ..core.trace import require_trace
        from ..core.tracers import parameter
        from ..indexing.bounded import Bounded

        trace = require_trace()
        count = trace.lengths.get(self.name)
        if count is None:
            count = parameter(trace, TensorType((), I64), _identifier(self.name), weak="i")
            count._storage.parameter = None  # no argument of the caller's
            value = count._storage.value
            trace.lengths[self.name] = count
            trace.reaches[value] = (0, self.padded or leaf.shape[0])
        rows = _copied(leaf, count, self.padded) if self.padded else leaf
        trace.sized[rows._storage] = leaf
        return Bounded(rows, {0: count})


def _copied(leaf: Tracer, count: Tracer, rows: int) -> Tracer:
    """The rows of an argument that are there, and zeros behind them."""
    from ..arrays.common import build
    from ..core.tracers import as_value, wrap
    from ..indexing.bounded import resized

    ends = build().const(0, I64), as_value(count)
    window = build().bounded_slice(as_value(leaf), *ends, axes=(0,), steps=(1,))
    # An array of its own: of an axis that is cut there would be a view.
    return wrap(as_value(resized(wrap(window, scalar=False), 0, rows)), scalar=False)


def whole_results(out: Any, trace: Trace, capacities: Mapping[str, int]) -> Any:
    """What a function returns: arrays that are as long as an argument have the capacity of its axis, by
    the name of the length, and compiled code makes them as long as they are to be. NotGeneral for an
    argument that is assigned to, and a view of one that an index of numbers does not give."""
    from ..core.tracers import Tracer
    from ..indexing.bounded import Bounded, resized

    names = {n._storage.value: name for name, n in trace.lengths.items()}
    if any(storage.version for storage in trace.sized):
        raise NotGeneral("the function assigns to an argument whose first axis has any length")

    def whole(leaf: Any) -> Any:
        padded = leaf.padded if isinstance(leaf, Bounded) else leaf
        argument = trace.sized.get(padded._storage) if isinstance(padded, Tracer) else None
        if argument is not None:
            view = _view_of(argument, padded)
            if view is None and isinstance(leaf, Bounded):
                raise NotGeneral("the function returns a view of an argument")
            return leaf if view is None else view
        if not isinstance(leaf, Bounded):
            return leaf
        value: Any = leaf.counts[0]._storage.value if set(leaf.counts) == {0} else None
        name = names.get(value)
        if name is None:
            return leaf
        if padded.shape[0] != trace.reaches[value][1]:
            raise NotGeneral("a result is shorter than the axis that its length is of")
        return resized(padded, 0, capacities[name])

    leaves, tree = pytree.flatten_whole(out)
    return pytree.unflatten(tree, [whole(leaf) for leaf in leaves])


def _view_of(argument: Tracer, x: Tracer) -> Tracer | None:
    """What NumPy makes of an argument for `x`, a view of what stands for it; None if it cannot."""
    from ..core.tracers import Tracer, ViewStep
    from ..core.tracing import numpy_views

    steps = numpy_views(x, any_length=True)
    if not steps:
        return None if steps is None else argument

    def made(a: Any) -> Any:
        for step in steps:
            a = step(a)
        return a

    step = ViewStep(argument, lambda b, v: x.value, None, made, x.value)
    return Tracer(argument._storage, x.type, x.weak, False, step, x._strides)


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "length"
