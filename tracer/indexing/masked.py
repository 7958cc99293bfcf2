"""`x[mask]` with a traced mask: elements whose number is known only at run time.

Most of its uses do not need the elements one behind the other: `x[mask] *= 2`, `x[mask] = y[mask] + 1`,
`x[mask].sum()`. A `Masked` keeps all of x's elements beside the mask, computes on them all, and is put
back by element or reduced with `where=mask`. Whatever needs the elements themselves gets them
`materialised`, as an array whose length is a value (`bounded`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import Value
from ...ir.types import I64
from ..arrays import reductions, ufuncs
from ..arrays.common import build, given, operand, shape_of
from ..arrays.lowerings import LOWERINGS
from ..arrays.python_operators import BINARY, COMPARISONS, UNARY, check_in_place
from ..arrays.reductions import highest, lowest
from ..arrays.table import LAZY, ArrayFunction
from ..core.effects import check
from ..core.linear_forms import same_value
from ..core.trace import current_trace
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .bounded import RULES, Bounded, bounded, refuse


class Masked:
    """The elements of `values` where `mask` (over the axes from `place` on) is true."""

    _jitney_lazy = True
    __array_priority__ = 1001.0

    def __init__(self, values: Tracer, mask: Tracer, position: int) -> None:
        self.values = values
        self.mask = mask
        self.position = position
        self._line = errors.user_line(1)
        self._is_shown = False  # there may be views of its elements

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return self.values.ndim - self.mask.ndim + 1

    @property
    def size(self) -> Tracer:
        """How many elements there are: a traced int64."""
        count = wrap(as_value(reductions.count_nonzero(self.mask), I64), "i")
        rest = self.values.size // max(self.mask.size, 1)
        return count * rest

    def astype(self, dtype: Any, **options: Any) -> Masked:
        return Masked(self.values.astype(dtype, **options), self.mask, self.position)

    def copy(self) -> Any:
        return self.materialised()

    def walked(self) -> Any:
        """As of the elements one behind the other."""
        return self.materialised().walked()

    def materialised(self) -> Any:
        """The elements one behind the other, as a `Bounded`."""
        self._is_shown = True
        return self._laid_out()

    def _laid_out(self) -> Any:
        b, mask, at = build(), self.mask, self.position
        values, n = as_value(self.values), mask.size
        after = values.shape[at + mask.ndim :]
        flat = (*values.shape[:at], n, *after)
        if values.shape != flat:
            values = b.reshape(values, shape=flat)
        flags = as_value(mask)
        flags = flags if flags.shape == (n,) else b.reshape(flags, shape=(n,))
        if n:
            indices = b.true_indices(flags, size=n, classes=1)
            values = b.gather(values, indices, axes=(at,), mode="clip")
            order = [*range(1, len(flat))]
            order.insert(at, 0)
            if order != [*range(len(flat))]:
                values = b.transpose(values, perm=tuple(order))
        count = wrap(as_value(reductions.count_nonzero(mask), I64), "i")
        result = bounded(wrap(values, scalar=False), {at: count})
        if isinstance(result, Bounded):
            result._line = self._line
        return result

    def materialise(self, *_: Any, **__: Any) -> NoReturn:
        """Called where an array of static shape is needed."""
        refuse(self.materialised())

    def _call(self, entry: ArrayFunction, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """A function of the table of which this is an argument."""
        name = {"amax": "max", "amin": "min"}.get(entry.name, entry.name)
        present = {k: v for k, v in options.items() if given(v)}
        if isinstance(present.get("out"), Masked):
            present["out"].become_array()
        if name in _REDUCTIONS and args[0] is self and len(args) <= 2 and "where" not in present:
            return self.size if name == "size" else getattr(self, name)(*args[1:], **present)
        if isinstance(entry.numpy, np.ufunc) and not options and entry.numpy.__name__ in LOWERINGS:
            return apply(entry.numpy, *args)
        if entry.name == "x[index] = value" and not _holds(args[1]):
            return entry.traced(*args)
        named = {k: _materialised(v) for k, v in options.items()}
        shown = [isinstance(x, Masked) and x._is_shown for x in args]
        made = tuple(map(_materialised, args))
        versions = [m.padded._storage.version if isinstance(m, Bounded) else 0 for m in made]
        result = entry.trace(made, named)
        for x, m, version, before in zip(args, made, versions, shown, strict=True):
            made_here = isinstance(x, Masked) and isinstance(m, Bounded)
            if made_here and m.padded._storage.version != version:  # the place for results
                x._is_shown = before
                x.become_array(m)
                result = x if result is m else result
        return result

    @property
    def shape(self) -> tuple[Any, ...]:
        shape: tuple[Any, ...] = self._laid_out().shape
        return shape

    def __len__(self) -> int:
        return len(self._laid_out())

    __iter__ = __array__ = materialise

    def __format__(self, spec: str) -> str:
        return format(self._laid_out(), spec)

    def __str__(self) -> str:
        return format(self)

    def __getitem__(self, index: Any) -> Any:
        """A part along the other axes stays one: `x[:, mask][[2, 0]]`."""
        part = self._along_others(index)
        if part is not None:
            self._is_shown = True
            return part
        if not _is_basic(index):
            return self._laid_out()[index]
        if self._become(None):  # a part of it sees what is written to it
            return self[index]
        return self.materialised()[index]

    def _along_others(self, index: Any) -> Masked | None:
        items = list(index if isinstance(index, tuple) else (index,))
        lists = [i for i in items if isinstance(i, (list, np.ndarray))]
        others = [i for i in items if i is None or isinstance(i, (int, np.integer))]
        simple = all(
            i is None or isinstance(i, (int, np.integer, slice, list, np.ndarray, type(...)))
            for i in items
        )
        if not simple or (lists and (others or len(lists) > 1 or np.ndim(lists[0]) != 1)):
            return None
        used = sum(i is not None and i is not ... for i in items)
        at = next((k for k, i in enumerate(items) if i is ...), len(items))
        items[at : at + 1] = [slice(None)] * (self.ndim - used)
        full: list[Any] = []
        axis = position = 0
        for item in items:
            if item is not None and axis == self.position:
                if not isinstance(item, slice) or item != slice(None):
                    return None
                full += [item] * self.mask.ndim
            else:
                full.append(item)
                position += axis <= self.position and not isinstance(item, (int, np.integer))
            axis += item is not None
        if axis != self.ndim:
            return None
        return Masked(self.values[tuple(full)], self.mask, position)

    def become_array(self, own: Any = None) -> None:
        """Be an array of its own, as elements are to be written in place: `own`, or a new one. All names
        of this see it; where views of its elements, or a region around, would not, it is refused."""
        if not self._become(own):
            complain(
                errors.UnsupportedFunctionError,
                "an assignment to elements of x[mask], which is a copy",
                "keep the copy first: y = x[mask].copy(), then y[i] = value.",
                operands={"x": self.values, "mask": self.mask},
                line=self._line,
            )

    def _become(self, own: Any) -> bool:
        if self.values._storage.trace is not current_trace() or self._is_shown:
            return False
        own = self._laid_out() if own is None else own
        if isinstance(own, Bounded):
            self.__dict__ = own.__dict__
            self.__class__ = Bounded  # type: ignore[assignment]
        return isinstance(own, Bounded)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.become_array()
        self[index] = value

    def sort(self, *args: Any, **options: Any) -> None:
        self.become_array()
        self.sort(*args, **options)

    def fill(self, value: Any) -> None:
        self.become_array()
        self.fill(value)

    def __bool__(self) -> bool:
        return bool(self.materialised())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tracer, name):
            raise AttributeError(f"x[mask] has no attribute {name!r}")
        return getattr(self.materialised(), name)

    def _reduce(self, name: str, axis: Any = None, **options: Any) -> Any:
        function = getattr(reductions, name)
        if axis not in (None, 0) or (axis == 0 and self.ndim != 1) or "where" in options:
            return getattr(self.materialised(), name.strip("_"))(axis, **options)
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
            of = "maximum" if name == "max_" else "minimum"
            check(
                self.size > 0,
                f"zero-size array to reduction operation {of} which has no identity",
                error="ValueError",
            )
            options["initial"] = (lowest if name == "max_" else highest)(self.dtype)
        return self._reduce(name, axis, **options)

    def __array_ufunc__(self, ufunc: np.ufunc, how: str, *inputs: Any, **options: Any) -> Any:
        for out in options.get("out") or ():
            if isinstance(out, Masked):
                out.become_array()
        if how == "reduce" and ufunc is np.add:
            options.pop("out", None)
            return self.sum(**options)
        if how != "__call__" or options or ufunc.__name__ not in LOWERINGS:
            inputs = tuple(map(_materialised, inputs))
            return RULES["ufunc"](ufunc, how, inputs, options)
        return apply(ufunc, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return RULES["function"](function, args, options)


_REDUCTIONS = ("sum", "prod", "mean", "var", "std", "any", "all", "max", "min", "size")


def _is_basic(index: Any) -> bool:
    """Whether an index gives a view, or one element."""
    items = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(i, (list, bool, np.bool_)) or getattr(i, "ndim", 0) for i in items)


def _holds(index: Any) -> bool:
    """Whether one of the items of an index has a length that is a value."""
    return any(isinstance(i, Masked) for i in (index if isinstance(index, tuple) else (index,)))


def _materialised(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(_materialised, x)) if type(x) in (list, tuple) else x
    return x.materialised() if isinstance(x, Masked) else x


def apply(ufunc: np.ufunc, *operands: Any) -> Any:
    """A ufunc of masked arrays: of one mask, and of operands that broadcast against each element, it is
    one."""
    if not _alike(operands):
        return RULES["ufunc"](ufunc, "__call__", operands, {})
    first = next(x for x in operands if isinstance(x, Masked))
    full = [x.values if isinstance(x, Masked) else operand(x) for x in operands]
    result = ufuncs.apply(ufunc, *full)
    if isinstance(result, tuple):
        return tuple(Masked(r, first.mask, first.position) for r in result)
    return Masked(result, first.mask, first.position)


def _alike(operands: Sequence[Any]) -> bool:
    """Whether operands have one mask, or none and broadcast against each element."""
    first = next(x for x in operands if isinstance(x, Masked))
    after = first.values.ndim - first.position - first.mask.ndim
    return all(
        same_mask(x, first.mask, first.position)
        if isinstance(x, Masked)
        else not isinstance(x, Bounded) and len(shape_of(operand(x))) <= after
        for x in operands
    )


def spread(mask: Tracer, position: int, rank: int) -> Value:
    """The mask's value with axes of size 1 around it, so that it broadcasts against the array."""
    shape = (1,) * position + mask.shape + (1,) * (rank - position - mask.ndim)
    value = as_value(mask)
    return value if value.shape == shape else build().reshape(value, shape=shape)


