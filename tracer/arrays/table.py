"""The one table of array functions: `FUNCTIONS` by public name, `BY_NUMPY` by NumPy's callable.

Each entry has a *traced* implementation, written over tracers, and a *reference* (NumPy's function,
or our own where NumPy has none). `jt.f(...)` runs the traced one when a trace is in progress and an
argument is an array (or the function makes one), otherwise the reference. `np.f(tracer)` arrives here
through NumPy's protocols. To add a function is to write its traced implementation under

    @function("linalg.norm")                   # np.linalg.norm, also in jt.linalg
    @function("erf", reference=erf_reference)  # no such name in NumPy
    @function("zeros", creates=True)           # makes an array from none
    @function("conv", composed=True)           # ours: eagerly, what it traces is run op by op
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from ...ir.graph import Graph
from ...ir.opdef import GraphError, Origin, importing
from ...ir.record import record
from ...ir.types import is_complex
from ...runtime.cuda.array import DeviceArray
from ..core.trace import Trace, current_trace, tracing
from ..core.tracers import Tracer, concrete, refuse_leaked
from ..devices.device_calls import run_entry
from ..messages import errors
from ..messages.errors import JitneyError, complain
from ..messages.source import source_text, user_line
from .numpy_names import ABSENT

F = TypeVar("F", bound=Callable[..., Any])


@record(eq=False)
class ArrayFunction:
    """One function of the table.

    `name` is the public name, dotted for a sub-namespace (`linalg.norm`). `creates` marks functions
    that make arrays from shapes and numbers: while tracing they always give traced arrays, so that
    assignments into them are traced.
    """

    name: str
    traced: Callable[..., Any]
    reference: Callable[..., Any]
    numpy: Callable[..., Any] | None
    creates: bool = False
    computes: bool = True  # else what it gives does, later

    def trace(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the traced implementation; whatever it raises names the user's line."""
        if current_trace() is None:
            for leaf in tracers_among((*args, *kwargs.values())):
                refuse_leaked(leaf)
        try:
            if kwargs:
                args, kwargs = _by_our_names(self, args, kwargs)
            for x in args:
                if type(x) in LAZY or (
                    type(x) in (list, tuple) and any(type(p) in LAZY for p in x)
                ):
                    return lazy_among(args)._call(self, args, kwargs)
            return self.traced(*args, **kwargs)
        except JitneyError:
            raise
        except GraphError as error:
            tracers = tracers_among((*args, *kwargs.values()))
            if any(is_complex(x.dtype) for x in tracers):
                refuse_complex(self.name, error)
            raise
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            if type(error).__module__ not in ("builtins", "numpy.exceptions"):
                raise
            if hasattr(error, "jitney_line"):
                raise
            raise _with_line(error, self.name) from error

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None:
            if self.creates or holds_array(args) or holds_array(kwargs.values()):
                return self.trace(args, kwargs)
        elif holds_tracer(args) or holds_tracer(kwargs.values()):
            return self.trace(args, kwargs)
        elif (self.computes and holds_device_array(args)) or holds_device_array(kwargs.values()):
            return run_entry(self, args, kwargs)
        return self.reference(*args, **kwargs)


