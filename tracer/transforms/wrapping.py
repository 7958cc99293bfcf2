"""What transformations make of a function: its name, its errors, and where it runs.

Loaded where a function is transformed, also if it never runs in Python: nothing here traces.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..checks.eager import watched_outside
from ..core.current import current_trace
from ..data.callables import Function, function_name
from ..devices.device_calls import compile_for_devices
from ..devices.devices import holds_device_arrays
from ..messages.tracebacks import shorten


def normal_positions(argnums: int | Sequence[int]) -> tuple[int, ...]:
    """`argnums` as a tuple."""
    positions = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(positions, (tuple, list)) or not all(type(p) is int for p in positions):
        raise TypeError(f"argnums must be an int or a tuple of ints, not {argnums!r}")
    return tuple(positions)


def named(what: str, fun: Function) -> Callable[[Function], Function]:
    """Like functools.wraps, with the transformation in the name. What is called with DeviceArrays
    outside of tracing is compiled, and runs where they are."""

    def decorate(wrapper: Function) -> Function:
        wrapper = functools.wraps(fun, updated=())(wrapper)  # autograph finds its way by that
        watched = watched_outside(wrapper)
        compiled: dict[Function, Function] = {}  # autograph's twin shares it

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                if current_trace() is None and holds_device_arrays((args, kwargs)):
                    if wrapper not in compiled:
                        compiled[wrapper] = compile_for_devices(wrapper)
                    return compiled[wrapper](*args, **kwargs)
                return watched(*args, **kwargs)
            except Exception as error:
                shorten(error)
                raise

        call = functools.wraps(fun, updated=())(call)
        call.__name__ = f"{what}({function_name(fun)})"
        call.__qualname__ = call.__name__
        return call

    return decorate
