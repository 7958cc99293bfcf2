"""Checks whose outcome is kept until a loop has ended, so that vector loops stay vector loops.

    for i in range(n):                  bad = False
        out[i] = math.sqrt(x[i])   ->   for i in range(n):
                                            out[i] = sqrt(x[i]); bad |= x[i] < 0
                                        assert not bad

So it is in loops that count, as they end whatever values come of it. Elsewhere a check is made at once,
and so is that of a number which says where in an array something is: it must be right before, or the
error would be that of an index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ...ir.graph import SourceLine, Value
from ...ir.record import record
from ...ir.types import TensorType
from ..core.effects import check
from ..core.trace import Trace, require_trace
from ..core.tracers import Storage, Tracer, as_value, wrap
from ..messages.source import user_line


class Late(NamedTuple):
    """The exception `error` of `ir.ops.control.effects.ERRORS` if `bad()`, a traced bool, holds."""

    bad: Callable[[], Any]
    message: str
    error: str


@record(frozen=False, eq=False)
class Doubts:
    """Checks of a number that are not made yet. The last one fails wherever one of the others does."""

    checks: Sequence[Late]
    line: SourceLine | None
    made: bool = False


class Uncertain:
    """The checks that a trace has not made yet, also by the numbers that they are about, and values
    whose checks it has made."""

    def __init__(self) -> None:
        self.doubts: list[Doubts] = []
        self.of: dict[Value, list[Doubts]] = {}
        self.certain: set[Value] = set()


def check_in_the_end(bad: Any, message: str, error: str, *of: Any) -> None:
    """Raise at run time if `bad`, a traced bool, holds; perhaps when the loops around have ended, if
    none of the numbers `of` is a part of an index."""
    _later([Late(lambda: bad, message, error)], of)


def check_later(checks: Sequence[Late], of: Any) -> None:
    """The same for several checks of a number; the last one fails wherever one of the others does."""
    _later(checks, (of,))


def _later(checks: Sequence[Late], of: Sequence[Any]) -> None:
    trace = require_trace()
    if _outside_of_loops(trace) is None:
        check_at_once(checks)
        return
    doubts = Doubts(checks, user_line(3))
    kept = _uncertain(trace)
    kept.doubts.append(doubts)
    for x in of:
        if isinstance(x, Tracer):
            kept.of.setdefault(as_value(x), []).append(doubts)


def _uncertain(trace: Trace) -> Uncertain:
    if trace.uncertain is None:
        trace.uncertain = Uncertain()
    kept: Uncertain = trace.uncertain
    return kept


def check_at_once(checks: Sequence[Late], line: SourceLine | None = None) -> None:
    """Several checks of a number, of which the last one alone is asked where all is well."""
    for one in checks:
        bad = checks[-1].bad()
        if one is not checks[-1]:
            bad = bad & one.bad()
        check(~bad, one.message, error=one.error, line=line or user_line(2))


def make_certain(values: Iterable[Value]) -> None:
    """Numbers are about to be checked, or to say where in an array something is: what they are made of
    is checked now."""
    here = require_trace()
    around = [here]
    while around[-1].parent is not None:
        around.append(around[-1].parent)
    if here.eager or all(trace.uncertain is None for trace in around):
        return
    found = set(_of(values, around, _uncertain(here).certain))
    for trace in reversed(around):
        for doubts in () if trace.uncertain is None else trace.uncertain.doubts:
            if doubts in found and not doubts.made:
                check_at_once(doubts.checks, doubts.line)
                doubts.made = trace is here  # else it may not come to this


def _of(values: Iterable[Value], around: Sequence[Trace], certain: set[Value]) -> Iterator[Doubts]:
    """The doubts about what values of the first trace are made of."""
    trace, *outer = around
    pending, lifted = [*values], list[Value]()
    inner = {value: outside for outside, value in trace.lifted()}
    while pending:
        value = pending.pop()
        if value in certain or not isinstance(value.type, TensorType):
            continue
        certain.add(value)
        yield from () if trace.uncertain is None else trace.uncertain.of.get(value, ())
        if value.op is not None:
            pending += value.op.operands
        elif value in inner:
            lifted.append(inner[value])
    if outer:
        yield from _of(lifted, outer, certain)


def settle_checks() -> None:
    """The trace of a part of a loop ends: keep the outcome of checks that have not been made."""
    trace = require_trace()
    holder, kept = _outside_of_loops(trace), trace.uncertain
    if kept is None:
        return
    assert holder is not None
    for doubts in kept.doubts:
        if not doubts.made:
            for one in doubts.checks:
                _keep(holder, one, doubts.line)
    trace.uncertain = None


def _keep(holder: Trace, one: Late, line: SourceLine | None) -> None:
    """Have a flag of the trace around all loops say whether a check has failed."""
    trace = require_trace()
    key = one.message, one.error, line
    flag = holder.late_checks.get(key)
    if flag is None:
        flag = holder.late_checks[key] = Storage(holder, holder.builder.const(False))
    if flag.trace is not trace:
        trace.adopt(flag)
    flag.value = as_value(wrap(flag.value) | one.bad())
    flag.version += 1


def _outside_of_loops(trace: Trace) -> Trace | None:
    """The trace around the loops that count, of which this is inside; None if it is in no such loop."""
    holder = None
    while trace.adoption is not None and not trace.eager and trace.counts is not False:
        assert trace.parent is not None
        if trace.counts:
            holder = trace.parent
        trace = trace.parent
    return holder


def check_now() -> None:
    """Make the checks of the loops that have ended, which are part of the trace now."""
    trace = require_trace()
    checks, trace.late_checks = trace.late_checks, {}
    for (message, error, line), flag in checks.items():
        op = flag.value.op
        if op is None or op.name != "constant":  # of a loop that did not become an op
            check(~wrap(flag.value), message, error=error, line=line)
