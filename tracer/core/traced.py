"""What a trace leaves: the traced function, its results, and what it captures.

Calls need these records, in processes that trace nothing, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...ir.graph import Graph, SourceLine, Value
from ...ir.record import field, record, replace
from ...runtime.cuda.array import DeviceArray
from ..data import pytree

if TYPE_CHECKING:
    from .tracers import Storage, Tracer

Array = np.ndarray[Any, Any]


@record
class Result:
    """One leaf of what the function returned.

    `output` is an index into the graph's outputs; or `argument` is a graph parameter that is
    returned itself, through `views` (functions of ndarrays) if it is a view of it; or the leaf is
    `static`, no array at all.
    """

    output: int | None = None
    argument: int | None = None
    views: tuple[Callable[[Array], Array], ...] = ()
    static: Any = None
    weak: str | None = None
    scalar: bool = False
    strides: tuple[int, ...] | None = None  # as NumPy's array would lie, if not in order C


class LastingView:
    """Base of what makes of an array what users see, and means the same in another process."""


@record
class Presented:
    """A result that users see through a function of its array."""

    value: Tracer
    view: Callable[[Array], Any]


@record(frozen=False)
class Traced:
    """A traced function.

    `graph.params` are the traced leaves in order, then one per entry of `captures`. `graph.outputs`
    are the array results, then the final values of the `mutated` parameters (indices). `arrays` holds
    the ndarray of every value of an eager trace. `token` is the last of its effects, None without.
    Native code writes to the parameters that are `overwritten` itself. `advanced` are states of
    enclosing traces, and the values of the graph that they have afterwards (see `streams`). `casts`
    are arrays that a scalar made float64. `lengths` are names of the last parameters, which are
    lengths of axes that a call binds.
    """

    graph: Graph
    out_tree: pytree.TreeDef
    results: list[Result]
    captures: list[Capture]
    mutated: list[int] = field(default_factory=list)
    arrays: dict[Value, Array] | None = None
    token: Value | None = None
    overwritten: list[int] = field(default_factory=list)
    advanced: list[tuple[Storage, Value]] = field(default_factory=list)
    casts: list[Cast] = field(default_factory=list)
    lengths: tuple[str, ...] = ()

    def settled(self, in_place: Sequence[tuple[int, int]]) -> Traced:
        """As compiled: some outputs have taken the place of parameters, which are `overwritten`."""
        if not in_place:
            return self
        in_arguments = dict(in_place)
        count = len(self.graph.outputs)
        left = [k for k in range(count) if k not in in_arguments]
        number = {k: position for position, k in enumerate(left)}
        first = count - len(self.mutated)
        results = [
            r
            if r.output is None
            else replace(r, output=None, argument=in_arguments[r.output])
            if r.output in in_arguments
            else replace(r, output=number[r.output])
            for r in self.results
        ]
        mutated = [p for k, p in enumerate(self.mutated, first) if k not in in_arguments]
        return replace(
            self, results=results, mutated=mutated, overwritten=list(in_arguments.values())
        )

    @property
    def weak(self) -> list[str | None]:
        """Weak kinds of the array results, in the order of the graph's outputs."""
        count = len(self.graph.outputs) - len(self.mutated)
        kinds: list[str | None] = [None] * count
        for result in self.results:
            if result.output is not None:
                kinds[result.output] = result.weak
        return kinds


class Capture:
    """A value from outside that a trace reads: hidden parameter `param`.

    `outer` is a Value of the parent trace, or for an outermost trace the captured array itself,
    which is `private` if the traced function made it and nobody else can reach it.
    """

    __slots__ = ("outer", "param", "private", "snapshot")

    def __init__(
        self, outer: Value | Array | DeviceArray, param: Value, snapshot: Array | None = None
    ) -> None:
        self.outer: Any = outer
        self.param = param
        self.snapshot = snapshot
        self.private = False


class Cast(NamedTuple):
    """An array that became float64 beside a scalar: where, the array's dtype, and the scalar."""

    loc: SourceLine | None
    dtype: str
    scalar: str
    python: bool
