"""Calls of NumPy that its protocols do not show to a tracer: what makes arrays of nothing, and what is
given lists of traced values. What they are for `math` and `cmath` says `mathematics`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from ....ir.types import is_supported
from ...arrays.common import array
from ...arrays.python_errors import as_of_math
from ...arrays.python_integers import check_stored
from ...arrays.table import BY_NUMPY, FUNCTIONS, holds_tracer, unsupported
from ...containers.arrays import grown, is_grown
from ...containers.grown_functions import call as call_grown
from ...containers.grown_functions import is_asked_of
from ...containers.packed import Packed
from ...containers.stand_ins import Container
from ...core.sharing import is_following
from ...core.tracers import Tracer, as_value, wrap, wrap_like
from .mathematics import MATHEMATICS

_KINDS = (type(np.zeros_like), BuiltinFunctionType, FunctionType)
_CREATIONS = {
    getattr(np, name): name
    for name in (
        *("zeros", "ones", "empty", "full", "eye", "identity"),
        *("zeros_like", "ones_like", "empty_like", "full_like"),
    )
}
_MADE = {
    getattr(np, name)
    for name in (
        *(
            "array",
            "asarray",
            "asanyarray",
            "ascontiguousarray",
            "asfortranarray",
            "copy",
            "arange",
        ),
        *("linspace", "logspace", "geomspace", "tri", "tile", "repeat", "diag", "indices"),
    )
}
_ANEW = frozenset(  # methods of arrays that change nothing and give no view
    "all any argmax argmin choose clip compress cumprod cumsum dot item max mean min prod repeat "
    "searchsorted std sum take var".split()
)
_UNASKED = {  # functions that ask no argument what to do
    getattr(np, name): name
    for name in (
        *("array", "asarray", "asanyarray", "asarray_chkfinite", "require", "isscalar"),
        *("ascontiguousarray", "asfortranarray"),
    )
}


def replaced_numpy(function: Any) -> Callable[..., Any] | None:
    """What is called in place of a function of NumPy's or of `math`; None for others, and where nothing
    has to be done."""
    kind = type(function)
    if kind in _KINDS:
        found = _function(function)
        return _traced(found or function) if is_following() and _makes(function) else found
    if kind is np.ufunc:
        return _with_arrays(function)
    if isinstance(function, type) and issubclass(function, np.generic):
        return _scalar_type(function)
    if function in (np.poly1d, np.matrix):
        return where_traced(function, lambda *args, **kwargs: unsupported(function))
    if kind.__module__.startswith("numpy.polynomial"):
        return _polynomial(function)
    return None


def _polynomial(series: Any) -> Callable[..., Any]:
    """A polynomial, or another series of NumPy's, of a traced argument: NumPy's own sum runs traced."""

    def call(x: Any) -> Any:
        offset, scale = np.polynomial.polyutils.mapparms(series.domain, series.window)
        return series._val(offset + scale * x, series.coef)

    return where_traced(series, call)


def _function(function: Any) -> Callable[..., Any] | None:
    try:
        name = _CREATIONS.get(function)
    except TypeError:  # unhashable: a method of something
        return None
    if name is not None:
        return FUNCTIONS[name]
    if function is np.fromiter:
        return _from_iterator
    # Others ask some of their arguments.
    name = _UNASKED.get(function)
    entry = FUNCTIONS[name] if name is not None else BY_NUMPY.get(function)
    if entry is not None:
        return where_traced(function, entry)
    scalar = MATHEMATICS.get(function)
    if scalar is not None:
        if function.__module__ == "math":
            scalar = as_of_math(function.__name__, scalar)
        return where_traced(function, scalar)
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return _with_arrays(function, indexed=function.__name__ == "at")
    return _method(function)


def _from_iterator(items: Any, dtype: Any, count: int = -1, **options: Any) -> Any:
    """`np.fromiter`; of a list that grows, or of traced values, as `np.array`."""
    if count != -1 or options or not isinstance(items, (list, tuple, Tracer, Container)):
        return np.fromiter(items, dtype, count, **options)
    return where_traced(np.array, FUNCTIONS["array"])(items, dtype)


def _method(function: Any) -> Callable[..., Any] | None:
    """A method of an array whose elements are known, for arguments that are traced: `A.dot(x)`."""
    array, name = getattr(function, "__self__", None), function.__name__
    if type(array) is not np.ndarray or name not in _ANEW or not is_supported(array.dtype):
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(wrap(as_value(array), scalar=False), name)(*args, **kwargs)

    return where_traced(function, call)


def _makes(function: Any) -> bool:
    try:
        return function in _MADE
    except TypeError:  # unhashable: a method of something
        return False


def _traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's whose result is a traced array from its birth on: where it matters which
    arrays are one."""

    def call(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        if type(made) is not np.ndarray or not is_supported(made.dtype):
            return made
        given = [x for x in args if isinstance(x, np.ndarray)]
        is_new = not any(np.may_share_memory(x, made) for x in given)
        return wrap(as_value(made), scalar=False) if is_new else made

    return call


def where_traced(function: Callable[..., Any], traced: Callable[..., Any]) -> Callable[..., Any]:
    """`traced` in place of `function` for arguments with traced values."""

    @functools.wraps(function, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Packed):
            args = (args[0].materialise(), *args[1:])
        elif args and isinstance(args[0], list) and any(isinstance(x, Packed) for x in args[0]):
            parts = [x.materialise() if isinstance(x, Packed) else x for x in args[0]]
            args = (parts, *args[1:])
        if any(map(is_asked_of, args)):
            if function in (math.prod, math.fsum):
                return traced(*args, **kwargs)
            return call_grown(function, args, kwargs)
        some = holds_tracer((*args, *kwargs.values()))
        asked = function not in (np.array, np.asarray, np.asanyarray)
        if some and asked and any(getattr(type(x), "_jitney_lazy", False) for x in args):
            some = False  # x[mask] says itself what becomes of it
        return (traced if some else function)(*args, **kwargs)

    return call


def _with_arrays(function: Any, indexed: bool = False) -> Callable[..., Any]:
    """A ufunc, or a method of one, of lists that hold traced values. The second argument may be an
    index, of which a tuple is another one than an array."""

    def call(*args: Any, **kwargs: Any) -> Any:
        arrays = [x if indexed and i == 1 else _as_array(x) for i, x in enumerate(args)]
        result = function(*arrays, **kwargs)
        if kwargs.get("out") is Ellipsis:  # of which NumPy does not tell the tracers' protocol
            return tuple(map(_no_scalar, result)) if type(result) is tuple else _no_scalar(result)
        return result

    return call


def _no_scalar(x: Any) -> Any:
    return wrap_like(as_value(x), (x,), scalar=False) if isinstance(x, Tracer) else x


def _as_array(x: Any) -> Any:
    if is_grown(x):
        return grown(x)
    return array(x) if isinstance(x, (list, tuple)) and holds_tracer(x) else x


def _scalar_type(kind: Any) -> Callable[..., Any]:
    """`np.float32(x)`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], Tracer):
            if args[0].weak is not None:
                check_stored(args[0], np.dtype(kind))
            return args[0].astype(kind)
        return kind(*args, **kwargs)

    return call
