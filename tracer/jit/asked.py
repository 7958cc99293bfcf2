"""What `jt.config.check` asks of functions, beside what their own options ask.

A function that is called while more is asked of it than it was compiled for has a twin with these
options, which is called instead. Its own native calls are off meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ...ir.record import replace
from ...runtime.config import config, serve
from .options import Options
from .programs import install_programs

if TYPE_CHECKING:
    from .function import JitFunction


class Asked:
    """What `jt.config.check` has now."""

    def __init__(self) -> None:
        self.checks: tuple[str, ...] = config.check
        self.functions: WeakSet[JitFunction[..., Any]] = WeakSet()

    def add(self, function: JitFunction[..., Any]) -> None:
        self.functions.add(function)

    def lacks(self, options: Options) -> bool:
        """Whether a function with these options checks less than is asked."""
        return not set(self.checks) <= set(options.check)

    def more(self, options: Options) -> Options:
        return replace(options, check=tuple(sorted({*options.check, *self.checks})))

    def change(self, _: Any) -> None:
        self.checks = config.check
        for function in list(self.functions):
            with function._lock:
                install_programs(function)


ASKED = Asked()
serve("check", ASKED.change)
