"""Libraries that take numbers, not traced values: tables, plots, models. They are told apart by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

from ...data import pytree
from ...messages import errors
from ...messages.errors import complain
from ..variables import in_graph, is_traced

_NAMES = frozenset(
    "pandas polars pyarrow matplotlib seaborn plotly sklearn statsmodels sympy".split()
)


def replaced_library(function: Any) -> Callable[..., Any] | None:
    """What is called in place of a function or a class of such a library: it says what is wrong with
    traced values, before the library asks each of them for its number."""
    if not isinstance(function, (FunctionType, type)):
        return None
    module = function.__module__
    if type(module) is not str or module.partition(".")[0] not in _NAMES:
        return None

    @wraps(function, updated=())
    def call(*args: Any, **options: Any) -> Any:
        if in_graph() and any(map(is_traced, pytree.flatten((args, options))[0])):
            name = f"{module.partition('.')[0]}.{function.__name__}"
            complain(
                errors.UnsupportedFunctionError,
                f"{name} is called with values that are known only when the compiled function runs",
                "return these values, and call it outside of the compiled function.",
            )
        return function(*args, **options)

    return call
