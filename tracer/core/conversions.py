"""When Python or NumPy asks a tracer for its value: bool(), float(), len(), iteration, np.asarray.

An eager trace knows its values and gives them, unless a derivative would be lost. Elsewhere each is
an error that says what to write instead.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NoReturn

import numpy as np

from ..messages import errors
from ..messages.errors import complain
from ..messages.expressions import called, users_call, written
from ..messages.source import is_user_frame
from .constants import is_differentiated, known_array
from .trace import Array, EagerBuilder, Trace
from .tracers import Tracer, method, refuse_leaked


@method("__len__")
def length(self: Tracer) -> int:
    """The size of axis 0; TracerIterationError for a 0-d value."""
    if not self.shape:
        complain(
            errors.TracerIterationError,
            "len() of an unsized object: a 0-d value has no length",
            "use x.size, or give the value an axis with x.reshape(1).",
            operands={"x": self},
        )
    return self.shape[0]


@method("__iter__")
def iterate(self: Tracer) -> Iterator[Any]:
    """The slices along axis 0; TracerIterationError for a 0-d value."""
    if not self.shape:
        complain(
            errors.TracerIterationError,
            "iteration over a 0-d value",
            "iterate over an array with an axis; for a traced count write "
            "jt.fori_loop(0, n, body, init).",
            operands={"x": self},
        )
    return (self[i] for i in range(self.shape[0]))


@method("__bool__")
def truth(self: Tracer) -> bool:
    """The value, where it is known; else TracerBoolError, or ArrayTruthError for several elements."""
    constant = _known(self)
    if constant is not None:
        return bool(constant)
    if self.size > 1:
        complain(
            errors.ArrayTruthError,
            "the truth value of an array with more than one element is ambiguous",
            "reduce it with np.any(x) or np.all(x), and branch with jt.where or jt.cond: the "
            "values are known only when the compiled function runs.",
            operands={"condition": self},
        )
    asker = _asker()
    if asker in _INSTEAD:
        complain(
            errors.TracerBoolError,
            f"np.{asker} asked whether a traced value holds, and it {_why(self)}",
            _INSTEAD[asker],
            operands={"condition": self},
        )
    call = _call(self)
    if call is not None:
        complain(
            errors.TracerBoolError,
            f"`{written(call)}` compares traced values, or asks whether they hold, and a traced value "
            f"{_why(self)}",
            f"{_instead(call)}; or compute it before the call.",
            operands={"value": self},
        )
    complain(
        errors.TracerBoolError,
        f"a traced value has no truth value yet: it {_why(self)}, but `if`, `while`, `and`, `or`, "
        "`not`, `assert` and comparisons in a chain ask for it now",
        f"{_let_autograph(self)}write jt.where(condition, a, b) to choose by element, "
        "jt.cond(condition, then, otherwise, *operands) or jt.while_loop to branch, & | ~ for logic; or "
        f"{_make_static(self)}.",
        operands={"condition": self},
    )


_ARRAYS = "sort arrays: np.sort(x), or x[np.argsort(keys)] by a key"
_QUEUES = "write the loop that it stands for, with `if` and an array of the largest size"
_MASKS = "choose by element: np.where(x > 0, x, 0.0), or a loop with `if`"
_FINDS = "look for it in an array: np.argmax(x == value), np.count_nonzero(x == value)"
_OTHERWISE = "write it as a loop with `if` and `while`, which are compiled"
_BY_COMPARISON = {
    **dict.fromkeys(("sorted", "sort"), _ARRAYS),
    "max": "write x[np.argmax(keys)] for the largest by a key",
    "min": "write x[np.argmin(keys)] for the smallest by a key",
    **dict.fromkeys("nlargest nsmallest".split(), _ARRAYS),
    **dict.fromkeys("heapify heappush heappop heappushpop heapreplace merge".split(), _QUEUES),
    **dict.fromkeys(
        "bisect bisect_left bisect_right insort insort_left insort_right".split(),
        "search arrays: np.searchsorted(x, value)",
    ),
    **dict.fromkeys("filter compress takewhile dropwhile filterfalse groupby".split(), _MASKS),
    **dict.fromkeys("index count remove".split(), _FINDS),
}


def _call(x: Tracer) -> ast.Call | None:
    """The call that asks for a value, to be named; None where autograph would have seen to it."""
    return None if _let_autograph(x) else users_call(2)


def _instead(call: ast.Call) -> str:
    functions = [name for name in called(call) if name in _BY_COMPARISON]
    return _BY_COMPARISON[functions[0]] if functions else _OTHERWISE


def _at_each_run(call: ast.Call) -> str:
    """The advice to leave a call to Python."""
    function = written(call.func)
    return (
        f"have Python call it at each run: jt.py_func({function}, jt.ShapeDtype(shape, dtype), ...)"
    )


@method("__float__")
def to_float(self: Tracer) -> float:
    """The number, where it is known; else TracerConversionError."""
    return float(_to_python(self, "float()"))


@method("__int__")
def to_int(self: Tracer) -> int:
    """The number, where it is known; else TracerConversionError."""
    return int(_to_python(self, "int()"))


@method("__complex__")
def to_complex(self: Tracer) -> complex:
    """The number, where it is known; else TracerConversionError."""
    return complex(_to_python(self, "complex()"))


@method("__index__")
def to_index(self: Tracer) -> int:
    """The integer, where it is known; else TracerIndexError."""
    constant = _known(self)
    if constant is not None:
        return constant.__index__()
    call = _call(self)
    who = "Python" if call is None else f"`{written(call)}`"
    where = " (range, a shape, a list index, a slice bound)" if call is None else ""
    index = "" if call is not None else ", loop with jt.fori_loop, or index an array with x[i]"
    try:
        complain(
            errors.TracerIndexError,
            f"{who} needs an integer here{where}, and a traced value {_why(self)}",
            f"{_make_static(self)}{index}.",
            operands={"index": self},
        )
    except errors.TracerIndexError as error:
        self._storage.trace.index_error = error  # `np.zeros(n)` raises another one instead
        raise


_FORMATS = frozenset("str repr format print ascii join write".split())


@method("__format__")
def formatted(self: Tracer, spec: str) -> str:
    """The text of a value that is known; else TracerConversionError."""
    constant = _known(self)
    if constant is not None:
        return format(constant.item(), spec) if not self.shape else format(constant, spec)
    call = _call(self)
    if call is not None and not _FORMATS.intersection(called(call)):
        complain(
            errors.TracerConversionError,
            f"`{written(call)}` asks for the text of a traced value, which {_why(self)}",
            f"{_at_each_run(call)}; or compute it before the call.",
            operands={"x": self},
        )
    complain(
        errors.TracerConversionError,
        f"the text of a traced value was asked for (str, format, print, f-string), and it {_why(self)}",
        'print it at each call with jt.debug_print("{' + (spec and f":{spec}") + '}", x), or '
        f"{_let_autograph(self)}format what the function returns.",
        operands={"x": self},
    )


@method("__str__")
def as_text(self: Tracer) -> str:
    """As `formatted`."""
    return formatted(self, "")


@method("__hash__")
def hashed(self: Tracer) -> int:
    """The hash of a number that is known; else TracerConversionError, or TypeError for an array."""
    if not self.scalar:
        raise TypeError("unhashable type: 'numpy.ndarray'")
    constant = _known(self)
    if constant is not None:
        return hash(constant.item())
    complain(
        errors.TracerConversionError,
        f"a set, a dict or hash() needs the hash of a number, and it {_why(self)}",
        f"look it up in an array, x[i]; or {_make_static(self)}.",
        operands={"x": self},
    )


_NO_MEMORY = "there is no memory to look at while a function is traced"
_ABSENT = {
    **dict.fromkeys(("base", "ctypes", "data"), _NO_MEMORY),
    "setflags": "what a traced function makes is its own: nobody else can write to it",
    "resize": "it would change the shape of every view: use jt.resize(x, shape)",
    **dict.fromkeys(("tobytes", "tofile", "dump", "dumps"), "its elements are not there yet"),
    **dict.fromkeys(("getfield", "setfield"), "write x.view(dtype)[..., i] for a part of the bits"),
    "itemset": "NumPy 2 does not have it: write x[index] = value",
    "newbyteorder": "NumPy 2 does not have it: write x.byteswap()",
}


@method("__getattr__")
def absent(self: Tracer, name: str) -> Any:
    """An AttributeError that says why, for what ndarrays have."""
    why = _ABSENT.get(name)
    if why is None:
        raise AttributeError(f"a traced array has no attribute {name!r}")
    complain(
        errors.TracerAttributeError,
        f"a traced array has no {name!r}: {why}",
        "do it outside of the compiled function, with its result.",
        operands={"x": self},
    )


def refuse_assigned(self: Tracer, name: str, instead: str) -> NoReturn:
    """`x.dtype = ...` changes what an array is for all who have it: TracerAttributeError."""
    complain(
        errors.TracerAttributeError,
        f"the {name} of a traced array cannot be assigned to",
        f"write x = {instead}.",
        operands={"x": self},
    )


def _assign_dtype(self: Tracer, value: Any) -> None:
    refuse_assigned(self, "dtype", "x.view(dtype), or x.astype(dtype)")


Tracer.dtype = Tracer.dtype.setter(_assign_dtype)  # type: ignore[method-assign, attr-defined]


@method("__array__")
def to_array(self: Tracer, dtype: Any = None, copy: bool | None = None) -> Array:
    """The array, where it is known; else TracerConversionError.

    A sparse matrix of SciPy's, asked for its product with a tracer, leaves it to the tracer if that
    is no array to NumPy.
    """
    if sys._getframe(1).f_code.co_name == "_matmul_dispatch":
        return np.array(None, dtype=object)
    constant = _known(self)
    if constant is not None:
        _refuse_active(self, "np.asarray(x)")
        if _is_concrete(self):
            return np.array(constant, dtype=dtype)
        return constant if dtype is None else _read_only(constant.astype(dtype))
    asker = _asker()
    call = _call(self)
    if asker is None and call is not None:
        complain(
            errors.TracerConversionError,
            f"`{written(call)}` asks for the elements of a traced array, and they are known only when "
            "the compiled function runs",
            f"{_at_each_run(call)}; or write it with functions of NumPy's.",
            operands={"x": self},
        )
    if asker is not None:
        complain(
            errors.TracerConversionError,
            f"np.{asker} asked a traced value for its elements, and it {_why(self)}",
            _INSTEAD.get(asker, "compose it of functions that jt has, or of array operations."),
            operands={"x": self},
        )
    complain(
        errors.TracerConversionError,
        f"NumPy asked a traced value for its elements, and it {_why(self)} (np.asarray(x), "
        "np.array([x, 1.0]), or an assignment into an array that NumPy made, as in "
        "`out = np.zeros(n); out[0] = x`)",
        f"{_let_autograph(self)}make the array with jt.zeros, jt.empty, jt.asarray, jt.stack or "
        "np.zeros_like(x), which assignments into are traced.",
        operands={"x": self},
    )


_INSTEAD = {
    "lib.stride_tricks.as_strided": "strides are of memory, and a traced array has none: use "
    "jt.sliding_window_view, reshapes and slices, or an array of indices.",
    "r_": "write jt.r_[...], which takes traced arrays.",
    "c_": "write jt.c_[...], which takes traced arrays.",
    "ndenumerate": "use array operations with jt.indices(x.shape), or loop over range(n).",
    "vectorize": "call the function on the arrays themselves, or use jt.vectorize.",
    "eye": "write jt.eye(n, k=k), which takes a traced k.",
    "tri": "write jt.tri(n, k=k), which takes a traced k.",
}
_CLASSES = {"RClass": "r_", "CClass": "c_", "MGridClass": "mgrid", "OGridClass": "ogrid"}


def _asker() -> str | None:
    """The function of NumPy's, written in Python, that asks for elements: what the user called."""
    frame, asker = sys._getframe(2), None
    while frame is not None and not is_user_frame(frame):
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == "numpy":
            asker = frame
        frame = frame.f_back  # type: ignore[assignment]
    if asker is None:
        return None
    owner = asker.f_locals.get("self")
    if owner is not None:
        return _CLASSES.get(type(owner).__name__, type(owner).__name__)
    name = asker.f_code.co_name
    if name in ("ndim", "shape"):  # asked by us, of what the user gave
        return None
    for space in ("", "linalg.", "fft.", "lib.stride_tricks."):
        if callable(operator.attrgetter(space + name)(np) if _has(space + name) else None):
            return space + name
    return None


