"""Python's operators on tracers, in-place ones included, and NumPy's protocols.

An operator is the ufunc of its name, as on an ndarray. Between two values that stand for Python
scalars it is Python's operator, and the result is a Python scalar again (weak).
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NoReturn

import numpy as np

from ...ir.surface import ensure
from ...ir.types import BOOL, I64, is_complex, is_inexact
from ...runtime.cuda.array import DeviceArray
from ..arrays import ufuncs
from ..arrays.common import broadcast_shape, build, shape_of, static_array, store
from ..arrays.foreign_ufuncs import apply_foreign, is_compiled
from ..arrays.lowerings import LOWERINGS
from ..arrays.python_errors import check_operation
from ..arrays.python_integers import check_fits
from ..arrays.python_operators import BINARY, COMPARISONS, SYMBOLS, UNARY, check_in_place
from ..arrays.table import BY_NUMPY, FUNCTIONS, ArrayFunction, unsupported
from ..control.unions import Union, one_value, only
from ..core.tracers import Tracer, as_value, method, weak_kind, wrap
from ..data import pytree
from ..data.foreign import is_borrowable, offers
from ..data.promotion import weak_dtype
from ..messages import errors
from ..messages.errors import complain
from . import ufunc_methods

_EQUALITIES = (np.equal, np.not_equal)
_BITWISE = frozenset("bitwise_and bitwise_or bitwise_xor".split())


def foreign(x: Any) -> bool:
    """Whether an operator should leave `x` to the other operand's own methods: to those of a class
    with operators of its own, unless it is the array of some library."""
    if isinstance(
        x, (Tracer, np.ndarray, DeviceArray, np.generic, bool, int, float, complex, list, tuple)
    ):
        return False
    if not offers(x, "__dlpack__") and (
        hasattr(type(x), "__array_ufunc__") or hasattr(type(x), "__radd__")
    ):
        return True
    return not is_borrowable(x)


def binary(ufunc: np.ufunc, x: Any, y: Any) -> Any:
    """`x op y`; one of them is a tracer."""
    if _of_classes(x) or _of_classes(y):
        result = _by_class[0](ufunc, x, y)
        if result is not NotImplemented:
            return result
    if ufunc in _EQUALITIES and isinstance(y, (type(None), str, bytes)) and not x.scalar:
        return wrap(build().full(x.shape, ufunc is np.not_equal, BOOL))
    if _is_list(x) or _is_list(y):
        count = y if _is_list(x) else x
        if isinstance(count, Tracer) and (count.weak or (ufunc is np.multiply and count.scalar)):
            return NotImplemented  # the list's own
        x, y = (z.materialise() if _is_list(z) else z for z in (x, y))
    if range in (type(x), type(y)) and not (weak_kind(x) or weak_kind(y)):  # numbers, for NumPy
        x, y = (np.asarray(z) if type(z) is range else z for z in (x, y))
    if foreign(x) or foreign(y):
        if ufunc is np.add and isinstance(x if isinstance(y, Tracer) else y, (str, bytes)):
            _refuse_text(x, y)
        return NotImplemented
    repeats = ufunc is np.multiply and "f" not in (weak_kind(x), weak_kind(y))
    if not repeats and any(
        isinstance(items, (list, tuple)) and isinstance(other, Tracer) and other.weak
        for items, other in ((x, y), (y, x))
    ):
        return NotImplemented  # Python's own numbers are added to no lists, and equal none
    for items, count in ((x, y), (y, x)):
        if ufunc is np.multiply and isinstance(items, (list, tuple)) and _is_scalar(count):
            return items * _times(count)
    if weak_kind(x) is not None and (weak_kind(y) is not None or _is_python_complex(ufunc, x, y)):
        return _python(ufunc, x, y)
    if ufunc is np.power:
        fast = _simple_power(x, y)
        if fast is not None:
            return fast
    return _located(ufunc, x, y)


def _refuse_text(x: Any, y: Any) -> NoReturn:
    text, number = (y, x) if isinstance(x, Tracer) else (x, y)
    complain(
        errors.DTypeError,
        f"+ of a text and a number or array: {text!r:.40} and {errors.describe(number)}",
        'print it with jt.debug_print("loss {}", x), or return it and make the text outside.',
    )


# Does with numbers of several classes what autograph, which lies above, knows of.
_by_class: list[Callable[..., Any]] = []


def serve(by_class: Callable[..., Any]) -> None:
    """Let `by_class(ufunc, *operands)` compute with numbers of several classes."""
    _by_class[:] = [by_class]


def _of_classes(x: Any) -> bool:
    return isinstance(x, Tracer) and x._storage.exact is not None


def _is_python_complex(ufunc: np.ufunc, x: Any, y: Any) -> bool:
    """Whether this is Python's arithmetic: np.float64 is a float to a complex number on the left, and
    has no operator of its own that goes first."""
    if weak_kind(x) != "c" or ufunc not in (np.add, np.subtract, np.multiply, np.divide):
        return False
    return _is_scalar(y) and y.dtype == np.float64


def _is_list(x: Any) -> bool:
    """Whether an array stands for a list of numbers here (`containers.packed`)."""
    return getattr(type(x), "_jitney_list", False)


def _is_scalar(x: Any) -> bool:
    return isinstance(x, Tracer) and x.scalar and not x.ndim


def _times(count: Tracer) -> int:
    """How often a list is repeated by a scalar, as Python's ints and NumPy's do it."""
    if count.dtype.kind not in "biu":
        raise TypeError(f"can't multiply sequence by non-int of type '{count.dtype.name}'")
    return operator.index(count)


def _located(ufunc: np.ufunc, *operands: Any) -> Any:
    """Apply a ufunc; the few errors without the user's line get it."""
    return _operator(ufunc).trace(operands, {})


