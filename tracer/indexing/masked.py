"""`x[mask]` with a traced mask: elements whose number is known only at run time.

Such an array cannot exist in a compiled function, but most of its uses do not need it to: `x[mask] *=
2`, `x[mask] = y[mask] + 1`, `x[mask].sum()`. A `Masked` keeps all of x's elements beside the mask,
computes on them all, and is put back by element or reduced with `where=mask`. Whatever needs the
elements themselves, or their number as a Python int, is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ..arrays import reductions, ufuncs
from ..arrays.common import build, operand, shape_of
from ..arrays.lowerings import LOWERINGS
from ..arrays.python_operators import BINARY, COMPARISONS, UNARY, check_in_place
from ..core.linear_forms import same_value
from ..core.tracers import Tracer, as_value, wrap
from ..messages import errors
from ..messages.errors import complain


class Masked:
    """The elements of `values` where `mask` (over the axes from `place` on) is true."""

    __slots__ = ("values", "mask", "position", "_line")
    _jitney_lazy = True
    __array_priority__ = 1001.0

    def __init__(self, values: Tracer, mask: Tracer, position: int) -> None:
        self.values = values
        self.mask = mask
        self.position = position
        self._line = errors.user_line(1)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return self.values.ndim - self.mask.ndim + 1

    @property
    def size(self) -> Tracer:
        """How many elements there are: a traced int64."""
        count: Tracer = reductions.count_nonzero(self.mask)
        rest = self.values.size // max(self.mask.size, 1)
        return count * rest

    def astype(self, dtype: Any, **options: Any) -> Masked:
        return Masked(self.values.astype(dtype, **options), self.mask, self.position)

    def copy(self) -> Masked:
        return self

    def materialise(self, *_: Any, **__: Any) -> NoReturn:
        """Called where the elements themselves are needed."""
        complain(
            errors.DynamicShapeError,
            "x[mask] with a traced mask has a shape that depends on the mask's values, which are "
            "known only when the compiled function runs",
            "give the result's length, jt.extract(mask, x, size=n) or jt.compress(mask, x, axis=0, "
            "size=n); or keep the full shape: jt.where(mask, x, other); reductions take where=mask; "
            "x[mask] = value and x[mask] += value work.",
            operands={"x": self.values, "mask": self.mask},
            line=self._line,
        )

    shape = property(lambda self: self.materialise())
    __len__ = __iter__ = __array__ = materialise

    def __getitem__(self, index: Any) -> Masked:
        """A part along the other axes: `x[:, mask][[2, 0]]`."""
        items = list(index if isinstance(index, tuple) else (index,))
        lists = [i for i in items if isinstance(i, (list, np.ndarray))]
        others = [i for i in items if i is None or isinstance(i, (int, np.integer))]
        simple = all(
            i is None or isinstance(i, (int, np.integer, slice, list, np.ndarray, type(...)))
            for i in items
        )
        if not simple or (lists and (others or len(lists) > 1 or np.ndim(lists[0]) != 1)):
            self.materialise()
        used = sum(i is not None and i is not ... for i in items)
        at = next((k for k, i in enumerate(items) if i is ...), len(items))
        items[at : at + 1] = [slice(None)] * (self.ndim - used)
        full: list[Any] = []
        axis = position = 0
        for item in items:
            if item is not None and axis == self.position:
                if item != slice(None):
                    self.materialise()
                full += [item] * self.mask.ndim
            else:
                full.append(item)
                position += axis <= self.position and not isinstance(item, (int, np.integer))
            axis += item is not None
        if axis != self.ndim:
            self.materialise()
        return Masked(self.values[tuple(full)], self.mask, position)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        self.materialise()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tracer, name):
            raise AttributeError(f"x[mask] has no attribute {name!r}")
        self.materialise()

    def _reduce(self, name: str, axis: Any = None, **options: Any) -> Any:
        function = getattr(reductions, name)
        if axis not in (None, 0) or (axis == 0 and self.ndim != 1) or "where" in options:
            self.materialise()
        options["where"] = wrap(spread(self.mask, self.position, self.values.ndim), scalar=False)
        return function(self.values, None, **options)

    def sum(self, axis: Any = None, **options: Any) -> Any:
        return self._reduce("sum_", axis, **options)

    def prod(self, axis: Any = None, **options: Any) -> Any:
        return self._reduce("prod", axis, **options)

    def mean(self, axis: Any = None, **options: Any) -> Any:
        return self._reduce("mean", axis, **options)

    def var(self, axis: Any = None, **options: Any) -> Any:
        return self._reduce("var", axis, **options)

    def std(self, axis: Any = None, **options: Any) -> Any:
        return self._reduce("std", axis, **options)

    def any(self, axis: Any = None, **options: Any) -> Any:
        return self._reduce("any_", axis, **options)

    def all(self, axis: Any = None, **options: Any) -> Any:
        return self._reduce("all_", axis, **options)

    def max(self, axis: Any = None, **options: Any) -> Any:
        return self._extremum("max_", axis, options)

    def min(self, axis: Any = None, **options: Any) -> Any:
        return self._extremum("min_", axis, options)

    def _extremum(self, name: str, axis: Any, options: dict[str, Any]) -> Any:
        if "initial" not in options:
            complain(
                errors.DynamicShapeError,
                f"x[mask].{name[:-1]}() has no value when nothing is selected, and whether that is "
                "so is known only when the compiled function runs",
                f"say what it is then: x.{name[:-1]}(where=mask, initial=...).",
                operands={"x": self.values, "mask": self.mask},
            )
        return self._reduce(name, axis, **options)

    def __array_ufunc__(self, ufunc: np.ufunc, how: str, *inputs: Any, **options: Any) -> Any:
        if how == "reduce" and ufunc is np.add:
            options.pop("out", None)
            return self.sum(**options)
        if how != "__call__" or options or ufunc.__name__ not in LOWERINGS:
            self.materialise()
        return apply(ufunc, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        name = {"amax": "max", "amin": "min"}.get(function.__name__, function.__name__)
        reducing = ("sum", "prod", "mean", "var", "std", "any", "all", "max", "min", "size")
        if name not in reducing or not args or args[0] is not self:
            self.materialise()
        if name == "size":
            return self.size
        options = {k: v for k, v in options.items() if v is not np._NoValue}
        return getattr(self, name)(*args[1:], **options)


def apply(ufunc: np.ufunc, *operands: Any) -> Any:
    """A ufunc of masked arrays with one mask, and of operands that broadcast against each element."""
    first = next(x for x in operands if isinstance(x, Masked))
    after = first.values.ndim - first.position - first.mask.ndim
    full = []
    for x in operands:
        if isinstance(x, Masked):
            if not same_mask(x, first.mask, first.position):
                x.materialise()
            full.append(x.values)
        else:
            x = operand(x)
            if len(shape_of(x)) > after:
                first.materialise()
            full.append(x)
    result = ufuncs.apply(ufunc, *full)
    if isinstance(result, tuple):
        return tuple(Masked(r, first.mask, first.position) for r in result)
    return Masked(result, first.mask, first.position)


def spread(mask: Tracer, position: int, rank: int) -> Value:
    """The mask's value with axes of size 1 around it, so that it broadcasts against the array."""
    shape = (1,) * position + mask.shape + (1,) * (rank - position - mask.ndim)
    value = as_value(mask)
    return value if value.shape == shape else build().reshape(value, shape=shape)


def same_mask(x: Masked, mask: Tracer, position: int) -> bool:
    """Whether x was selected by an equal mask: the same value, or the same computation."""
    return x.position == position and same_value(as_value(x.mask), as_value(mask))


def _install_operators() -> None:
    """Python's operators, from the same list as the tracer's."""
    for name, ufunc in COMPARISONS.items():
        setattr(Masked, f"__{name}__", lambda self, y, ufunc=ufunc: apply(ufunc, self, y))
    for name, ufunc in UNARY.items():
        setattr(Masked, f"__{name}__", lambda self, ufunc=ufunc: apply(ufunc, self))
    for name, ufunc in BINARY.items():
        setattr(Masked, f"__{name}__", lambda self, y, ufunc=ufunc: apply(ufunc, self, y))
        setattr(Masked, f"__r{name}__", lambda self, y, ufunc=ufunc: apply(ufunc, y, self))
        setattr(Masked, f"__i{name}__", _in_place(ufunc))


def _in_place(ufunc: np.ufunc) -> Any:
    def rule(self: Masked, other: Any) -> Masked:
        result = apply(ufunc, self, other)
        check_in_place(ufunc, result.dtype, self.values)
        return result.astype(self.dtype)

    return rule


_install_operators()
