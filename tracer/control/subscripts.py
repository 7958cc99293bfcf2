"""Which elements of the arrays that it carries an iteration of a loop reads and writes.

    for i in prange(n):
        a[i + 1] = a[i] + b[i]      writes a at [i + 1], reads a at [i]

A position is a sum: of the iteration's number, of the numbers of inner loops, of what is the same in all
iterations. What is anything else is not known, and neither is what a branch or a `while` may leave out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...ir.chains import INVERSE, combination, step_of
from ...ir.graph import Graph, Op, SourceLine, Value
from ...ir.record import record
from ...ir.types import TensorType, is_integer
from ..core.linear_forms import same_value

_COMBINES = {"add": "add", "multiply": "mul", "min": "minimum", "max": "maximum"}


@record(eq=False)
class Counter:
    """The number of an iteration, from 0; `length` is None where nobody knows it."""

    length: int | None


Atom = Counter | Value


@record
class Form:
    """A sum of numbers, each so many times, and a constant."""

    terms: Mapping[Atom, int]
    constant: int = 0

    def plus(self, other: Form, times: int = 1) -> Form:
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            terms[atom] = terms.get(atom, 0) + times * factor
        terms = {atom: factor for atom, factor in terms.items() if factor}
        return Form(terms, self.constant + times * other.constant)


@record
class Span:
    """Positions along an axis: `size` of them from `start` on; with None wherever that is."""

    start: Form | None
    size: int


@record
class Access:
    """Elements of the array that is carry `carry`; `extents` is its shape.

    `combine` is the operation by which the elements are updated, "" if they are read or replaced.
    """

    carry: int
    spans: tuple[Span, ...]
    extents: tuple[int, ...]
    writes: bool
    combine: str
    line: SourceLine | None


@record
class _Part:
    """The part of a carry that a value is: where along each of the carry's axes, and which of these are
    the value's own."""

    carry: int
    spans: tuple[Span, ...]
    axes: tuple[int, ...]

    def at(self, places: Mapping[int, Span], kept: Sequence[int]) -> _Part:
        """The part of it at `places`, by its own axes, of which it keeps some."""
        spans = list(self.spans)
        for d, place in places.items():
            spans[self.axes[d]] = place
        return _Part(self.carry, tuple(spans), tuple(self.axes[d] for d in kept))


