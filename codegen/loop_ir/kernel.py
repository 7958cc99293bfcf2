"""The loop IR: kernels as loop nests over index spaces, with scalar expressions inside.

    Kernel    outer loops shared by everything in it, and nests run in order at each outer point
    Nest      inner loops shared by a list of stages
    Stage     what one materialised value needs: a value to store or to reduce at each point

A kernel for `softmax` over rows has one outer loop (the rows) and three nests over the columns: a
maximum, an exponential that is stored and summed, a division. A kernel for a chain of elementwise ops
has only outer loops. A program is a list of kernels and other `steps`. Nothing here knows LLVM,
vectors or threads: `schedule` decides those, and each target has an emitter of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ir.graph import Knobs, Op, SourceLine
from ...ir.record import field, record
from ..journal import Subject
from ..scalar import Expr, nodes_of
from .index import Index, Var, contiguous_strides, linear, of_var

DType = np.dtype[Any]


class Array:
    """Memory for one value: an input, an output, a constant, or a temporary.

    `strides` are in elements. `offset` (bytes into the arena) is set by the memory plan for the kind
    "temp". `data` holds a constant's contents. An input or output begins `start` elements into its
    buffer: the parts of complex numbers share one.
    """

    __slots__ = (
        *("shape", "dtype", "kind", "strides", "name", "position", "offset", "data", "start"),
        "apart",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        kind: str = "temp",
        *,
        strides: tuple[int, ...] | None = None,
        position: int = -1,
        name: str = "",
        data: np.ndarray[Any, Any] | None = None,
        start: int = 0,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.kind = kind  # input | output | const | temp | slot (a loop carry: the pointer changes)
        self.strides = contiguous_strides(shape) if strides is None else strides
        self.position = position
        self.name = name
        self.offset = -1
        self.data = data
        self.start = start
        self.apart = False  # nothing that reads it shares loops with what writes it

    @property
    def size(self) -> int:
        size = 1
        for n in self.shape:
            size *= n
        return size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_injective(self) -> bool:
        """Whether each element surely has a place of its own."""
        reach = 1
        for step, n in sorted((abs(s), n) for s, n in zip(self.strides, self.shape, strict=True)):
            if n > 1 and step < reach:
                return False
            reach += step * (n - 1)
        return True

    @property
    def contiguous(self) -> bool:
        return self.strides == contiguous_strides(self.shape) or self.size <= 1

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name or hex(id(self))} {self.dtype}{list(self.shape)}>"


class Access:
    """A position in an array: one index per dimension."""

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: tuple[Index, ...]) -> None:
        self.array = array
        self.index = index

    @property
    def flat(self) -> Index:
        """The offset in elements."""
        return linear(self.index, self.array.strides)

    def __repr__(self) -> str:
        return f"{self.array!r}{list(self.index)}"


def indices_of(expr: Expr) -> list[Index]:
    """Every index in an expression: positions of loads, and indices as values."""
    indices: list[Index] = []
    for node in nodes_of(expr):
        if node.op == "load":
            indices += node.attr.index
        elif node.op == "index":
            indices.append(node.attr)
    return indices


class Bound:
    """A bounds check: the operand must lie in -size..size-1; gives it normalised to 0..size-1.

    `clip` clamps silently instead (the user asked for it by name). Otherwise error site `site` is
    reported when the kernel is done, or none, 0, where something else checks the same; and element 0 is
    read instead of the wrong one.
    """

    __slots__ = ("size", "site", "clip")

    def __init__(self, size: int, site: int, clip: bool) -> None:
        self.size = size
        self.site = site
        self.clip = clip


class Demand:
    """A condition that must hold wherever the value is wanted; else error site `site` is reported, or,
    without one, it is told."""

    __slots__ = ("site",)

    def __init__(self, site: int = 0) -> None:
        self.site = site


class Chunks(NamedTuple):
    """A reduction's stage reduces chunks of a loop of `total` iterations, the last one maybe shorter.

    `dims[axis]` counts the chunks, and the first loop that is reduced over, `dims[outer]`, runs over the
    `length` elements of one.
    """

    axis: int
    length: int
    total: int


@record(frozen=False, eq=False)
class Stage:
    """At each point of `dims`, compute `value` and do `action` with it.

    action "store": write it to `array[index]`.
    action "reduce": combine over the last `len(dims) - outer` dims by `op`, then write to `array`
        at the outer dims. `op` is sum, prod, max, min, any, all, argmax or argmin.
    action "scan": as reduce, over the last dim, writing each running value to `array[index]`;
        from the last to the first if `reverse` (only for targets whose own lowerings ask for it).
    action "update": read-modify-write `array[index]` with `op` (set, add, multiply, min, max), in order.
    action "scatter": as update, all points at once; only those `where` it holds (None: all of them).
        Points with the same index must not need an order.
    """

    array: Array
    dims: tuple[Var, ...]
    value: Expr
    action: str = "store"
    op: str = ""
    outer: int = -1  # of `dims`, how many the result has; -1: all
    index: tuple[Index, ...] = ()
    reads: list[Access] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    sources: list[Op] = field(default_factory=list)  # those of the graph that `value` computes
    loc: SourceLine | None = None
    cost: int = 0
    chunks: Chunks | None = None
    whole: bool = True  # writes every element of `array`
    ordered: bool = False  # overwrites what an earlier stage wrote: joins no kernel
    shared: int = 0  # of an update: how many of its first loops write elements of their own
    reverse: bool = False
    partial: int = 0  # of a reduction by chunks: how many of its first loops count chunks
    where: Expr | None = None
    knobs: Knobs | None = None  # how the user wants it to run

    def __post_init__(self) -> None:
        if self.outer < 0:
            self.outer = len(self.dims)
        if not self.index and self.action in ("store", "reduce"):
            self.index = self.point[: self.outer]

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(v.extent for v in self.dims)

    @property
    def subject(self) -> Subject:
        """What notes call it."""
        return Subject(self.ops[0] if self.ops else self.op or self.action, self.loc)

    @property
    def point(self) -> tuple[Index, ...]:
        """Where its loops are."""
        return tuple([of_var(v) for v in self.dims])

    @property
    def write(self) -> Access:
        """Where the stage writes."""
        return Access(self.array, self.index)

    @property
    def accesses(self) -> list[Access]:
        """All that the stage reads, and what it writes."""
        return [*self.reads, self.write]


@record(frozen=False, eq=False)
class Nest:
    """Stages that share their inner loops; `dims` are the inner variables of the first stage."""

    stages: list[Stage]
    outer: int

    @property
    def extents(self) -> tuple[int, ...]:
        return self.stages[0].extents[self.outer :]


@record(frozen=False, eq=False)
class Kernel:
    """Outer loops over `extents`, and the nests run at each outer point."""

    extents: tuple[int, ...]
    nests: list[Nest]
    name: str = ""
    local: set[Array] = field(default_factory=set)  # arrays that live only inside one outer point
    ordered: bool = False  # outer points must run one after the other

    @property
    def stages(self) -> list[Stage]:
        return [s for nest in self.nests for s in nest.stages]

    @property
    def locs(self) -> tuple[SourceLine, ...]:
        """The lines of all that it computes, each once."""
        own = (loc for s in self.stages for loc in (*(op.loc for op in s.sources), s.loc))
        return tuple(dict.fromkeys(loc for loc in own if loc is not None))

    @property
    def subject(self) -> Subject:
        """What notes call it: its last stage."""
        return self.stages[-1].subject

    @property
    def idempotent(self) -> bool:
        """Whether doing a point twice does no harm: nothing in memory is both read and written."""
        written = {s.array for s in self.stages} - self.local
        plain = all(s.action in ("store", "reduce") for s in self.stages)
        return plain and not any(a.array in written for s in self.stages for a in s.reads)
