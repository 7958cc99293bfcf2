"""SciPy's solvers in compiled code: those of `jt.solve`, with SciPy's arguments.

They are called with functions, which may close over what is traced: so they stand for SciPy's whatever
the arguments are. The room lies above the tracer, and is loaded by what it registers
(`ir.surface`).
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np

from ....ir.surface import ensure
from ...core.tracers import Tracer, as_value, wrap
from ...messages import errors
from ...messages.errors import complain
from .scipy_common import Formula, Unfit

_ROOM = __name__.partition(".")[0] + ".solve"
SOLVERS = {
    **dict.fromkeys(("minimize", "root", "fsolve", "root_scalar", "brentq"), "scipy.optimize"),
    **dict.fromkeys(("bisect", "newton", "least_squares", "curve_fit"), "scipy.optimize"),
    **dict.fromkeys(("solve_ivp", "quad"), "scipy.integrate"),
    **dict.fromkeys(("cg", "bicgstab", "gmres"), "scipy.sparse.linalg"),
}
_ROOTS = ("brentq", "bisect")
DENSITIES = ("logpdf", "pdf", "logpmf", "pmf")
# Defaults of SciPy's that ask for something: ours have others.
_OTHERWISE = {"jac": ("2-point",), "method": ("trf",)}


def _room() -> Any:
    ensure("solvers")
    return sys.modules[_ROOM]


def solver(function: Any) -> Formula:
    """What is called for a solver of SciPy's."""

    def call(*args: Any, **kwargs: Any) -> Any:
        ours = getattr(_room(), function.__name__)
        given = inspect.signature(function).bind(*args, **kwargs)
        known = inspect.signature(ours).parameters
        arguments: dict[str, Any] = {}
        for name, value in _flat(given):
            default = inspect.signature(function).parameters.get(name)
            if name in known and not _is_one_of(value, _OTHERWISE.get(name, ())):
                arguments[name] = value
            elif name not in known and not (default is not None and _same(value, default.default)):
                complain(
                    errors.UnsupportedFunctionError,
                    f"scipy's {function.__name__} takes no {name}= in compiled code",
                    f"leave it out: it is jt.solve.{function.__name__} there, which takes "
                    f"{', '.join(known)}.",
                )
        result = _as_scipys(function.__name__, ours(**arguments))
        method = arguments.get("method") or ("brentq" if "bracket" in arguments else None)
        if function.__name__ == "root_scalar" and method in _ROOTS:
            result.root = _python(result.root)
        return result

    return call


def _as_scipys(name: str, result: Any) -> Any:
    """A result with Python's numbers where SciPy's compiled code gives such."""
    if name == "quad":
        return tuple(map(_python, result))
    if isinstance(result, tuple) and name in _ROOTS:
        root, more = result
        return _python(root), _as_scipys("root_scalar", more)
    if name in _ROOTS:
        return _python(result)
    fields = vars(result) if hasattr(result, "_messages") else {}
    for field, value in fields.items():
        if field[0] != "_" and getattr(value, "dtype", np.dtype(float)).kind in "bi":
            fields[field] = _python(value)
    return result


def _python(x: Any) -> Any:
    """A traced number as one of Python's."""
    return wrap(as_value(x), x.dtype.kind) if isinstance(x, Tracer) and not x.shape else x


def _flat(given: inspect.BoundArguments) -> list[tuple[str, Any]]:
    """The arguments by name, those behind ** among them. An `args` of None is none."""
    found: list[tuple[str, Any]] = []
    for name, value in given.arguments.items():
        kind = given.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found += value.items()
        elif not (name == "args" and value is None):
            found.append((name, value))
    return found


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and _is_one_of(value, (default,)))


def _is_one_of(value: Any, others: tuple[Any, ...]) -> bool:
    return isinstance(value, (str, int, float, tuple, bool, type(None))) and value in others


def density(name: str, method: str) -> Formula:
    """The same for the log-density of a distribution, or the density."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = getattr(getattr(_room().stats, name, None), method, None)
        if found is None:
            raise Unfit
        return found(*args, **kwargs)

    return call
