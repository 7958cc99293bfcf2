"""What is called with DeviceArrays outside of tracing is compiled, and runs where they are.

What does so lies above whatever asks for it here. `device_functions` enters it (`serve`), and is loaded
before there is a DeviceArray.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..core.current import current_trace
from ..messages.tracebacks import shortened
from .devices import holds_device_arrays

F = TypeVar("F", bound=Callable[..., Any])
_above: dict[str, Callable[..., Any]] = {}
_KEPT = 64  # signatures of each function: they hold what the functions given to it close over


def serve(jit: Callable[..., Any], run: Callable[..., Any], run_entry: Callable[..., Any]) -> None:
    """What computes with DeviceArrays: `jit`, and `run` and `run_entry` of `device_functions`."""
    _above.update(jit=jit, run=run, run_entry=run_entry)


def run_entry(entry: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A function of the table, called with DeviceArrays."""
    return _above["run_entry"](entry, args, kwargs)


def run(
    name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """`function(*args, **kwargs)`, written over tracers, on the device of its DeviceArrays."""
    return _above["run"](name, function, args, kwargs)


def compile_for_devices(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, jitted."""
    compiled: Callable[..., Any] = _above["jit"](function)
    return compiled


def compiled_on_devices(*static: str, among: str = "") -> Callable[[F], F]:
    """What the decorated function is called with DeviceArrays for is compiled, and runs where they are.

    The parameters `static` are functions and options. With `among`, only a DeviceArray in that parameter
    (the first one) is a reason to compile: else values are at hand, and Python decides. Tracebacks of
    errors are shortened.
    """

    def decorate(function: F) -> F:
        made: list[Any] = []

        @shortened
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if current_trace() is not None:
                return function(*args, **kwargs)
            looked_at = (args[:1], kwargs.get(among)) if among else (args, kwargs)
            if not holds_device_arrays(looked_at):
                return function(*args, **kwargs)
            if not made:
                made.append(_above["jit"](function, static_argnames=static))
                made[0].most_signatures = _KEPT
            return made[0](*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate
