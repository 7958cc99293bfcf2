"""Calls of NumPy that its protocols do not show to a tracer: what makes arrays of nothing, and what is
given lists of traced values. Also the mathematical functions of Python's `math`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from ...ir.surface import ensure
from ..arrays.common import array
from ..arrays.table import BY_NUMPY, FUNCTIONS, holds_tracer
from ..core.tracers import Tracer
from .iteration import int_

_KINDS = (type(np.zeros_like), BuiltinFunctionType, FunctionType)
_CREATIONS = {
    getattr(np, name): name
    for name in (
        *("zeros", "ones", "empty", "full", "eye", "identity"),
        *("zeros_like", "ones_like", "empty_like", "full_like"),
    )
}
_UNASKED = {  # functions that ask no argument what to do
    getattr(np, name): name
    for name in (
        *("array", "asarray", "asanyarray", "asarray_chkfinite", "require", "isscalar"),
        *("ascontiguousarray", "asfortranarray"),
    )
}
_MATH: dict[Any, Callable[..., Any]] = {
    getattr(math, name): getattr(np, name)
    for name in (
        *("sqrt", "cbrt", "exp", "exp2", "expm1", "log2", "log10", "log1p", "sin", "cos", "tan"),
        *("sinh", "cosh", "tanh", "fabs", "degrees", "radians", "hypot", "copysign", "fmod"),
        *("isnan", "isinf", "isfinite"),
    )
    if hasattr(math, name)
} | {
    math.asin: np.arcsin,
    math.acos: np.arccos,
    math.atan: np.arctan,
    math.atan2: np.arctan2,
    math.asinh: np.arcsinh,
    math.acosh: np.arccosh,
    math.atanh: np.arctanh,
    math.pow: np.float_power,
    math.log: lambda x, base=None: np.log(x) if base is None else np.log(x) / np.log(base),
    math.floor: lambda x: _whole(np.floor(x)),
    math.ceil: lambda x: _whole(np.ceil(x)),
    math.trunc: lambda x: _whole(np.trunc(x)),
    math.prod: lambda x, *, start=1: np.prod(array(list(x))) * start,
    math.fsum: lambda x: np.sum(array(list(x))),
    math.dist: lambda p, q: np.sqrt(np.sum((array(p) - array(q)) ** 2)),
    math.erf: lambda x: FUNCTIONS["erf"](x),
    math.erfc: lambda x: _special("erfc", x),
    math.gamma: lambda x: _special("gamma", x),
    math.lgamma: lambda x: _special("gammaln", x),
}


def replaced_numpy(function: Any) -> Callable[..., Any] | None:
    """What is called in place of a function of NumPy's or of `math`; None for others, and where nothing
    has to be done."""
    kind = type(function)
    if kind in _KINDS:
        return _function(function)
    if kind is np.ufunc:
        return _with_arrays(function)
    if isinstance(function, type) and issubclass(function, np.generic):
        return _scalar_type(function)
    return None


def _function(function: Any) -> Callable[..., Any] | None:
    try:
        name = _CREATIONS.get(function)
    except TypeError:  # unhashable: a method of something
        return None
    if name is not None:
        return FUNCTIONS[name]
    # Others ask some of their arguments.
    name = _UNASKED.get(function)
    entry = FUNCTIONS[name] if name is not None else BY_NUMPY.get(function)
    if entry is not None:
        return where_traced(function, entry)
    if function in _MATH:
        return where_traced(function, _MATH[function])
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return _with_arrays(function, indexed=function.__name__ == "at")
    return None


def where_traced(function: Callable[..., Any], traced: Callable[..., Any]) -> Callable[..., Any]:
    """`traced` in place of `function` for arguments with traced values."""

    @functools.wraps(function, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        some = holds_tracer((*args, *kwargs.values()))
        if some and any(getattr(type(x), "_jitney_lazy", False) for x in args):
            some = False  # x[mask] says itself what becomes of it
        return (traced if some else function)(*args, **kwargs)

    return call


def _with_arrays(function: Any, indexed: bool = False) -> Callable[..., Any]:
    """A ufunc, or a method of one, of lists that hold traced values. The second argument may be an
    index, of which a tuple is another one than an array."""

    def call(*args: Any, **kwargs: Any) -> Any:
        arrays = [x if indexed and i == 1 else _as_array(x) for i, x in enumerate(args)]
        return function(*arrays, **kwargs)

    return call


def _as_array(x: Any) -> Any:
    return array(x) if isinstance(x, (list, tuple)) and holds_tracer(x) else x


def _scalar_type(kind: Any) -> Callable[..., Any]:
    """`np.float32(x)`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], Tracer):
            return args[0].astype(kind)
        return kind(*args, **kwargs)

    return call


def _special(name: str, x: Any) -> Any:
    ensure("special")
    return FUNCTIONS[f"special.{name}"](x)


def _whole(x: Any) -> Any:
    return int_(x)
