"""How the functions of `jt.random` run: traced where something is traced, else compiled and called.

Outside of compiled functions a sampler is a compiled function of its own: what it draws is then the same
to the last bit, eagerly and as a part of other compiled functions, on every machine.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from ...ir.forks import renewed
from ...ir.types import F32, dtype_name
from ..arrays.table import ArrayFunction
from ..core.trace import current_trace
from ..messages.errors import raised_by
from ..messages.tracebacks import shorten

F = TypeVar("F", bound=Callable[..., Any])

# Parameters that decide shapes, dtypes or algorithms: part of the program, not inputs of it.
_STATIC = frozenset("axis dtype endpoint independent method mode num ordered replace shape".split())
_LENGTHS = (int, np.integer)
_KEPT = 1024  # of a function; the oldest goes first
_lock = renewed(threading.RLock())


def sampler(
    example: str = "",
    *,
    static: tuple[str, ...] = (),
    counts: tuple[str, ...] = (),
    narrow: bool = False,
) -> Callable[[F], F]:
    """The decorated function, written over tracers, as users call it.

    `static` names parameters that are no arrays, besides those that never are (shape, dtype, ...);
    `counts` those that may be arrays or Python ints, which are lengths. Numbers of 16 bits are those of
    float32, rounded, unless the function is one for `narrow` numbers itself. The documentation says
    what shapes, dtypes and errors follow from the parameters, and shows the `example`.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        floats = "dtype" in signature.parameters and signature.parameters["dtype"].default is None
        traced: Any = _rounded(function, signature) if floats and not narrow else function
        fixed = _STATIC.union(static) & set(signature.parameters)
        eager = _Compiled(traced, signature, fixed, counts)
        entry = ArrayFunction(f"random.{traced.__name__}", traced, eager, None, creates=True)

        @functools.wraps(traced)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                if current_trace() is None:
                    return entry(*args, **kwargs)
                return entry.trace(args, kwargs)
            except Exception as error:
                shorten(error)
                raise

        def advancing(key_of: Callable[[Any], Any]) -> _Compiled:
            """The function, compiled, of what `key_of` makes a key of."""

            def function(key: Any, **parameters: Any) -> Any:
                return traced(key_of(key), **parameters)

            return _Compiled(functools.wraps(traced)(function), signature, fixed, counts)

        call.__module__ = "jitney.random"
        call.__doc__ = _described(function, signature, example)
        call.advancing = advancing  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def _described(function: Callable[..., Any], signature: inspect.Signature, example: str) -> str:
    """The docstring, with what holds for all functions of such parameters, and the example."""
    text = inspect.cleandoc(function.__doc__ or "")
    optional = [name for name, p in signature.parameters.items() if p.default is None]
    says, raised = [], {"jt.errors.ArgumentError", *raised_by(function)}
    if "shape" in optional:
        raised.add("jt.errors.ShapeError")
        if "`shape`" not in text:
            says.append("`shape` is the result's, into which parameters broadcast (None: theirs).")
    if "dtype" in optional:
        raised.add("jt.errors.DTypeError")
        says.append("`dtype` is a float (None: float32 if all float parameters are, else float64).")
    text += "\n\n" + "\n".join([*says, f"Raises {', '.join(sorted(raised))}."])
    if example:
        arguments, result = example.split(" -> ")
        call = f"jt.random.{function.__name__}(jt.random.key(42), {arguments})"
        text += f"\n\n>>> {call}{'.round(4)' if '.' in result else ''}\n{result}"
    return text + "\n"


def _rounded(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """The function, which knows float32 and float64, for float16 and bfloat16 too."""
    index = list(signature.parameters).index("dtype")

    @functools.wraps(function)
    def rounded(*args: Any, **kwargs: Any) -> Any:
        dtype = args[index] if len(args) > index else kwargs.get("dtype")
        if dtype is None or dtype_name(np.dtype(dtype)) not in ("f16", "bf16"):
            return function(*args, **kwargs)
        if len(args) > index:
            args = (*args[:index], F32, *args[index + 1 :])
        else:
            kwargs["dtype"] = F32
        return function(*args, **kwargs).astype(dtype)

    return rounded


class _Compiled:
    """A function as compiled functions of its arrays, one for each choice of its other arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: inspect.Signature,
        static: frozenset[str],
        counts: tuple[str, ...],
    ) -> None:
        self.function = function
        self.signature = signature
        self.names = tuple(signature.parameters)
        self.static = static
        self.counts = counts
        self.made: OrderedDict[Hashable, Callable[..., Any]] = OrderedDict()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        parameters = dict(zip(self.names, args, strict=False))
        if len(args) > len(self.names) or not parameters.keys().isdisjoint(kwargs):
            self.signature.bind(*args, **kwargs)  # says what is wrong
        parameters.update(kwargs)
        static, counts = self.static, self.counts
        fixed, names, arrays = [], [], []
        for name, value in parameters.items():
            if name in static or (name in counts and isinstance(value, _LENGTHS)):
                changes = isinstance(value, (list, np.ndarray))
                fixed.append((name, _hashable(value) if changes else value))
            elif value is not None:
                names.append(name)
                arrays.append(np.asarray(value) if isinstance(value, (list, tuple)) else value)
        key = (tuple(fixed), tuple(names))
        function = self.made.get(key)
        return (self._function(*key) if function is None else function)(*arrays)

    def _function(
        self, fixed: tuple[tuple[str, Any], ...], names: tuple[str, ...]
    ) -> Callable[..., Any]:
        compiled = self.made.get((fixed, names))
        if compiled is None:
            from ..jit.decorator import jit

            self.signature.bind(**dict(fixed), **dict.fromkeys(names))
            compiled = jit(_partial(self.function, fixed, names))
            compiled.is_formula = True
            with _lock:
                compiled = self.made.setdefault((fixed, names), compiled)
                if len(self.made) > _KEPT:
                    self.made.popitem(last=False)
        return compiled


def _partial(
    function: Callable[..., Any], fixed: tuple[tuple[str, Any], ...], names: tuple[str, ...]
) -> Callable[..., Any]:
    def draw(*arrays: Any) -> Any:
        return function(**dict(fixed), **dict(zip(names, arrays, strict=True)))

    draw.__name__ = draw.__qualname__ = function.__name__
    return draw


def _hashable(value: Any) -> Any:
    if isinstance(value, (list, np.ndarray)):
        flat = np.asarray(value)
        return tuple(flat.tolist()) if flat.ndim else flat.item()
    return value