def _has(path: str) -> bool:
    try:
        operator.attrgetter(path)(np)
    except AttributeError:
        return False
    return True


def _why(x: Tracer) -> str:
    """Why the value is not there: what completes "a traced value ..."."""
    if _in_vmap(x):
        return "stands for every example at once, because a vmapped function is traced"
    return "is known only when the compiled function runs"


def _in_vmap(x: Tracer) -> bool:
    trace: Trace | None = x._storage.trace
    while trace is not None and trace.what != "vmap":
        trace = trace.parent
    return trace is not None


_unread: dict[int, tuple[CodeType, str]] = {}  # by the ids of code objects


def unreadable(code: CodeType, why: str) -> None:
    """Remember a function that is traced as it stands, because autograph could not read its source."""
    _unread[id(code)] = code, why


def _let_autograph(x: Tracer) -> str:
    """The advice to have it compiled as it stands, where that could be and is not."""
    if not x._storage.trace.options.autograph:
        return "leave out autograph=False; or "
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code, why = _unread.get(id(frame.f_code), (None, ""))
        if code is not None:
            return f"`if` and loops of {code.co_name} were not compiled, because {why}; or "
        frame = frame.f_back
    return ""


def _make_static(x: Tracer) -> str:
    """The advice to make `x`, or what it was computed from, a static argument."""
    value = x._storage.value
    if _in_vmap(x):
        return "pass a Python number with the axis None (in_axes)"
    if x._storage.parameter is None or x._storage.version or not value.name:
        return (
            "compute it before the call and pass it as an argument: numbers are compiled in where they "
            "are needed"
        )
    return f"make `{value.name}` static (static_argnames={value.name!r})"


