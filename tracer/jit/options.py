"""What `jit` is given, a function and options, is checked before anything is made of it."""

from __future__ import annotations

import inspect
from typing import Any

from ...runtime.devices import CPU, parse_device
from ..messages import errors
from ..messages.errors import complain

_BACKENDS = ("native", "interpreter")


def check_options(options: dict[str, Any]) -> None:
    """Raise ValueError for a value that an option of `jit` does not have."""
    device, backend = options["device"], options["backend"]
    save, inplace, autotune = options["save"], options["inplace"], options["autotune"]
    chosen = None if device is None else parse_device(device)
    if chosen not in (None, CPU) and backend == "interpreter":
        raise ValueError(f"backend='interpreter' runs on the CPU, not on {chosen}")
    if backend not in _BACKENDS:
        raise ValueError(f"backend={backend!r}: choose 'native' or 'interpreter'")
    if save not in (None, "min_cut") and not (type(save) is int and save >= 0):
        raise ValueError(f"save={save!r}: choose 'min_cut' or a number of bytes")
    if inplace not in (None, "require"):
        raise ValueError(f"inplace={inplace!r}: choose None or 'require'")
    if not isinstance(options["boundscheck"], bool):
        raise ValueError(f"boundscheck={options['boundscheck']!r}: choose True or False")
    if autotune is not None and not isinstance(autotune, bool):
        raise ValueError(f"autotune={autotune!r}: choose True, False or None")


def check_function(function: Any) -> None:
    """Raise TransformError, with the remedy, for what cannot be traced as a function."""
    name = getattr(function, "__qualname__", repr(function))
    if isinstance(function, (classmethod, staticmethod)):
        complain(
            errors.TransformError,
            f"jit was given a {type(function).__name__} object",
            f"put @{type(function).__name__} above @jt.jit, not below it.",
        )
    if not callable(function):
        complain(
            errors.TransformError,
            f"jit needs a function, not {type(function).__name__}",
            "write jt.jit(f) or @jt.jit; options are keywords: @jt.jit(static_argnames='n').",
            operands={"function": function},
        )
    if inspect.iscoroutinefunction(function):
        kind = "an async function"
    elif inspect.isasyncgenfunction(function):
        kind = "an async generator"
    elif inspect.isgeneratorfunction(function):
        kind = "a generator"
    else:
        return
    complain(
        errors.TransformError,
        f"{name} is {kind}: its body does not run when it is called, so there is nothing to trace",
        "jit the plain functions that it calls; let them return lists or tuples of arrays.",
    )
