"""What an array is for a function that is traced for any length of its first axis, and what the function
may do with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ir.record import record
from ...ir.types import I64, TensorType
from ..core.specs import Spec
from ..data import pytree
from ..data.shapes import ShapeDtype
from ..messages import errors
from ..messages.errors import TraceAgain, complain

if TYPE_CHECKING:
    from ..core.trace import Trace
    from ..core.traced import Traced


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
    """What an array is for the function that is traced: its first axis has the length `name`."""

    name: str

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
            trace.reaches[value] = (0, leaf.shape[0])
        return Bounded(leaf, {0: count})


def whole_results(out: Any, trace: Trace) -> Any:
    """What a function returns: arrays that are as long as an argument are the padded ones, which
    compiled code makes as long as they are to be. NotGeneral for views of arguments."""
    from ..indexing.bounded import Bounded

    counts = {id(count._storage.value): count for count in trace.lengths.values()}

    def whole(leaf: Any) -> Any:
        if not isinstance(leaf, Bounded):
            return leaf
        value = leaf.counts[0]._storage.value if set(leaf.counts) == {0} else None
        length = counts.get(id(value))
        if length is None:
            return leaf
        padded = leaf.padded
        if value is None or padded.shape[0] != trace.reaches[value][1]:
            raise NotGeneral("a result is shorter than the axis that its length is of")
        whole = padded
        while whole._view is not None:
            whole = whole._view.base
        if whole is not padded and whole._storage.parameter is not None:
            raise NotGeneral("the function returns a view of an argument")
        return padded

    leaves, tree = pytree.flatten_whole(out)
    return pytree.unflatten(tree, [whole(leaf) for leaf in leaves])


def refuse_changes(traced: Traced, specs: Sequence[Any]) -> None:
    """NotGeneral for a function that assigns to an argument whose axis has a length. `specs` are those
    of the leaves."""
    explicit = [spec for spec in specs if isinstance(spec, Spec)]
    if any(
        isinstance(spec.holder, Sized) for k, spec in enumerate(explicit) if k in traced.mutated
    ):
        raise NotGeneral("the function assigns to an argument whose first axis has any length")


def _identifier(name: str) -> str:
    return name if name.isidentifier() else "length"