def _by_our_names(
    entry: ArrayFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Arguments by keyword under the names of NumPy's parameters as our parameters have them.

    What NumPy's function takes at a position, the traced one takes there, whatever its name is.
    """
    ours, parameters = _parameters(entry.numpy, entry.traced)
    other = [name for name in kwargs if name not in ours and name in parameters]
    if not other:
        return args, kwargs
    rest = dict(kwargs)
    for name in other:
        parameter = parameters[name]
        if parameter.name is None:  # by position only
            if len(args) != parameter.at:
                return args, kwargs
            args = (*args, rest.pop(name))
        elif len(args) <= parameter.at and parameter.name not in kwargs:
            rest[parameter.name] = rest.pop(name)
    return args, rest


class _Parameter(NamedTuple):
    """Where a parameter of NumPy's stands, and our parameter there; None for one without a name."""

    at: int
    name: str | None


@functools.cache
def _parameters(
    numpy: Callable[..., Any] | None, traced: Callable[..., Any]
) -> tuple[frozenset[str], dict[str, _Parameter]]:
    """The names that our function takes by keyword, and the positions of NumPy's parameters."""
    try:
        theirs = inspect.signature(numpy).parameters if numpy is not None else {}
        mine = inspect.signature(traced).parameters
    except (TypeError, ValueError):
        return frozenset(), {}
    ordered = [p for p in mine.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    parameters = {
        name: _Parameter(i, None if ours.kind is ours.POSITIONAL_ONLY else ours.name)
        for i, (name, ours) in enumerate(zip(theirs, ordered, strict=False))
        if theirs[name].kind in (ours.POSITIONAL_ONLY, ours.POSITIONAL_OR_KEYWORD)
    }
    names = frozenset(p.name for p in mine.values() if p.kind is not p.POSITIONAL_ONLY)
    return names, parameters


LAZY: set[type] = set()  # classes of arrays whose length is a value: `x._call(entry, args, kwargs)`


def lazy_among(args: Iterable[Any]) -> Any:
    """The first argument, or element of one that is a list or tuple, of a class in `LAZY`."""
    for x in args:
        if type(x) in LAZY:
            return x
        if type(x) in (list, tuple):
            for part in x:
                if type(part) in LAZY:
                    return part
    return None


FUNCTIONS: dict[str, ArrayFunction] = {}
_origins: dict[str, Origin] = {}
BY_NUMPY: dict[Any, ArrayFunction] = {}


def function(
    *names: str,
    reference: Callable[..., Any] | None = None,
    creates: bool = False,
    composed: bool = False,
    computes: bool = True,
) -> Callable[[F], F]:
    """Enter the decorated traced implementation into the table under `names`.

    The reference of each name is NumPy's function of that name unless `reference` is given. Names
    that the installed NumPy does not have get the reference of the first name. A `composed` function
    is its own: eagerly it runs op by op; its docstring is the users'.
    """

    def enter(traced: F) -> F:
        first = eagerly(traced) if composed else reference
        for name in names:
            by_numpy = None if composed else numpy_function(name)
            eager = reference or by_numpy or first
            if eager is None:
                raise ValueError(f"{name} has no reference")
            first = first or eager
            entry = ArrayFunction(name, traced, eager, by_numpy, creates, computes)
            if _origins.setdefault(name, importing()) != importing():
                raise ValueError(f"function {name!r} is defined twice")
            FUNCTIONS[name] = entry
            if by_numpy is not None:
                BY_NUMPY.setdefault(by_numpy, entry)
        return traced

    return enter


def eagerly(traced: Callable[..., Any]) -> Callable[..., Any]:
    """What `traced` would trace, run op by op on arrays."""

    @functools.wraps(traced)
    def reference(*args: Any, **kwargs: Any) -> Any:
        with tracing(Trace(Graph(traced.__name__), eager=True)):
            try:
                result = traced(*args, **kwargs)
            except GraphError as error:
                if any(is_complex(getattr(x, "dtype", np.dtype(bool))) for x in args):
                    refuse_complex(traced.__name__, error)
                raise
            if isinstance(result, tuple):
                parts = [_own(concrete(p)) if isinstance(p, Tracer) else p for p in result]
                return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
            return _own(concrete(result))

    return reference


def _own(array: np.ndarray[Any, Any]) -> Any:
    """A copy of the array; a scalar of one without dims."""
    return array.copy() if array.ndim else array[()]


def numpy_function(name: str) -> Callable[..., Any] | None:
    """NumPy's callable of a dotted name, or None."""
    value: Any = np
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


_CONTAINERS = (list, tuple, dict)


def _elements(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def holds_tracer(values: Iterable[Any]) -> bool:
    """Whether a tracer is among the values, or in lists, tuples and dicts of them."""
    return any(
        isinstance(v, Tracer)
        or getattr(type(v), "_jitney_lazy", False)
        or (isinstance(v, _CONTAINERS) and holds_tracer(_elements(v)))
        for v in values
    )


def holds_device_array(values: Iterable[Any]) -> bool:
    """Whether a DeviceArray is among the values, or in lists, tuples and dicts of them."""
    return any(
        isinstance(v, DeviceArray)
        or (isinstance(v, _CONTAINERS) and holds_device_array(_elements(v)))
        for v in values
    )


def tracers_among(values: Iterable[Any]) -> Iterable[Tracer]:
    """The tracers among the values, and in lists, tuples and dicts of them."""
    for v in values:
        if isinstance(v, Tracer):
            yield v
        elif isinstance(v, _CONTAINERS):
            yield from tracers_among(_elements(v))


def holds_array(values: Iterable[Any]) -> bool:
    """Whether a tracer or an ndarray is among the values, or in lists, tuples and dicts of them."""
    return any(
        isinstance(v, (Tracer, np.ndarray, DeviceArray))
        or getattr(type(v), "_jitney_lazy", False)
        or (isinstance(v, _CONTAINERS) and holds_array(_elements(v)))
        for v in values
    )


def _with_line(error: Exception, name: str) -> Exception:
    """An error like `error`, of the same class, with the user's line in its message."""
    line = user_line(2)
    # Python names the implementation, `_sum.<locals>.traced() got an unexpected keyword ...`.
    text = re.sub(r"^[\w.<>]+\(\) (?=got|takes|missing)", f"{name}() ", str(error))
    said = text
    if line is not None:
        text = f"{text}\n  at {line} in {line.function}\n    {source_text(line)}"
        text = f"{text}\n{line.file.rpartition('/')[2]}:{line.line}: {name}: {said}"
    kind = type(error) if type(error).__module__ == "builtins" else ValueError
    if isinstance(error, np.exceptions.AxisError):
        kind = errors.AxisBoundsError
    located = kind(text)
    located.jitney_line = line  # type: ignore[attr-defined]
    return located


def refuse_complex(name: str, cause: Exception | None = None) -> NoReturn:
    """TypeError for a function that works on other numbers, but not on complex ones."""
    complain(
        errors.DTypeError,
        f"{name} is not defined for complex numbers in compiled code",
        "apply it to z.real and z.imag, or to abs(z).",
        cause=cause,
    )


def unsupported(called: Any, name: str | None = None) -> NoReturn:
    """TypeError for a NumPy function that is not in the table, with the nearest names that are."""
    name = name or str(getattr(called, "__name__", called))
    module = getattr(called, "__module__", None) or "numpy"
    if name in ABSENT:
        complain(
            errors.UnsupportedFunctionError,
            f"{module}.{name} cannot be compiled",
            f"{ABSENT[name]}; or compute it outside of the compiled function.",
        )
    near = difflib.get_close_matches(name, FUNCTIONS, n=3, cutoff=0.6)
    hint = f"the nearest that are: {', '.join('np.' + n for n in near)}" if near else ""
    complain(
        errors.UnsupportedFunctionError,
        f"{module}.{name} cannot be traced yet",
        f"{module}.{name} is not among the functions that jitney compiles"
        f"{'; ' + hint if hint else ''}; compute it outside of the compiled function, or compose "
        f"it from supported functions.",
    )


def refuse_option(function_name: str, **options: Any) -> NoReturn:
    """TypeError for an argument value that the traced implementation does not have."""
    text = ", ".join(f"{name}={value!r}" for name, value in options.items())
    complain(
        errors.UnsupportedFunctionError,
        f"{function_name} with {text} cannot be traced",
        f"leave out {', '.join(options)}, or compute this outside of the compiled function.",
    )
