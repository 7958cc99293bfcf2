"""Draws as ops of the trace, one after the other, and what they have in common."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.ops.control.draws import DRAW
from ...ir.types import F32, F64, I64, is_supported
from ..arrays.common import array, broadcast_shape, build, sizes
from ..containers.stand_ins import Container
from ..control.choices import choose
from ..core.effects import advance, check, order_token
from ..core.threaded_state import refuse_examples
from ..core.trace import Trace, current_trace, require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..data.generators import GeneratorKind
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line

_OF_WHOLE_ARRAYS = frozenset(
    ("seed", "choice", "multivariate_normal", "dirichlet", "multinomial")
    + ("multivariate_hypergeometric",)
)


class StandIn:
    """What stands in for a generator while a function is traced. `_handle` says where it is."""

    _kind: GeneratorKind
    _handle: Any
    # The trace in which a generator is made that lives no longer than that; None for those of outside.
    _home: Trace | None = None
    # Gives the generator itself, to callbacks that run later.
    _origin: Callable[[], Any] | None = None

    def __getattribute__(self, name: str) -> Any:
        origin = object.__getattribute__(self, "_origin")
        if origin is not None and name[:1] != "_" and current_trace() is None:
            return getattr(origin(), name)
        return object.__getattribute__(self, name)

    def __init__(self, kind: GeneratorKind, handle: Any) -> None:
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_handle", handle)

    @property
    def __class__(self) -> type:
        """For `isinstance`, the class of what it stands for."""
        return self._kind.cls

    @__class__.setter
    def __class__(self, value: type) -> None:
        raise TypeError("the class of a generator stays")

    def __repr__(self) -> str:
        return f"{self._kind.cls.__name__}({self._kind.bits.__name__ if self._kind.bits else ''})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self._kind.cls, name):
            raise AttributeError(f"{self._kind.cls.__name__!r} object has no attribute {name!r}")
        complain(
            errors.UnsupportedFunctionError,
            f"{self._kind.cls.__name__}.{name} is not there in a compiled function",
            "use it outside, and pass in what it gives; or call it at run time: jt.py_func.",
        )

    def __setattr__(self, name: str, value: Any) -> None:
        self.__getattr__(name)

    def _draw(
        self,
        law: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        *params: Any,
        options: tuple[tuple[str, Any], ...] = (),
    ) -> Tracer:
        """Numbers of a law; `params` are values or what has dtypes that fit."""
        trace = require_trace()
        if under_vmap(self._home):
            refuse_examples()
        values = [p if isinstance(p, Value) else as_value(p) for p in params]
        if law not in _OF_WHOLE_ARRAYS:
            values = [build().broadcast_to(v, shape) if v.shape else v for v in values]
        attrs = {
            "law": law,
            "source": self._kind.source,
            "shape": tuple(shape),
            "dtype": dtype,
            "options": options,
        }
        handle = as_value(self._handle)
        with trace.builder.at(user_line(2)):
            op = trace.builder.append(DRAW, [handle, *values, order_token()], attrs)
            advance(op.results)
        return wrap(op.results[0], scalar=False)


def under_vmap(home: Trace | None = None) -> bool:
    """Whether what is traced is for one of many examples, inside of `home`."""
    trace = current_trace()
    while trace is not home and trace is not None:
        if trace.what == "vmap":
            return True
        trace = trace.parent
    return False


_DTYPES = {"f": F64, "i": I64}


def number(x: Tracer, kind: str | None) -> Any:
    """A 0-d result as one number: Python's of this kind, or NumPy's."""
    return wrap(as_value(x, _DTYPES.get(kind or "")), kind, scalar=True)


def result(x: Tracer, size: Any, kind: str | None) -> Any:
    """What was drawn without a size, and for parameters that are numbers, is a number."""
    return number(x, kind) if size is None and not x.shape else x


def picked(items: Any, indices: Sequence[Any]) -> list[Any]:
    """The items of a sequence at traced places: Python's numbers, texts and tuples of them stay such."""
    if isinstance(items, range):
        return [items.start + index * items.step for index in indices]
    if isinstance(items, Container):  # a list that grows in compiled code
        listed: Any = items
        return [listed[index] for index in indices]
    if isinstance(items, (Tracer, np.ndarray)):
        together = array(items)
        return [together[index] for index in indices]
    chosen = [choose(items, index) for index in indices]
    if None in chosen:
        complain(
            errors.UnsupportedFunctionError,
            "a draw among items that can be changed, or numbers of several classes: which one it is, is "
            "known only when the compiled function runs",
            "draw among numbers, texts or tuples of them; or draw an index, "
            "i = random.randrange(len(items)), and use the items with it.",
        )
    return [item for found in chosen if found is not None for item in found]


def length_of(items: Any) -> Any:
    """`len(items)`; of a list that grows in compiled code a traced int."""
    return items.length() if isinstance(items, Container) else len(items)


def shape_of(size: Any, *params: Any) -> tuple[int, ...]:
    """The shape of a draw: `size`, or that of the parameters together."""
    own = broadcast_shape(params) if params else ()
    if size is None:
        return own
    shape = sizes(size)
    if own != () and np.broadcast_shapes(own, shape) != shape:
        raise ValueError(
            f"Output size {shape} is not compatible with broadcast dimensions of inputs {own}."
        )
    return shape


def floats(x: Any) -> Any:
    """A parameter as float64."""
    if type(x) in (float, int, bool):
        return float(x)
    return array(x, F64) if not isinstance(x, Tracer) or x.dtype != F64 else x


def whole(x: Any) -> Any:
    """A parameter as int64: of floats what NumPy takes, numbers that are whole."""
    if isinstance(x, (Tracer, np.ndarray, list, tuple, np.generic)):
        x = array(x)
        if x.dtype.kind not in "biu":
            raise TypeError(f"Cannot cast from dtype {x.dtype} to dtype int64 according to 'safe'")
        return array(x, I64)
    return operator.index(x) if not isinstance(x, float) or x != int(x) else int(x)


def dtype_of(dtype: Any) -> np.dtype[Any]:
    """A dtype that there are draws of."""
    result = np.dtype(dtype)
    if result not in (F64, F32) or not is_supported(result):
        raise TypeError(f"Unsupported dtype {result!r}")
    return result


_TESTS: dict[str, Any] = {
    ">= 0": lambda x: np.signbit(x) ^ True,
    "not < 0": lambda x: (x < 0) ^ True,
    "> 0": lambda x: x > 0,
    "not <= 0": lambda x: (x <= 0) ^ True,
    "in 0..1": lambda x: (x >= 0) & (x <= 1),
    "in (0, 1]": lambda x: (x > 0) & (x <= 1),
    "in [0, 1)": lambda x: (x >= 0) & (x < 1),
    "> 1": lambda x: x > 1,
    "a rate": lambda x: (x >= 0) & (x <= 9.223372006484771e18),
    "finite": np.isfinite,
}


def require(x: Any, how: str, message: str, error: str = "ValueError") -> None:
    """NumPy's error for a parameter that is not as it has to be: at once where that is certain."""
    holds = np.all(_TESTS[how](x))
    require_that(holds, message, error)


def require_that(holds: Any, message: str, error: str = "ValueError") -> None:
    """The error when the program comes here, unless the condition holds."""
    if isinstance(holds, Tracer) or not holds:
        check(holds, message, error=error)
