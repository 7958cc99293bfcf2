"""`jt.capture`: jitted functions are interpreted, and what a filter takes is kept (`checks.capture`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..checks.capture import LIMIT, Filter, Iterations, Seen, recording
from .asked import ASKED


@contextmanager
def capture(
    filter: Filter | Sequence[Filter] = None,
    *,
    iterations: Iterations = None,
    limit: int = LIMIT,
) -> Iterator[Seen]:
    """A context in which values that jitted functions compute are kept; gives a `Seen`, which has them.

    `filter` says which: a name, in which `*` and `?` stand for anything (`"encoder/*"`), "model.py:12"
    or 12 for a line, a regular expression (`re.compile(...)`), a function of an array
    (`jt.filters.has_inf_or_nan`), several of these in a list, or None for all. Names are those of
    `jt.name`, and else the scope and the op (`"encoder/tanh"`, `"encoder/tanh_1"`). Of loops, all
    `iterations` are kept, or one, a slice of them, or those in a container.

    Functions are interpreted inside, op by op, with the same results. What does not fit into `limit`
    bytes is dropped, and `seen.dropped` counts it. Raises TypeError for what is no filter.

    >>> f = jt.jit(lambda x: np.tanh(jt.name(x * 2, "h")).sum())
    >>> with capture("h") as seen:
    ...     result = f(np.array([0.5, 1.0]))
    >>> seen["h"]
    array([1., 2.])
    """
    with recording(filter, iterations, limit) as seen:
        ASKED.captures += 1
        ASKED.change()
        try:
            yield seen
        finally:
            ASKED.captures -= 1
            ASKED.change()