@cache
def _operator(ufunc: np.ufunc) -> ArrayFunction:
    name = SYMBOLS.get(ufunc.__name__, ufunc.__name__)
    return ArrayFunction(name, partial(ufuncs.apply, ufunc), ufunc, ufunc)


def _simple_power(x: Any, y: Any) -> Any:
    """The exponents that an ndarray's ** computes without a power: 2, 1, 0, -1, 0.5."""
    if not isinstance(x, Tracer) or type(y) not in (int, float):
        return None
    if is_inexact(x.dtype):
        simple = {2: np.square, 1: np.positive, -1: np.reciprocal, 0.5: np.sqrt}.get(y)
        if simple is not None:
            return ufuncs.apply(simple, x)
    elif type(y) is int and y == 2 and (x.dtype != BOOL or not x.scalar):  # of booleans as int8
        return ufuncs.apply(np.square, x)
    return None


def _python(ufunc: np.ufunc, x: Any, y: Any) -> Tracer:
    """An operator between Python scalars: Python's result type, computed in 64 bits."""
    name = ufunc.__name__
    kinds = {weak_kind(x), weak_kind(y)}
    compares = name in ufuncs.COMPARISONS
    if kinds == {"b"} and (name in _BITWISE or compares):
        kind = "b"
    elif "c" in kinds:
        kind = "c"
        _check_complex(name, x, y)
    elif "f" in kinds or name == "divide" or (name == "power" and _negative(y)):
        kind = "f"
    else:
        kind = "i"
    check_operation(name, x, y, kind)
    dtype = weak_dtype(kind)
    b = build()
    value = LOWERINGS[name](b, as_value(x, dtype), as_value(y, dtype))
    if kind == "i" and value.dtype == I64:
        check_fits(name, (x, y), value)
    return wrap(value, weak="b" if value.dtype == BOOL else kind)


def _check_complex(name: str, x: Any, y: Any) -> None:
    """Python's complex numbers have no order, no remainder and no bits."""
    if name not in ("add", "subtract", "multiply", "divide", "power", "equal", "not_equal"):
        complain(
            errors.DTypeError,
            f"np.{name} is not defined between Python complex numbers",
            "compare or convert their parts: z.real, z.imag, abs(z).",
            operands={"x": x, "y": y},
        )


def _negative(exponent: Any) -> bool:
    constant = static_array(exponent)
    return constant is not None and bool(constant < 0)


def unary(ufunc: np.ufunc, x: Tracer) -> Any:
    if _of_classes(x):
        result = _by_class[0](ufunc, x)
        if result is not NotImplemented:
            return result
    if x.weak == "b":  # Python's -True is -1
        x = wrap(as_value(x, weak_dtype("i")), weak="i")
    result = _located(ufunc, x)
    if x.weak is None:
        return result
    if x.weak == "i":
        check_fits(ufunc.__name__, (x,), as_value(result))
    weak = "f" if is_complex(x.dtype) and not is_complex(result.dtype) else x.weak  # abs
    return wrap(as_value(result), weak=weak)


def in_place(ufunc: np.ufunc, x: Tracer, y: Any) -> Any:
    """`x op= y`: writes to x's storage. Scalars are immutable: they give a new one."""
    if isinstance(y, Union) and not x.scalar:
        y = one_value(
            only(y, message=f"unsupported operand type(s) for {SYMBOLS.get(ufunc.__name__)}=")
        )
    result = binary(ufunc, x, y)
    if x.scalar or result is NotImplemented:
        return result
    check_in_place(ufunc, result.dtype, x)
    if result.shape != x.shape:
        complain(
            errors.ShapeError,
            f"non-broadcastable output operand with shape {x.shape} doesn't match the broadcast "
            f"shape {broadcast_shape([x, y])}",
            "write x = x op y when the result is larger than x.",
            operands={"x": x, "y": y},
        )
    x.assign(as_value(result, x.dtype))
    return x


