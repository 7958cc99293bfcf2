"""What NumPy makes of all numbers of a native list, one after the other: sums, means, extremes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.graph import Value
from ..control.control import cond, fori_loop
from ..control.number_classes import MIXED
from ..core.kept import keep
from ..core.tracers import as_value, wrap
from .boxes import is_box
from .stand_ins import fail, require

Fold = Callable[..., Any]


class _Numbers:
    """The elements as numbers of NumPy's: those of one class, in a list that is not empty for good."""

    def __init__(self, items: Any, dtype: np.dtype[Any] | None) -> None:
        form = items.kind.value
        self.length, self._item = items.length(), items.at
        box = form.example.kind if is_box(form) else None
        self.shape: tuple[int, ...] = () if box is None else box.shape
        self.dtype = (form.leaves[0][0] if box is None else box.dtype) if dtype is None else dtype

    def at(self, i: Any) -> Any:
        item = self._item(i)
        number = wrap(as_value(item)) if self.shape else _of_numpy(as_value(item))
        if self.shape:
            keep(number)  # in NumPy it is a view
        return number if number.dtype == self.dtype else number.astype(self.dtype)

    def whole(self, number: Any) -> Any:
        """A number in each place of a row."""
        return np.full(self.shape, number) if self.shape else number

    def fold(self, function: Callable[[Any, Any], Any], start: Any) -> Any:
        return fori_loop(0, self.length, lambda i, so_far: function(so_far, self.at(i)), start)

    def count(self) -> Any:
        return _of_numpy(as_value(self.length)).astype(np.float64)

    def require_some(self, message: str) -> None:
        """ValueError for an empty one, with NumPy's words."""
        require(as_value(self.length > 0), message, "ValueError")


def _of_numpy(value: Value) -> Any:
    return wrap(value, scalar=True)


def _sum(x: _Numbers) -> Any:
    kind = np.sum(np.zeros(1, x.dtype)).dtype.type
    return x.fold(lambda total, v: total + v.astype(kind), x.whole(kind(0)))


def _prod(x: _Numbers) -> Any:
    kind = np.prod(np.zeros(1, x.dtype)).dtype.type
    return x.fold(lambda product, v: product * v.astype(kind), x.whole(kind(1)))


def _mean(x: _Numbers) -> Any:
    kind = np.mean(np.zeros(1, x.dtype)).dtype.type
    start = x.whole(np.result_type(kind, np.float64).type(0))
    total = x.fold(lambda so_far, v: so_far + v, start)
    return (total / x.count()).astype(kind)


def _var(x: _Numbers, ddof: Any = 0) -> Any:
    kind = np.mean(np.zeros(1, x.dtype)).dtype.type
    middle = _mean(x)
    start = x.whole(np.float64(0.0)) if x.shape else 0.0
    squares = x.fold(lambda total, v: total + (abs(v - middle) ** 2).astype(np.float64), start)
    return (squares / np.maximum(x.count() - ddof, 0.0)).astype(kind)


def _std(x: _Numbers, ddof: Any = 0) -> Any:
    return np.sqrt(_var(x, ddof))


def _extreme(ufunc: np.ufunc) -> Fold:
    def find(x: _Numbers) -> Any:
        x.require_some(
            f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
        )
        return fori_loop(1, x.length, lambda i, best: ufunc(best, x.at(i)), x.at(0))

    return find


def _place(name: str, better: Callable[[Any, Any], Any]) -> Fold:
    def find(x: _Numbers) -> Any:
        x.require_some(f"attempt to get {name} of an empty sequence")

        def step(i: Any, state: Any) -> Any:
            v, best = x.at(i), state[1]
            is_better = better(v, best) | ((v != v) & (best == best))
            return cond(is_better, lambda: (_of_numpy(as_value(i)), v), lambda: state)

        return fori_loop(1, x.length, step, (np.int64(0), x.at(0)))[0]

    return find


def _any(x: _Numbers) -> Any:
    return x.fold(lambda found, v: found | (v != 0), x.whole(np.bool_(False)))


def _all(x: _Numbers) -> Any:
    return x.fold(lambda found, v: found & (v != 0), x.whole(np.bool_(True)))


FOLDS: dict[str, Fold] = {
    **{f.__name__[1:]: f for f in (_sum, _prod, _mean, _var, _std, _any, _all)},
    "max": _extreme(np.maximum),
    "min": _extreme(np.minimum),
    "argmax": _place("argmax", lambda v, best: v > best),
    "argmin": _place("argmin", lambda v, best: v < best),
}
_NAMES = {getattr(np, name): name for name in FOLDS}


def fold_of(function: Any) -> str | None:
    """The name of what reduces a list as a function of NumPy's does."""
    try:
        return _NAMES.get(function)
    except TypeError:  # unhashable
        return None


def numbers_of(items: Any, dtype: Any) -> _Numbers | None:
    """The elements of a list; None for tuples, numbers of two classes, what has not been seen."""
    form = getattr(items.kind, "value", None)
    if is_box(form):
        return _Numbers(items, dtype)
    if form is None or not form.tree.is_leaf() or form.holds_containers:
        return None
    return None if form.leaves[0][1] == MIXED else _Numbers(items, dtype)


def _of_nothing(name: str) -> Any:
    """Of a list in which no element has been seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return getattr(np, name)([])
        except ValueError as error:
            fail(error)


def folded(name: str, items: Any, dtype: Any, axis: Any = None, **options: Any) -> Any:
    """The list reduced; None where that takes an array, or other options."""
    if not items.is_known:
        return _of_nothing(name)
    numbers = numbers_of(items, dtype)
    known = {"ddof"} if name in ("var", "std") else set()
    if numbers is None or set(options) - known:
        return None
    if not numbers.shape:
        return FOLDS[name](numbers, **options) if axis in (None, 0, -1) else None
    if name.startswith("arg") or axis not in (None, 0) or (axis is None and name in ("var", "std")):
        return None
    rows = FOLDS[name](numbers, **options)
    return rows if axis == 0 else getattr(np, name)(rows)
