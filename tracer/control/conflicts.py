"""Are iterations as independent as `jt.prange` says? Where they are seen not to be, an error.

    a[i] = a[i - 1] + 1     iteration 1 reads a[0], which iteration 0 writes
    m[0] = x[i]             all write m[0]
    s = 0.5 * s + x[i]      each reads s, which the one before assigns

Sums, products, extremes and the like, of variables and of elements, are taken for what they are: it does
not matter in which order they are made. What is found is a pair of iterations and an element; where none
is found, the user's word stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from ...ir.chains import Broken, chain_of, depends, step_of
from ...ir.graph import Graph, Op, SourceLine, Value
from ...ir.types import TensorType
from ..messages import errors
from ..messages.errors import complain
from .subscripts import Access, Accesses, Counter, Form, Span

_NEAR = 3  # iterations at each end of a loop that are compared with those around them
_FAR = 16  # how far apart they are
_COMPARISONS = ("lt", "gt", "le", "ge")


def refuse_conflicts(op: Op, names: Sequence[str], line: SourceLine | None) -> None:
    """ConflictError if two iterations of the loop `op` touch an element that one of them writes.

    `names` are those of its carries, "" for what is nobody's variable.
    """
    first, body = op.attrs["consts"], op.regions[-1]
    carries = body.params[first : first + len(names)]
    count = Counter(op.attrs.get("length"))
    extents = [v.shape if isinstance(v.type, TensorType) else () for v in carries]
    accesses = Accesses(carries, extents)
    accesses.forms.update((v, Form({v: 1})) for v in body.params[:first])
    for k, param in enumerate(carries):
        step, start = step_of(body.outputs[k], body.params[first + k]), op.operands[first + k]
        at = accesses.form(start) or Form({start: 1})
        accesses.forms[param] = None if step is None else at.plus(Form({count: step}))
    accesses.walk(body)
    for a, b in _pairs(accesses.found):
        element = _met(a, b, count)
        if element is not None:
            _refuse_accesses(names[a.carry] or "an array", element, a, b, line)
    for k, (param, name) in enumerate(zip(carries, names, strict=True)):
        stays = accesses.is_whole(body.outputs[k], k)
        if name and not stays and accesses.forms[param] is None:
            _refuse_chain(body, param, body.outputs[k], name, line)


def _pairs(found: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    for k, a in enumerate(found):
        for b in found[k:]:
            together = a.writes and b.writes and a.combine and a.combine == b.combine
            if a.carry == b.carry and (a.writes or b.writes) and not together:
                yield (a, b) if a.writes else (b, a)


# An element that two iterations touch.


def _met(a: Access, b: Access, count: Counter) -> str | None:
    """The subscript of an element that `a` touches in one iteration and `b` in another, as text."""
    if any(span.start is None for access in (a, b) for span in access.spans):
        return None
    for x, y in _iterations(count.length):
        element = _solved(a, b, {count: x}, {count: y})
        if element is not None:
            return element
    return None


def _iterations(length: int | None) -> Iterator[tuple[int, int]]:
    """Pairs of different iterations, the nearest first."""
    last = _FAR if length is None else length - 1
    ends = [*range(min(_NEAR, last + 1))]
    if length is not None:
        ends += [x for x in range(last, max(last - _NEAR, -1), -1) if x not in ends]
    for distance in range(1, min(_FAR, last) + 1):
        for x in ends:
            for y in (x - distance, x + distance):
                if 0 <= y <= last:
                    yield x, y
    if length is not None and last > _FAR:
        yield from ((0, last), (last, 0))


Values = dict[Counter, int]


def _solved(a: Access, b: Access, own: Values, other: Values) -> str | None:
    """The element where they meet when `own` and `other` are the numbers of their iterations: axis by
    axis, inner loops going where they have to."""
    text = []
    for p, q, n in zip(a.spans, b.spans, a.extents, strict=True):
        place = _place(p, q, n, own, other)
        if place is None:
            return None
        text.append(place)
    return f"[{', '.join(text)}]"


def _place(p: Span, q: Span, n: int, own: Values, other: Values) -> str | None:
    assert p.start is not None and q.start is not None
    if p.size == n or q.size == n:  # one of them has all
        part, values = (q, other) if p.size == n else (p, own)
        at = _value(part.start, values)  # type: ignore[arg-type]
        if part.size == n:
            return ":"
        place = None if at is None else _wrapped(at, n)
        return "..." if at is None else None if place is None else str(place)
    left, right = _rest(p.start, own), _rest(q.start, other)
    if left.terms != right.terms or _counters(left) or _counters(right):
        if not _follow(left, right, own) and not _follow(right, left, other):
            return None
        left, right = _rest(p.start, own), _rest(q.start, other)
        if left.terms != right.terms:
            return None
    if left.terms:  # the same, whatever it is
        apart = right.constant - left.constant
        return "..." if -q.size < apart < p.size else None
    x, y = _wrapped(left.constant, n), _wrapped(right.constant, n)
    if x is None or y is None or not -q.size < y - x < p.size:
        return None
    return str(max(x, y))


def _wrapped(at: int, n: int) -> int | None:
    return at if 0 <= at < n else at + n if -n <= at < 0 else None


def _rest(form: Form, values: Values) -> Form:
    """A form with the numbers that are known put in."""
    known = sum(f * values[a] for a, f in form.terms.items() if a in values)
    terms = {a: f for a, f in form.terms.items() if a not in values}
    return Form(terms, form.constant + known)


def _value(form: Form, values: Values) -> int | None:
    rest = _rest(form, values)
    for counter in _counters(rest):
        values[counter] = 0
    rest = _rest(form, values)
    return None if rest.terms else rest.constant


def _counters(form: Form) -> list[Counter]:
    return [a for a in form.terms if isinstance(a, Counter)]


def _follow(moving: Form, other: Form, values: Values) -> bool:
    """Give the inner loops of `moving` numbers with which it is `other`. Those of `other` start at 0."""
    counters = _counters(moving)
    if not counters:
        return False
    still = {a: f for a, f in other.terms.items() if not isinstance(a, Counter)}
    if {a: f for a, f in moving.terms.items() if a not in counters} != still:
        return False
    last, *others = counters
    values.update(dict.fromkeys(others, 0))
    number, left = divmod(other.constant - moving.constant, moving.terms[last])
    if left or number < 0 or (last.length is not None and number >= last.length):
        number = 0
    values[last] = number
    return True


# A variable that each iteration hands to the next.


def _refuse_chain(
    body: Graph, param: Value, output: Value, name: str, line: SourceLine | None
) -> None:
    if output is param or not depends(output, {param}):
        return
    try:
        chain_of(output, param)
        for op in body.ops:
            if op.definition.updates and any(depends(v, {param}) for v in op.operands[1:]):
                raise Broken(op)
    except Broken as broken:
        _refuse_variable(name, broken.op, output.op, line)


# What is said.


def _refuse_accesses(
    name: str, element: str, a: Access, b: Access, line: SourceLine | None
) -> NoReturn:
    verb = "updates" if a.combine else "writes"
    other = "reads" if not b.writes else "updates" if b.combine else "writes"
    complain(
        errors.ConflictError,
        f"the iterations of this jt.prange are not independent: one {verb} {name}{element} at "
        f"{_at(a.line)}, and another {other} it at {_at(b.line)}",
        "loop over range(...), which keeps the order, or let each iteration write its own elements.",
        line=line,
    )


def _refuse_variable(
    name: str, reads: Op | None, writes: Op | None, line: SourceLine | None
) -> NoReturn:
    read, write = (op.loc if op is not None else None for op in (reads, writes))
    complain(
        errors.ConflictError,
        f"the iterations of this jt.prange are not independent: each reads the variable {name!r} at "
        f"{_at(read)}, which the one before assigns at {_at(write)}",
        "loop over range(...), which keeps the order; sums, products, min and max may stay.",
        line=line,
    )


def _at(line: SourceLine | None) -> str:
    return str(line) if line is not None else "an unknown line"
