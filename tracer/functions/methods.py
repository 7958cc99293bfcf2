"""The methods and attributes of an ndarray, on tracers: most are functions of the same name."""

from __future__ import annotations

import builtins
import operator
from typing import Any

import numpy as np

from ...ir.types import dtype_kind, is_complex
from ..arrays.common import build, known_array, lies_in, store
from ..arrays.float_errors import checked, raising
from ..arrays.python_errors import check_int
from ..arrays.python_integers import as_python_integer
from ..arrays.python_rounding import round_float, round_int
from ..arrays.table import FUNCTIONS, ArrayFunction
from ..core import views
from ..core.constants import is_differentiated
from ..core.conversions import absent
from ..core.tracers import WEAK_DTYPES, Tracer, as_value, attribute, method, wrap, wrap_like
from ..data.layout import is_contiguous, order_of
from ..data.promotion import can_cast, canonical
from ..indexing.bit_views import bit_view
from ..messages import errors
from ..messages.errors import complain

_KIND = {"b": "b", "i": "i", "u": "i", "f": "f", "c": "c"}


def _forward(name: str, function: str) -> None:
    def call(self: Tracer, *args: Any, **options: Any) -> Any:
        return FUNCTIONS[function].trace((self, *args), options)

    call.__name__ = name
    call.__qualname__ = f"Tracer.{name}"
    method(name)(call)


for _name in (
    "all any argmax argmin argsort cumprod cumsum diagonal dot max mean "
    "min nonzero prod repeat round searchsorted squeeze std sum swapaxes take trace var"
).split():
    _forward(_name, _name)
_forward("argpartition", "argpartition")


def _shape(args: tuple[Any, ...]) -> Any:
    """Shapes, axes and choices come as one sequence or one by one."""
    return args[0] if len(args) == 1 else args


@method("reshape")
def reshape(self: Tracer, *shape: Any, order: str = "C", copy: Any = None) -> Tracer:
    return FUNCTIONS["reshape"].trace((self, _shape(shape)), {"order": order, "copy": copy})


@method("transpose")
def transpose(self: Tracer, *axes: Any) -> Tracer:
    chosen = _shape(axes) if axes else None
    return FUNCTIONS["transpose"].trace((self, chosen), {})


@method("ravel")
def ravel(self: Tracer, order: str = "C") -> Tracer:
    return FUNCTIONS["ravel"].trace((self, order), {})