def _is_concrete(x: Tracer) -> bool:
    """Whether the value is known. Python asks for it now, so a tracer must be alive."""
    trace = x._storage.trace
    if trace.done:
        refuse_leaked(x)
    return isinstance(trace.builder, EagerBuilder)


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _known(x: Tracer) -> Array | None:
    """The elements, if they are known: of an eager trace, or of constants."""
    if x._storage.trace.done:
        refuse_leaked(x)
    return known_array(x)


def _to_python(x: Tracer, what: str) -> Any:
    array = _known(x)
    if array is not None:
        if what != "int()":
            _refuse_active(x, what)
        return array if array.ndim else array[()]
    call = _call(x)
    if call is not None and called(call)[:1] not in (["float"], ["int"], ["complex"]):
        numpys = ""
        if written(call.func).startswith(("math.", "cmath.")) and hasattr(np, called(call)[0]):
            numpys = f"write np.{called(call)[0]}, which is compiled; or "
        complain(
            errors.TracerConversionError,
            f"`{written(call)}` asks for a number, and a traced value {_why(x)}",
            f"{numpys}{_at_each_run(call)}; or {_make_static(x)}.",
            operands={"x": x},
        )
    complain(
        errors.TracerConversionError,
        f"{what} needs a number, and a traced value {_why(x)} "
        "(math functions and formatting ask for it too, and so does an assignment into an array "
        "that NumPy made: `out = np.zeros(n); out[0] = x`)",
        "stay with arrays: x.astype(dtype) to convert, jt.sin instead of math.sin, jt.zeros "
        f"instead of np.zeros for arrays that you fill; or {_make_static(x)}.",
        operands={"x": x},
    )


def _refuse_active(x: Tracer, what: str) -> None:
    """A value that is being differentiated must not turn into a constant without a word."""
    trace: Any = x._storage.trace
    if not is_differentiated(x):
        return
    while not trace.eager:
        trace = trace.parent
    complain(
        errors.TracerConversionError,
        f"{what} makes a plain number of a value that {trace.what} differentiates, and the "
        "derivative would be lost (math functions ask for one, and so does an assignment into an "
        "array that NumPy made: `out = np.zeros(n); out[0] = x`)",
        "stay with arrays: jt.sin instead of math.sin, jt.zeros or np.zeros_like(x) instead of "
        "np.zeros for arrays that you fill; for the number as a constant write "
        "float(jt.stop_gradient(x)).",
        operands={"x": x},
    )
