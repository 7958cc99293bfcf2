"""What `jt.config.check` asks of functions, beside what their own options ask.

A function that is called while more is asked of it than it was compiled for has a twin with these
options, which is called instead. Its own native calls are off meanwhile.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ...ir.record import replace
from ...runtime.config import config, serve
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


def disable_jit() -> AbstractContextManager[Any]:
    """A context in which jitted functions run as they were written, without being compiled: every line
    can be stepped through, and what it computes is NumPy's. The same as `jt.config(disable_jit=True)`.

    >>> with disable_jit():
    ...     jt.jit(lambda x: type(x).__name__)(np.ones(2))
    'ndarray'
    """
    made: AbstractContextManager[Any] = config(disable_jit=True)
    return made
