"""`Variable`: a named cell for an array, usable wherever an array is."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

import jitney as jt


class Variable(NDArrayOperatorsMixin):
    """A named cell: an array that is changed in place, and stands for it wherever an array can stand.

    `init` is an array, a number or another Variable, whose value is copied. `trainable` says whether
    transformations differentiate with respect to it, and `tags` are texts by which `nn.tag` finds it.
    `value` is the array as it is now. Operators, NumPy's and jitney's functions, indexing and methods
    of arrays are those of the value; assignments happen in the order of the program, in compiled code,
    loops, branches and differentiated functions too.

    >>> count = jt.Variable(np.zeros(2), name="count", trainable=False)
    >>> count += 1
    >>> count.assign_add([0.0, 2.0]) * 10
    array([10., 30.])
    """

    def __init__(
        self,
        init: Any,
        name: str | None = None,
        trainable: bool = True,
        tags: Sequence[str] = (),
        dtype: Any = None,
    ) -> None:
        given = init.value if isinstance(init, Variable) else init
        self.value: Any = np.array(given, dtype=dtype)
        self.name = name
        self.trainable = trainable
        self.tags = (tags,) if isinstance(tags, str) else tuple(tags)

    def assign(self, value: Any) -> Variable:
        """Let the value be another one of the same shape (or one that broadcasts to it), in place.

        Raises ValueError for another shape; the dtype stays. Returns the variable.
        """
        return self._change(_overwritten, value)

    def assign_add(self, value: Any) -> Variable:
        """Add to the value in place. Returns the variable."""
        return self._change(operator.iadd, value)

    def assign_sub(self, value: Any) -> Variable:
        """Subtract from the value in place. Returns the variable."""
        return self._change(operator.isub, value)

    def _change(self, change: Callable[[Any, Any], Any], value: Any) -> Variable:
        """Let `change(array, value)` write into the array."""
        try:
            self.value = change(self.value, value_of(value))
        except jt.errors.JitneyError:
            raise
        except (ValueError, TypeError) as error:
            jt.errors.complain(
                ValueError if isinstance(error, ValueError) else TypeError,
                f"the Variable {self.name!r} cannot hold that: {error}",
                "shape and dtype of a Variable stay: assign what it can hold, or make another one.",
                operands={"variable": self.value, "value": value_of(value)},
                cause=error,
            )
        return self

    # What makes it an array for others

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = np.asarray(self.value, dtype)
        return array.copy() if copy else array

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        result = getattr(ufunc, method)(*map(value_of, inputs), **_values(kwargs))
        return out[0] if len(out) == 1 and isinstance(out[0], Variable) else result

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_values(args), **_values(kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "value":
            raise AttributeError(f"a Variable has no {name!r}")
        return getattr(self.value, name)

    def __getitem__(self, index: Any) -> Any:
        return self.value[_values(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.value[_values(index)] = value_of(value)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __index__(self) -> int:
        index: int = self.value.__index__()
        return index

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        more = "" if self.trainable else ", trainable=False"
        more += f", tags={self.tags}" if self.tags else ""
        return f"Variable({self.name!r}, {self.value!r}{more})"


def _overwritten(array: Any, value: Any) -> Any:
    array[...] = value
    return array


def _in_place(change: Callable[[Any, Any], Any]) -> Callable[[Variable, Any], Variable]:
    return lambda self, other: self._change(change, other)


# Assignments with an operator change the array, and leave the variable what it is.
for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split():
    setattr(Variable, f"__i{_name}__", _in_place(getattr(operator, f"__i{_name}__")))
Variable.__imatmul__ = _in_place(  # type: ignore[method-assign, assignment]
    lambda array, other: _overwritten(array, array @ other)
)


def value_of(x: Any) -> Any:
    """The array in a Variable; anything else as it is."""
    return x.value if isinstance(x, Variable) else x


def _values(x: Any) -> Any:
    """The same containers with arrays in the place of Variables."""
    if isinstance(x, Variable):
        return x.value
    if type(x) in (list, tuple):
        return type(x)([_values(item) for item in x])
    if type(x) is dict:
        return {key: _values(item) for key, item in x.items()}
    return x


jt.tree.register_object(Variable, lambda v: () if v.trainable else ("value",), cell=True)