class Accesses:
    """Collects the accesses that every iteration of a loop is sure to make."""

    def __init__(self, carries: Sequence[Value], extents: Sequence[tuple[int, ...]]) -> None:
        self.found: list[Access] = []
        self.extents = extents
        self.forms: dict[Value, Form | None] = {}
        self.parts = {
            v: _Part(k, tuple(Span(Form({}), n) for n in extents[k]), tuple(range(len(extents[k]))))
            for k, v in enumerate(carries)
            if extents[k]
        }

    def walk(self, graph: Graph, sure: bool = True) -> None:
        users = graph.users()
        updates = {op: read for op in graph.ops if (read := running_read(op, users)) is not None}
        skipped = {op for read in updates.values() for op in read}
        live = _live(graph)
        for op in graph.ops:
            if op in skipped or op not in live:
                continue
            if op.regions:
                self._structured(op, sure)
            elif op.definition.updates:
                self._update(op, sure, op in updates)
            elif op.name in ("gather", "slice", "dynamic_slice", "reshape"):
                self._view(op, sure)
            else:
                self._reads(op.operands, op, sure)

    def is_whole(self, value: Value, carry: int) -> bool:
        """Whether a value is all of a carry as it stands, updates of its parts included."""
        while value not in self.parts and value.op is not None and value.op.name == "reshape":
            value = value.op.operands[0]  # axes of one element more or less: `v = c[0]` of one row
        part = self.parts.get(value)
        if part is None or part.carry != carry or list(part.axes) != sorted(part.axes):
            return False
        sizes = zip(part.spans, self.extents[carry], strict=True)
        return all(span.size == n for span, n in sizes)

    # Positions.

    def form(self, value: Value) -> Form | None:
        if value not in self.forms:
            self.forms[value] = self._form(value)
        return self.forms[value]

    def _form(self, value: Value) -> Form | None:
        op = value.op
        if op is None or not isinstance(value.type, TensorType) or value.type.size != 1:
            return None
        if op.name == "constant" and is_integer(value.dtype):
            return Form({}, int(op.attrs["value"].item()))
        if op.name in ("reshape", "broadcast") or (
            op.name == "convert" and is_integer(value.dtype)
        ):
            return self.form(op.operands[0])
        if op.name in ("add", "sub", "mul", "neg"):
            forms = [self.form(v) for v in op.operands]
            if any(f is None for f in forms):
                return None
            return _arithmetic(op.name, forms)  # type: ignore[arg-type]
        return None

    def _along(self, span: Span, n: int, start: Form | None, size: int) -> Span:
        """`size` places from `start` on among those of `span`, along an axis of `n`."""
        if start is None or span.start is None:
            return Span(None, size)
        if span.size == n:
            return Span(start, size)
        if start.terms or start.constant < 0:
            return Span(None, size)  # it may be counted from the end
        return Span(span.start.plus(start), size)

    # Accesses.

    def _add(self, part: _Part, op: Op, sure: bool, writes: bool, combine: str = "") -> None:
        if sure:
            shape = self.extents[part.carry]
            self.found.append(Access(part.carry, part.spans, shape, writes, combine, op.loc))

    def _reads(self, values: Iterable[Value], op: Op, sure: bool) -> None:
        for v in values:
            part = self.parts.get(v)
            if part is not None:
                self._add(part, op, sure, False)

    def _view(self, op: Op, sure: bool) -> None:
        """An element is read where it is taken out; what is larger may be used in part only."""
        base, *where = op.operands
        self._reads(where, op, sure)
        part = self.parts.get(base)
        made = None if part is None else self._within(part, op, base, op.result, where)
        if made is not None:
            self.parts[op.result] = made
            if not made.axes:
                self._add(made, op, sure, False)
                del self.parts[op.result]

    def _within(
        self, part: _Part, op: Op, base: Value, inner: Value, where: Sequence[Value]
    ) -> _Part | None:
        """Which part `inner` is of the part `base`, where `op` says; None where it does not."""
        rank = len(base.shape)
        if op.name == "reshape":
            kept = [d for d, n in enumerate(base.shape) if n != 1]
            plain = [base.shape[d] for d in kept] == [n for n in inner.shape if n != 1]
            units = iter([d for d, n in enumerate(base.shape) if n == 1])
            large = iter(kept)
            axes = [next(units if n == 1 else large, None) for n in inner.shape] if plain else []
            known = [d for d in axes if d is not None]
            return part.at({}, known) if plain and len(known) == len(axes) else None
        starts: Sequence[tuple[int, Form | None, int]]
        if op.name in ("gather", "scatter"):
            axes = op.attrs["axes"]
            if tuple(axes) != tuple(range(len(axes))) or any(v.shape for v in where):
                return None
            starts = [(d, self.form(v), 1) for d, v in enumerate(where)]
            kept = list(range(len(axes), rank))
        elif where:
            starts = [(d, self.form(v), inner.shape[d]) for d, v in enumerate(where)]
            kept = list(range(rank))
        else:
            sizes = zip(op.attrs["start"], op.attrs["step"], inner.shape, strict=True)
            starts = [
                (d, Form({}, at) if step == 1 or n == 1 else None, n)
                for d, (at, step, n) in enumerate(sizes)
            ]
            kept = list(range(rank))
        extents = self.extents[part.carry]
        places = {}
        for d, start, size in starts:
            axis = part.axes[d]
            places[d] = self._along(part.spans[axis], extents[axis], start, size)
        return part.at(places, kept)

    def _update(self, op: Op, sure: bool, running: bool) -> None:
        base, update, *where = op.operands
        origin = self._origin(update)
        self._reads(where if origin is not None else op.operands[1:], op, sure)
        part = self.parts.get(base)
        if part is None:
            return
        self.parts[op.result] = part
        if origin == part.carry:
            return  # a part is put back: what was written of it has been seen
        written = self._within(part, op, base, update, where)
        if written is not None:
            combine = _COMBINES.get(op.attrs.get("combine", "set"), "")
            if running:
                combine = combination(_moved(update).op)
            self._add(written, op, sure, True, combine)

    def _origin(self, value: Value) -> int | None:
        """The carry that a value was taken from, and only moved or updated since."""
        while value not in self.parts:
            op = value.op
            if op is None or not (op.definition.view or op.definition.updates):
                return None
            value = op.operands[0]
        return self.parts[value].carry

    # Regions.

    def _structured(self, op: Op, sure: bool) -> None:
        if op.name == "cond":
            for region in op.regions:
                self._enter(region, op.operands[1:], {})
                self.walk(region, False)
            ends = [[self.parts.get(v) for v in r.outputs] for r in op.regions]
            for result, parts in zip(op.results, zip(*ends, strict=True), strict=True):
                if parts[0] is not None and all(p == parts[0] for p in parts):
                    self.parts[result] = parts[0]
            return
        if op.name not in ("scan", "while"):
            self._reads(op.operands, op, sure)
            return
        first, body = op.attrs["consts"], op.regions[-1]
        length = op.attrs.get("length")
        count = Counter(length)
        carries = op.attrs.get("carries", len(op.operands) - first)
        known: dict[int, Form | None] = dict.fromkeys(range(first, first + carries))
        for k in range(carries):
            step = step_of(body.outputs[k], body.params[first + k])
            start = self.form(op.operands[first + k])
            if step is not None and start is not None:
                known[first + k] = start.plus(Form({count: step}))
        before = len(self.found)
        for region in op.regions:
            self._enter(region, op.operands[: len(region.params)], known)
            self.walk(region, sure and length is not None and length > 0)
        for k, result in enumerate(op.results[:carries]):
            part = self.parts.get(op.operands[first + k])
            if part is not None and part == self.parts.get(body.outputs[k]):
                self.parts[result] = part
            elif part is not None:
                del self.found[before:]  # arrays change places

    def _enter(
        self, region: Graph, operands: Iterable[Value], known: Mapping[int, Form | None]
    ) -> None:
        for i, (param, operand) in enumerate(zip(region.params, operands, strict=False)):
            self.forms[param] = known[i] if i in known else self.form(operand)
            part = self.parts.get(operand)
            if part is not None and param.type == operand.type:
                self.parts[param] = part