def same_mask(x: Masked, mask: Tracer, position: int) -> bool:
    """Whether x was selected by an equal mask: the same value, or the same computation."""
    return x.position == position and same_value(as_value(x.mask), as_value(mask))


def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    return apply(np.floor_divide, x, y), apply(np.remainder, x, y)


def _install_operators() -> None:
    """Python's operators, from the same list as the tracer's."""
    for name, turn in (("divmod", 1), ("rdivmod", -1)):
        setattr(Masked, f"__{name}__", lambda x, y, turn=turn: _divmod(*(x, y)[::turn]))
    for name, ufunc in COMPARISONS.items():
        setattr(Masked, f"__{name}__", lambda self, y, ufunc=ufunc: apply(ufunc, self, y))
    for name, ufunc in UNARY.items():
        setattr(Masked, f"__{name}__", lambda self, ufunc=ufunc: apply(ufunc, self))
    for name, ufunc in BINARY.items():
        setattr(Masked, f"__{name}__", lambda self, y, ufunc=ufunc: apply(ufunc, self, y))
        setattr(Masked, f"__r{name}__", lambda self, y, ufunc=ufunc: apply(ufunc, y, self))
        setattr(Masked, f"__i{name}__", _in_place(ufunc))

    for name in ("matmul", "rmatmul"):
        setattr(Masked, f"__{name}__", _forwarded(f"__{name}__"))


def _forwarded(name: str) -> Any:
    def operator(self: Masked, other: Any) -> Any:
        return getattr(self.materialised(), name)(_materialised(other))

    return operator


def _in_place(ufunc: np.ufunc) -> Any:
    def rule(self: Masked, other: Any) -> Any:
        result = apply(ufunc, self, other)
        check_in_place(ufunc, result.dtype, self.values)
        result = result.astype(self.dtype)
        if isinstance(result, Masked) and self.values._storage.trace is current_trace():
            self.values = result.values  # other names of it see that
            return self
        return result

    return rule


_install_operators()
LAZY.add(Masked)
pytree.convert_leaves(Masked, Masked.materialised)