def _install() -> None:
    for name, ufunc in UNARY.items():
        method(f"__{name}__")(_named(f"__{name}__", lambda x, u=ufunc: unary(u, x)))
    for name, ufunc in BINARY.items():
        method(f"__{name}__")(_named(f"__{name}__", lambda x, y, u=ufunc: binary(u, x, y)))
        method(f"__r{name}__")(_named(f"__r{name}__", lambda x, y, u=ufunc: binary(u, y, x)))
        method(f"__i{name}__")(_named(f"__i{name}__", lambda x, y, u=ufunc: in_place(u, x, y)))
    for name, ufunc in COMPARISONS.items():
        method(f"__{name}__")(_named(f"__{name}__", lambda x, y, u=ufunc: binary(u, x, y)))


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = name
    function.__qualname__ = f"Tracer.{name}"
    return function


_install()


@method("__invert__")
def _invert(x: Tracer) -> Any:
    if x.weak == "b":  # Python's ~True is -2
        x = wrap(as_value(x, weak_dtype("i")), weak="i")
    result = _located(np.invert, x)
    return wrap(as_value(result), weak=x.weak) if x.weak is not None else result


@method("__matmul__")
def _matmul(x: Tracer, y: Any) -> Any:
    matrix = pytree.sparse_matrix(y)
    if matrix is not None:
        return matrix.__rmatmul__(x)
    return NotImplemented if foreign(y) else FUNCTIONS["matmul"].trace((x, y), {})


@method("__rmatmul__")
def _rmatmul(x: Tracer, y: Any) -> Any:
    matrix = pytree.sparse_matrix(y)
    if matrix is not None:
        return matrix @ x
    return NotImplemented if foreign(y) else FUNCTIONS["matmul"].trace((y, x), {})


@method("__imatmul__")
def _imatmul(x: Tracer, y: Any) -> Tracer:
    _IMATMUL.trace((x, y), {})
    return x


def _multiplied(x: Tracer, y: Any) -> None:
    """`x @= y`: nothing is broadcast to x's shape, and y is a matrix or several."""
    if x.ndim < 1 or len(shape_of(y)) < 2:
        raise ValueError(
            "inplace matrix multiplication requires the first operand to have at least one and the "
            "second at least two dimensions."
        )
    result = FUNCTIONS["matmul"].traced(x, y)
    if result.shape != x.shape:
        raise ValueError(
            f"matmul: a result of shape {result.shape} cannot be stored in an operand of shape "
            f"{x.shape}"
        )
    store(x, result)


_IMATMUL = ArrayFunction("@=", _multiplied, np.matmul, None)


@method("__pow__")
def _pow(x: Tracer, y: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        complain(
            errors.UnsupportedFunctionError,
            "pow() with a modulus is not compiled",
            "write x**y % m where x**y fits into 64 bits, or multiply and reduce in a loop.",
            operands={"x": x, "y": y, "modulus": modulus},
        )
    return binary(np.power, x, y)


@method("__divmod__")
def _divmod(x: Tracer, y: Any) -> Any:
    return binary(np.floor_divide, x, y), binary(np.remainder, x, y)


@method("__rdivmod__")
def _rdivmod(x: Tracer, y: Any) -> Any:
    return binary(np.floor_divide, y, x), binary(np.remainder, y, x)


# NumPy's protocols


@method("__array_ufunc__")
def _array_ufunc(self: Tracer, ufunc: np.ufunc, how: str, *inputs: Any, **options: Any) -> Any:
    if any(getattr(type(x), "_jitney_lazy", False) for x in inputs):
        return NotImplemented
    name = ufunc.__name__
    numpy_ufunc = getattr(np, name, None) is ufunc
    if not numpy_ufunc and ufunc not in BY_NUMPY:  # SciPy's: our function of its name, or its loops
        entry = of_scipy(name)
        if entry is None and is_compiled(ufunc):
            entry = _foreign(ufunc)
        if entry is None or how != "__call__":
            unsupported(ufunc)
        return entry.trace(inputs, {k: v for k, v in options.items() if v is not None})
    if name not in LOWERINGS:
        entry = BY_NUMPY.get(ufunc)
        if entry is None or how != "__call__":
            unsupported(ufunc, name if how == "__call__" else f"{name}.{how}")
        return entry.trace(inputs, options)
    return ufunc_method(ufunc, how).trace(inputs, options)


def of_scipy(name: str) -> ArrayFunction | None:
    """The function of a name in SciPy's `special`."""
    ensure("special")
    return FUNCTIONS.get(f"special.{name}") or FUNCTIONS.get(name)


@cache
def _foreign(ufunc: np.ufunc) -> ArrayFunction:
    return ArrayFunction(ufunc.__name__, partial(apply_foreign, ufunc), ufunc, ufunc)


@cache
def ufunc_method(ufunc: np.ufunc, how: str) -> ArrayFunction:
    label = ufunc.__name__ if how == "__call__" else f"{ufunc.__name__}.{how}"
    return ArrayFunction(label, partial(ufunc_methods.method, ufunc, how), ufunc, ufunc)


@method("__array_function__")
def _array_function(
    self: Tracer, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    entry = BY_NUMPY.get(function)
    if entry is None:
        unsupported(function)
    return entry.trace(args, options)


@method("__array_namespace__")
def _array_namespace(self: Tracer, *, api_version: str | None = None) -> Any:
    """The root module: it is an array namespace."""
    return sys.modules[__name__.partition(".")[0]]
