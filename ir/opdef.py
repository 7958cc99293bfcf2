"""What an op is: one record per op, from which everything else is derived or checked.

`OpDef` holds everything about an op that is not code generation: type rule, NumPy reference,
derivatives, batching. Families fill in the shared rules (see `elementwise`, `linear`, ... in
`ops.families`). `OPS` is the registry; tests walk it and fail on a record that is incomplete.

Rules are plain functions:

- `infer(*types, **attrs)` gives the result type (or a tuple of types). Operand types come as
  `TensorType`; a structured op also gets `regions=`. It raises `GraphError` on wrong operands.
- `reference(*arrays, **attrs)` computes the op with NumPy. It defines the meaning. It returns an
  array of exactly the inferred dtype and shape (a tuple for several results), and may return a view.
- `jvp(b, op, tangents)` gives one tangent per result, or None for zero. `tangents` has one entry per
  operand, None standing for zero. `b` is a `Builder`; `op` lives in the graph that `b` appends to.
- `vjp(b, op, cotangents, wanted)` gives one cotangent per operand (None for zero, or where
  `wanted[i]` is false). `cotangents` has one entry per result, None standing for zero.
- `batch(b, op, operands, batched)` gives `(results, batched_results)`. `b` is a `BatchBuilder`, which
  knows how many examples there are; `operands` are values of its graph, and those marked in `batched`
  have a leading dimension, one entry per example. So have the results that the rule marks. It is asked
  where an operand is batched, and where `op` has effects or needs the mask `b.active` (`batching`).

A structured op is computed along with its derivative, so that its regions run once. Its rules
stand in for the op itself, and have other signatures; `forward` says that it is so:

- `jvp(b, op, tangents)` gives `(results, tangents)`, one of each per result.
- `forward(b, op, wanted, needed)` appends the forward part and gives `(results, saved)`; `needed`
  says which results get cotangents, `saved` is anything.
- `vjp(b, op, cotangents, wanted, saved)` appends the backward part. `op` itself is in no graph.

Integer and bool values carry no derivative: rules are never asked for their tangents. The tangent
or cotangent of a tape is a tape. A rule is asked only where a tangent is not None, or a cotangent is
not and an operand is wanted: so that of an op of one operand or one result need not look.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from importlib import import_module
from typing import Any, TypedDict

from .cost import OF_FAMILY, Cost
from .faults import DerivativeError as DerivativeError
from .faults import GraphError as GraphError
from .faults import LoweringError as LoweringError
from .record import field, record, replace


class Commutes(IntEnum):
    """Whether the two operands, of real numbers, may be exchanged."""

    NO = 0
    VALUES = 1  # up to the sign of a zero, which of two NaNs it is, and rounding
    BITS = 2


class Facts(TypedDict, total=False):
    """What a record may say of its op beside the rules. Nobody else keeps lists of such ops.

    moves:       see `OpDef.only_moves`
    pointwise:   an element is computed from elements of the operands, wherever it is used
    view:        ... and is one of the operand's, at an index that follows from its own alone
    repeats:     an element of the operand may be read for many elements of the result
    overwritten: the result is the first operand but for some elements; the function (b, op) reads
                 what these are in the operand
    total:       it may run for nothing: it does not raise (except with mode="check"), it comes to
                 an end, and nobody sees it run (regions speak for themselves)
    commutative: see `Commutes`
    idempotent:  f(x, x) is x
    combiner:    the op of two operands by which this one folds or scans
    wraps:       of integers, the result is what remains of a number that may not fit
    unbounded:   an infinite element of a real operand makes an element that is not finite
    asks:        what it tells of NaN and infinity, or makes of them, is what it is called for
    remembers:   an effect that keeps values, which later effects give: no derivative sees that
    """

    moves: bool | Callable[..., bool]
    pointwise: bool
    view: bool
    repeats: bool
    overwritten: Callable[..., Any]
    total: bool
    commutative: Commutes
    idempotent: bool
    combiner: str
    wraps: bool
    unbounded: bool
    asks: bool
    remembers: bool
    attrs: tuple[str, ...]
    doc: str


@record(eq=False)
class OpDef:
    """One op. See the module's docstring for the rules' signatures."""

    name: str
    # elementwise | linear | bilinear | reduction | scan | opaque | structured | tape | effect | source
    family: str
    infer: Callable[..., Any]
    reference: Callable[..., Any]
    jvp: Callable[..., Any] | None = None
    vjp: Callable[..., Any] | None = None
    forward: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None
    # The facts that passes, derivatives and code generation ask for (see `Facts`).
    cost: Cost = field(default=None)  # its family's, where a record does not say (`register`)
    moves: bool | Callable[..., bool] = False
    pointwise: bool = False
    view: bool = False
    repeats: bool = False
    overwritten: Callable[..., Any] | None = None
    total: bool = True
    commutative: Commutes = Commutes.NO
    idempotent: bool = False
    combiner: str = ""
    wraps: bool = False
    unbounded: bool = False
    asks: bool = False
    remembers: bool = False
    dtypes: str = "biufc"  # NumPy kind codes accepted for the operands: the tests sample from these
    attrs: tuple[str, ...] = ()  # names of the attributes, in printing order
    regions: int = 0
    effect: bool = False  # takes a token as its last operand and gives one as its last result
    doc: str = ""
    extra: dict[str, Any] = field(default_factory=dict)  # a family's own data, e.g. partials

    @property
    def updates(self) -> bool:
        """Whether the result is the first operand but for some elements."""
        return self.overwritten is not None

    def only_moves(self, attrs: dict[str, Any]) -> bool:
        """Whether elements are moved, kept and handed on, but not computed with.

        Of floats of 16 and 8 bits such an op takes the bits; all others compute in float32 and round
        each result once, the reference included (`interpreter.evaluate_op`).
        """
        if self.family in ("structured", "source", "tape"):
            return True
        return self.moves(attrs) if callable(self.moves) else self.moves


Origin = tuple[str, int]


def importing() -> Origin:
    """The module that is being imported, and its line: whose definitions those are that come now.

    An import that failed, or was interrupted, is tried again, and then the same lines come again.
    """
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_globals["__name__"], frame.f_lineno


class _Registry(Mapping[str, OpDef]):
    """The ops by name. The modules that define them are imported when one is asked for."""

    def __init__(self) -> None:
        self.records: dict[str, OpDef] = {}
        self.complete = False  # set by `ops`, at its end

    def load(self) -> dict[str, OpDef]:
        if not self.complete:
            import_module(".ops", __package__)  # another thread's import is waited for
        return self.records

    def __getitem__(self, name: str) -> OpDef:
        return self.records.get(name) or self.load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.load())

    def __len__(self) -> int:
        return len(self.load())


OPS = _Registry()
_origins: dict[str, Origin] = {}


def register(definition: OpDef) -> OpDef:
    """Enter a record into `OPS`; ValueError if it has the name of another or no cost."""
    if _origins.setdefault(definition.name, importing()) != importing():
        raise ValueError(f"op {definition.name!r} is defined twice")
    if definition.cost is None:
        if definition.family not in OF_FAMILY:
            raise ValueError(f"op {definition.name!r} does not say what it costs")
        definition = replace(definition, cost=OF_FAMILY[definition.family])
    definition.extra.setdefault("examples", ())
    OPS.records[definition.name] = definition
    return definition
