"""Which call of NumPy a trace gets wrong: the function runs in Python, and each call is traced alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.graph import SourceLine
from ...ir.record import record
from ..data import pytree
from ..messages.source import user_line
from .values import Difference, differences

_MOST = 300


@record
class NumpyCall:
    """A call of NumPy that a function made: as it was, and what it gave."""

    name: str
    call: Callable[..., Any]
    args: tuple[Any, ...]
    result: Any
    loc: SourceLine | None


class Noting(np.ndarray[Any, Any]):
    """An array that notes which functions of NumPy it is given to."""

    calls: list[NumpyCall] | None = None

    def __array_finalize__(self, other: Any) -> None:
        self.calls = getattr(other, "calls", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        return self._noted(name, getattr(ufunc, method), inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self._noted(function.__name__, function, args, kwargs)

    def _noted(self, name: str, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        args, kwargs = pytree.tree_map(_plain, (tuple(args), kwargs))
        before = pytree.tree_map(np.copy, args) if "out" not in kwargs else None
        result = function(*args, **kwargs)
        calls = self.calls
        if before is not None and calls is not None and len(calls) < _MOST:
            call = lambda *given: function(*given, **kwargs)  # noqa: E731
            calls.append(NumpyCall(name, call, before, result, user_line()))
        return pytree.tree_map(lambda leaf: noting(leaf, calls), result)


def noting(leaf: Any, calls: list[NumpyCall] | None) -> Any:
    """An array as one that notes calls; what is no array stays."""
    if not isinstance(leaf, np.ndarray):
        return leaf
    view = leaf.view(Noting)
    view.calls = calls
    return view


def _plain(leaf: Any) -> Any:
    return leaf.view(np.ndarray) if isinstance(leaf, Noting) else leaf


def wrong_call(
    function: Callable[..., Any],
    args: Sequence[Any],
    traced: Callable[[Callable[..., Any]], Callable[..., Any]],
    tolerance: float | None,
) -> tuple[NumpyCall, Difference] | None:
    """The first call of NumPy in `function(*args)` that `traced` gives another result of."""
    calls: list[NumpyCall] = []
    try:
        function(*pytree.tree_map(lambda leaf: noting(leaf, calls), tuple(args)))
    except Exception:
        return None
    for each in calls:
        try:
            got = traced(each.call)(*each.args)
        except Exception:  # calls with arguments that are no values of a program
            continue
        got, wanted = pytree.flatten(got)[0], pytree.flatten(each.result)[0]
        found = differences(got, wanted, tolerance, given=pytree.flatten(each.args)[0])
        if found:
            return each, found[0]
    return None