@method("clip")
def clip(self: Tracer, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Tracer:
    return FUNCTIONS["clip"].trace((self, min, max, out), options)


@method("flatten")
def flatten(self: Tracer, order: str = "C") -> Tracer:
    return wrap(as_value(FUNCTIONS["ravel"].trace((self, order), {})), scalar=False)


@attribute("T")
def T(self: Tracer) -> Tracer:
    return views.transpose(self, range(self.ndim)[::-1])


@attribute("mT")
def mT(self: Tracer) -> Tracer:
    return FUNCTIONS["matrix_transpose"].trace((self,), {})


def _part(name: str) -> None:
    """`x.real` and `x.imag`: views of complex arrays, which can be assigned to as a whole, too."""

    def get(self: Tracer) -> Tracer:
        return FUNCTIONS[name].trace((self,), {})

    def put(self: Tracer, value: Any) -> None:
        if name == "imag" and not is_complex(self.dtype):
            raise TypeError("array does not have imaginary part to set")
        get(self)[...] = value

    setattr(Tracer, name, property(get, put))


_part("real")
_part("imag")


@attribute("device")
def device(self: Tracer) -> str:
    return "cpu"


@method("to_device")
def to_device(self: Tracer, device: Any, /, *, stream: Any = None) -> Tracer:
    if device != "cpu":
        raise ValueError(f"Unsupported device: {device}.")
    return self


@method("astype")
def astype(
    self: Tracer,
    dtype: Any,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Tracer:
    try:
        target = canonical(dtype)
    except TypeError as error:
        complain(
            errors.DTypeError,
            str(error),
            "convert to one of the supported dtypes.",
            operands={"x": self},
            cause=error,
        )
    if not can_cast(self.dtype, target, casting):
        complain(
            errors.CastingError,
            f"Cannot cast array data from {self.dtype!r} to {target!r} according to the rule "
            f"{casting!r}",
            "leave casting= out to convert anyway.",
            operands={"x": self},
        )
    order = order_of(order, "K")
    if target == self.dtype and not copy and self.weak is None and lies_in(self, order):
        return self
    build()
    value = as_value(self, target)
    if target != self.dtype and raising():
        checked("cast", [as_value(self)], value)
    return wrap_like(value, (self,), scalar=self.scalar, order=order, copy=True)


@method("conj", "conjugate")
def conj(self: Tracer, out: Any = None) -> Tracer:
    if out is not None:
        result = FUNCTIONS["conjugate"].trace((self,), {}) if is_complex(self.dtype) else self
        return store(out, result)
    if not is_complex(self.dtype):
        return self
    result = FUNCTIONS["conjugate"].trace((self,), {})
    return result if self.weak is None else wrap(as_value(result), weak=self.weak)


@method("copy")
def copy(self: Tracer, order: str = "C") -> Tracer:
    return wrap_like(as_value(self), (self,), scalar=self.scalar, order=order_of(order), copy=True)


@method("__copy__")
def shallow_copy(self: Tracer) -> Tracer:
    return copy(self, "K")


@method("__deepcopy__")
def deepcopy(self: Tracer, memo: Any) -> Tracer:
    return copy(self, "K") if self.weak is None else wrap(as_value(self), self.weak)


@method("view")
def view(self: Tracer, dtype: Any = None, type: Any = None) -> Tracer:
    if isinstance(dtype, builtins.type) and issubclass(dtype, np.ndarray):
        dtype, type = None, dtype
    if type not in (None, np.ndarray):
        complain(
            errors.UnsupportedFunctionError,
            f"a view as a {type.__name__}: compiled code knows ndarrays only",
            "leave type= out.",
            operands={"x": self},
        )
    if dtype is None or np.dtype(dtype) == self.dtype:
        return views.identity(self)
    return _VIEW.trace((self, dtype), {})


def _bit_view(x: Tracer, dtype: Any) -> Tracer:
    if x.weak is not None or x.scalar:
        return wrap(as_value(bit_view(wrap(as_value(x), scalar=False), canonical(dtype))))
    return bit_view(x, canonical(dtype))


_VIEW = ArrayFunction("x.view", _bit_view, np.ndarray.view, None)


@method("byteswap")
def byteswap(self: Tracer, inplace: bool = False) -> Tracer:
    size = self.itemsize // (2 if is_complex(self.dtype) else 1)
    copy = wrap(as_value(self), scalar=False).reshape(-1)
    swapped = copy.view(np.uint8).reshape(-1, size)[:, ::-1].copy().reshape(-1).view(self.dtype)
    swapped = swapped.reshape(self.shape)
    if not inplace:
        return wrap_like(as_value(swapped), (self,), scalar=self.scalar, order="A")
    self[...] = swapped
    return self


class Flags:
    """`x.flags`: what NumPy's array would have."""

    def __init__(self, x: Tracer) -> None:
        self.writeable = x.writeable
        self.c_contiguous = is_contiguous(x.shape, x.element_strides, "C")
        self.f_contiguous = is_contiguous(x.shape, x.element_strides, "F")
        self.contiguous = self.c_contiguous
        self.forc = self.c_contiguous or self.f_contiguous
        self.fnc = self.f_contiguous and not self.c_contiguous
        self._x = x
        self.aligned = True
        self.writebackifcopy = False

    @property
    def owndata(self) -> bool:
        x = self._x
        if x._view is None and x._storage.parameter is not None:
            complain(
                errors.UnsupportedFunctionError,
                "whether an argument owns its memory may change from call to call",
                "take a copy, x.copy(), if what is written shall not be seen by others.",
                operands={"x": x},
            )
        return x._view is None

    def __getitem__(self, name: str) -> bool:
        return bool(getattr(self, name.lower()))


@attribute("flags")
def flags(self: Tracer) -> Flags:
    return Flags(self)


@method("item")
def item(self: Tracer, *index: Any) -> Any:
    """The element as a Python scalar: the number itself when it is known, and no derivative lost with
    it; else a weak tracer."""
    element: Any = self
    if index:
        position = _shape(index)
        flat = isinstance(position, int) and self.ndim != 1
        element = self.ravel()[position] if flat else self[position]
    elif self.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    constant = known_array(element)
    if constant is not None and not is_differentiated(element):
        return constant.item()
    value = element.reshape(()) if element.ndim else element
    kind = _KIND[dtype_kind(value.dtype)]
    number = as_python_integer(value) if kind == "i" else as_value(value, WEAK_DTYPES[kind])
    return wrap(number, weak=kind)


@method("tolist")
def tolist(self: Tracer) -> Any:
    """Nested lists of the elements, each as `item()` gives it."""
    return [x.tolist() for x in self] if self.ndim else self.item()


@method("fill")
def fill(self: Tracer, value: Any) -> None:
    self[...] = value


@method("sort")
def sort(self: Tracer, axis: int = -1, kind: Any = None, order: Any = None, **options: Any) -> None:
    """In place, as an ndarray's."""
    self[...] = FUNCTIONS["sort"].trace((self, axis, kind, order), options)


@method("partition")
def partition(self: Tracer, kth: Any, axis: int = -1, **options: Any) -> None:
    self[...] = FUNCTIONS["partition"].trace((self, kth, axis), options)


@method("put")
def put(self: Tracer, indices: Any, values: Any, mode: str | None = "raise") -> None:
    FUNCTIONS["put"].trace((self, indices, values, mode), {})


@method("choose")
def choose(self: Tracer, *choices: Any, out: Any = None, mode: str = "raise") -> Tracer:
    return FUNCTIONS["choose"].trace((self, _shape(choices)), {"out": out, "mode": mode})


@method("compress")
def compress(self: Tracer, condition: Any, axis: Any = None, out: Any = None) -> Tracer:
    return FUNCTIONS["compress"].trace((condition, self, axis, out), {})


@method("__contains__")
def contains(self: Tracer, value: Any) -> bool:
    return bool((self == value).any())


def _whole(name: str, function: str) -> None:
    """`math.floor(x)` and its kin: a Python int."""

    def call(self: Tracer) -> Tracer:
        check_int(self)
        return FUNCTIONS[function].trace((self,), {}).astype(np.int64).item()

    method(name)(call)


_whole("__floor__", "floor")
_whole("__ceil__", "ceil")
_whole("__trunc__", "trunc")


@method("__round__")
def round_(self: Tracer, ndigits: Any = None) -> Any:
    if ndigits is None:
        check_int(self)
        return FUNCTIONS["round"].trace((self,), {}).astype(np.int64).item()
    if self.weak == "f":
        return round_float(wrap(as_value(self)), operator.index(ndigits)).item()
    if self.weak in ("b", "i"):
        return round_int(+self, operator.index(ndigits))
    return FUNCTIONS["round"].trace((self, ndigits), {})


# Methods that Python's numbers have, and NumPy's scalars some of


@attribute("bit_length")
def _bit_length(self: Tracer) -> Any:
    if self.weak != "i":
        return absent(self, "bit_length")
    return lambda: _bits(_smeared(self))


@attribute("bit_count")
def _bit_count(self: Tracer) -> Any:
    if not self.scalar or self.dtype.kind not in "iu":
        return absent(self, "bit_count")
    return lambda: _bits(abs(self)) if self.weak else np.bitwise_count(abs(self))


@attribute("is_integer")
def _is_integer(self: Tracer) -> Any:
    if not self.scalar or self.dtype.kind not in "iuf":
        return absent(self, "is_integer")
    return lambda: (np.isfinite(self) & (np.trunc(self) == self)).item()


def _bits(x: Any) -> Any:
    return np.bitwise_count(x).astype(np.int64).item()


def _smeared(x: Any) -> Any:
    """The number with all bits below its highest one."""
    x = abs(x)
    for shift in (1, 2, 4, 8, 16, 32):
        x = x | (x >> shift)
    return x
