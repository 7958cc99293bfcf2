"""What `jt.config.check` asks of functions, beside what their own options ask.

A function that is called while more is asked of it than it was compiled for has a twin with these
options, which is called instead. Its own native calls are off meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ...ir.record import replace
from ...runtime.config import config, serve
from ..checks.capture import LIMIT, Filter, Iterations, Seen, recording
from .options import Options
from .programs import install_programs

if TYPE_CHECKING:
    from .function import JitFunction


class Asked:
    """What `jt.config.check` and `jt.config.disable_jit` have now; `any`: whether there is something."""

    def __init__(self) -> None:
        self.captures = 0  # contexts of `capture`
        self._read()
        self.functions: WeakSet[JitFunction[..., Any]] = WeakSet()

    def add(self, function: JitFunction[..., Any]) -> None:
        self.functions.add(function)

    def lacks(self, options: Options) -> bool:
        """Whether a function with these options checks less than is asked."""
        if self.captures and options.backend == "native":
            return True
        return self.off or not set(self.checks) <= set(options.check)

    def more(self, options: Options) -> Options:
        if self.captures:
            return replace(options, check=(), backend="interpreter", device=None)
        return replace(options, check=tuple(sorted({*options.check, *self.checks})))

    def _read(self) -> None:
        ranks = {"ranks"} if config.rank_promotion == "raise" else set()
        self.checks: tuple[str, ...] = tuple(sorted({*config.check, *ranks}))
        self.off = config.disable_jit
        self.any = self.off or bool(self.checks) or self.captures > 0

    def change(self, _: Any = None) -> None:
        self._read()
        for function in list(self.functions):
            with function._lock:
                install_programs(function)


ASKED = Asked()
serve("check", ASKED.change)
serve("disable_jit", ASKED.change)
serve("rank_promotion", ASKED.change)


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


def disable_jit() -> AbstractContextManager[Any]:
    """A context in which jitted functions run as they were written, without being compiled: every line
    can be stepped through, and what it computes is NumPy's. The same as `jt.config(disable_jit=True)`.

    >>> with disable_jit():
    ...     jt.jit(lambda x: type(x).__name__)(np.ones(2))
    'ndarray'
    """
    made: AbstractContextManager[Any] = config(disable_jit=True)
    return made
