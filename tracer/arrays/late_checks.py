"""Checks whose outcome is kept until a loop has ended, so that vector loops stay vector loops.

    for i in range(n):                  bad = False
        out[i] = math.sqrt(x[i])   ->   for i in range(n):
                                            out[i] = sqrt(x[i]); bad |= x[i] < 0
                                        assert not bad

So it is in loops that count, as they end whatever values come of it. Elsewhere a check is made at once.
"""

from __future__ import annotations

from typing import Any

from ..core.effects import check
from ..core.trace import Trace, require_trace
from ..core.tracers import Storage, as_value, wrap
from ..messages.source import user_line


def check_in_the_end(bad: Any, message: str, error: str) -> None:
    """The exception `error` of `ir.ops.control.effects.ERRORS` at run time if `bad`, a traced bool,
    holds; perhaps when the loops around have ended."""
    trace = require_trace()
    holder = _outside_of_loops(trace)
    if holder is None:
        check(~bad, message, error=error)
        return
    key = message, error, user_line(2)
    flag = holder.late_checks.get(key)
    if flag is None:
        flag = holder.late_checks[key] = Storage(holder, holder.builder.const(False))
    if flag.trace is not trace:
        trace.adopt(flag)
    flag.value = as_value(wrap(flag.value) | bad)
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
