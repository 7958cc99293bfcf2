"""`np.array(items)` of a native list: an array of as many elements, which can be reduced to a number,
run over, and returned."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..messages import errors
from ..messages.errors import complain
from .elements.forms import MIXED, Form
from .numpy_folds import FOLDS, fold_of, folded, numbers_of
from .sequences import Sequence


class GrownArray:
    """What such an array is while the function is traced."""

    __array_ufunc__ = None

    def __init__(self, items: Sequence, dtype: Any = None) -> None:
        self.items = items.copy()
        self.dtype = None if dtype is None else np.dtype(dtype)

    def length(self) -> Any:
        return self.items.length()

    def refused_texts(self) -> Sequence:
        """The items, which are numbers; arrays of texts are not made."""
        if self.items.kind.value is not None and self.items.kind.value.is_varied:
            self.items.__array__()
        return self.items

    def walked(self) -> tuple[Any, Any]:
        """How many numbers there are, and what gives one by its number."""
        numbers = numbers_of(self.items, self.dtype)
        return self._refuse() if numbers is None else (numbers.length, numbers.at)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        complain(
            errors.DynamicShapeError,
            "an array of a list that grows in compiled code has as many elements as that has at run "
            "time; it can be returned, asked for its len(), and reduced to a number (x.sum())",
            "compute with the elements of the list in a `for` statement, or outside of the function.",
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        return partial(self._folded, name) if name in FOLDS else self._refuse()

    def _folded(self, name: str, *args: Any, **options: Any) -> Any:
        axis = dict(zip(("axis",), args, strict=False))
        found = None if len(args) > 1 else folded(name, self.items, self.dtype, **axis, **options)
        return self._refuse() if found is None else found

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
        _refuse
    )
    __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __neg__ = __array__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __pow__ = __matmul__ = __rmatmul__ = __abs__ = _refuse


def array_of(columns: list[np.ndarray[Any, Any]], form: Form | None, dtype: Any) -> Any:
    """The array of elements of this form, of a column for each word."""
    if form is None:
        return np.array([], dtype)
    columns = _numbers(columns, form)
    whole = columns[0] if form.tree.is_leaf() else np.stack(columns, axis=1)
    return whole.astype(dtype) if dtype is not None else whole


def _numbers(columns: list[np.ndarray[Any, Any]], form: Form) -> list[np.ndarray[Any, Any]]:
    """A column for each leaf: of ints where all are."""
    numbers, flags = columns[: len(form.leaves)], iter(columns[len(form.leaves) :])
    for k, (_, weak) in enumerate(form.leaves):
        if weak == MIXED and next(flags).all() and len(numbers[k]):
            numbers[k] = numbers[k].astype(np.int64)
    return numbers


def reduced(function: Any, items: Any, *args: Any, **options: Any) -> Any:
    """`np.sum(items)`, and its like; None if it is no reduction to one number."""
    name = fold_of(function)
    if isinstance(items, GrownArray):
        return None if name is None else getattr(items, name)(*args, **options)
    if name is None or not isinstance(items, Sequence) or len(args) > 1:
        return None
    return folded(name, items, None, **dict(zip(("axis",), args, strict=False)), **options)


def grown(items: Any, dtype: Any = None, **options: Any) -> Any:
    """`np.array(items, dtype)`"""
    rows = isinstance(items, Sequence) and items.kind.value
    if options or not isinstance(items, Sequence) or (rows and rows.holds_containers):
        items.__array__()
    return GrownArray(items, dtype)
