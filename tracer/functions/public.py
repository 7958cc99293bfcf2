"""The functions of the table as users call them, in the namespaces of their names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from ..arrays.table import FUNCTIONS, ArrayFunction
from ..messages.errors import raised_by
from ..messages.tracebacks import shorten
from .ufunc_methods import attach_methods


def public_names() -> dict[str, Any]:
    """What the root namespace offers: functions by name, and namespaces such as `linalg`."""
    names: dict[str, Any] = {}
    spaces: dict[str, dict[str, Any]] = {}
    for name, entry in FUNCTIONS.items():
        space, _, last = name.rpartition(".")
        target = spaces.setdefault(space, {}) if space else names
        target[last] = public(entry)
    for space, members in spaces.items():
        names[space] = (_Special if space == "special" else SimpleNamespace)(**members)
    return names


class _Special(SimpleNamespace):
    """`jt.special`: what is not in the table are the ufuncs of SciPy, if it is installed."""

    def __getattr__(self, name: str) -> Any:
        function = None if name.startswith("__") else special_function(name)
        if function is None:
            raise AttributeError(f"jitney.special has no {name!r}, nor is it a ufunc of SciPy")
        return function


def public(entry: ArrayFunction) -> Callable[..., Any]:
    """The function that users call: a plain function with the reference's name and documentation."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return entry(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    # `__wrapped__` stays, for `inspect.signature`.
    functools.update_wrapper(call, entry.reference, assigned=(), updated=())
    call.__doc__ = _documentation(entry)
    call.__name__ = call.__qualname__ = entry.name.rpartition(".")[2]
    call.__module__ = "jitney"
    if isinstance(entry.numpy, np.ufunc):
        attach_methods(call, entry)
    return call


def _documentation(entry: ArrayFunction) -> str:
    """The reference's text, what the traced function says beside it, and the errors that it raises."""
    ours = entry.traced.__doc__ if isinstance(entry.traced, FunctionType) else None
    text = entry.reference.__doc__ or (entry.numpy and entry.numpy.__doc__) or ours or ""
    if ours and ours != text and entry.numpy is not None:
        text = f"{text.rstrip()}\n\nIn jitney: {ours}"
    raised = [name for name in raised_by(entry.traced) if name not in text]
    return f"{text.rstrip()}\n\nRaises {', '.join(raised)}.\n" if raised else text


@functools.cache
def special_function(name: str) -> Callable[..., Any] | None:
    """SciPy's special function of a name that `jt.special` has no function of its own for."""
    if name == "sinc":  # NumPy's
        return public(FUNCTIONS[name])
    try:
        module = import_module("scipy.special._ufuncs")
    except ImportError:
        return None
    function = getattr(module, name, None)
    return function if isinstance(function, np.ufunc) else None