def _live(graph: Graph) -> set[Op]:
    """The ops that something comes of: a view that is only assigned to is read by nobody."""
    wanted, live = set(graph.outputs), set[Op]()
    for op in reversed(graph.ops):
        if op.has_effect or not wanted.isdisjoint(op.results):
            live.add(op)
            wanted.update(op.operands)
    return live


def _arithmetic(name: str, forms: Sequence[Form]) -> Form | None:
    if name == "neg":
        return Form({}).plus(forms[0], -1)
    a, b = forms
    if name == "add":
        return a.plus(b)
    if name == "sub":
        return a.plus(b, -1)
    for one, other in ((a, b), (b, a)):
        if not one.terms:
            return Form({}).plus(other, one.constant)
    return None


def running_read(op: Op, users: Mapping[Value, Sequence[Op]]) -> list[Op] | None:
    """What reads the elements that an op updates, as in `h[k] += x`; None if nothing does."""
    if not op.definition.updates or op.attrs.get("combine", "set") != "set":
        return None
    base, update, *where = op.operands
    made = _moved(update).op
    if made is None or not combination(made):
        return None
    for value in made.operands[:1] if made.name in INVERSE else made.operands:
        ops: list[Op] = []
        while value.op is not None and users[value] == [ops[-1] if ops else made]:
            ops.append(value.op)
            if value.op.name != "reshape":
                break
            value = value.op.operands[0]
        if ops and _reads_same(ops[-1], op, base, update, where):
            return ops
    return None


def _reads_same(read: Op, op: Op, base: Value, update: Value, where: Sequence[Value]) -> bool:
    """Whether `read` takes from `base` the elements that `op` replaces by `update`."""
    if read.name not in ("gather", "slice", "dynamic_slice") or read.operands[0] is not base:
        return False
    alike = all(op.attrs.get(k) == read.attrs.get(k) for k in ("axes", "start", "step"))
    if not alike or len(read.operands) != len(op.operands) - 1 or read.result.shape != update.shape:
        return False
    return all(same_value(a, b) for a, b in zip(read.operands[1:], where, strict=True))


def _moved(value: Value) -> Value:
    """What a value was before it was reshaped."""
    while value.op is not None and value.op.name == "reshape":
        value = value.op.operands[0]
    return value
