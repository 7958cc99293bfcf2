"""What a container is asked for, as an element of its form: questions are converted, not containers.

    2.5 in ints         no int is: never asked for
    ints.count(1.0)     counts 1
    flags.index(1)      looks for True
    floats.index(n)     looks for float(n), if that is exactly n

Python compares numbers of different kinds exactly, so a question that no element can equal has no
answer at all. NumPy's scalars compare as NumPy converts them: where that is not exact, elements are
compared one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from ....ir.graph import Value
from ....ir.types import BOOL, F64
from ...core.tracers import Tracer, as_value, emit, weak_kind, wrap
from ...data import pytree
from ...messages import errors
from ...messages.errors import complain
from . import varied
from .forms import Form, Leaf

Question = tuple[list[Value], Any]
"""The values to look for, and whether there can be any: True, or traced."""


def question(form: Form, asked: Any) -> Question | None:
    """What to look for among elements of this form; None: nothing equals it."""
    asked = varied.narrowed(asked)
    if form.is_varied or varied.has_unions(asked):
        return varied.asked(form.example, asked, _of_leaf)
    leaves, tree = pytree.flatten(asked)
    if form.holds_containers:
        complain(
            errors.TransformError,
            f"a search for {errors.describe(asked)} among elements that are containers",
            "compare them in a `for` statement.",
        )
    if not pytree.same_as_written(tree, form.tree):
        return None
    values: list[Value] = []
    tests: list[Any] = []
    for leaf, stored in zip(leaves, form.leaves, strict=True):
        found = _of_leaf(stored, leaf)
        if found is None:
            return None
        values.append(found[0])
        if found[1] is not True:
            tests.append(found[1])
    return values, reduce(lambda a, b: a & b, tests) if tests else True


def _of_leaf(stored: Leaf, leaf: Any) -> tuple[Value, Any] | None:
    """What a number is as one of these, and whether it is exactly that."""
    return _converted(leaf, stored[0]) if isinstance(leaf, Tracer) else _constant(leaf, stored[0])


def is_equal(a: Any, b: Any) -> Any:
    """`a == b`, of numbers or tuples, as a traced bool."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) != len(b):
            return wrap(as_value(False, BOOL), "b")
        parts = [is_equal(x, y) for x, y in zip(a, b, strict=True)]
        return reduce(lambda x, y: x & y, parts, wrap(as_value(True, BOOL), "b"))
    if isinstance(a, tuple) or isinstance(b, tuple):
        return wrap(as_value(False, BOOL), "b")
    is_number = isinstance(a, (Tracer, int, float, np.generic))
    return wrap(as_value(a == b if is_number else _equality[0](a, b), BOOL), "b")


_equality: list[Callable[[Any, Any], Any]] = []  # autograph, which lies above, puts it here


def serve_equality(equal: Callable[[Any, Any], Any]) -> None:
    """Let `equal(a, b)` say whether two objects are equal, by a method of the user's perhaps."""
    _equality[:] = [equal]


def is_exact(form: Form, asked: Any) -> bool:
    """Whether elements of this form are compared exactly with what is asked for."""
    if form.is_varied:
        return True
    if form.holds_containers:
        return False
    leaves = pytree.flatten(asked)[0]
    if len(leaves) != len(form.leaves):
        return True
    return not form.is_mixed and all(map(_compares_exactly, form.leaves, leaves))


def _compares_exactly(stored: Leaf, asked: Any) -> bool:
    dtype, weak = stored
    if isinstance(asked, Tracer):
        other, other_weak = asked.dtype, asked.weak
    else:
        other_weak = weak_kind(asked)
        other = np.asarray(asked).dtype
    if dtype == other or (weak is not None and other_weak is not None):
        return True
    return dtype.kind in "biu" and other.kind in "biu"


def _constant(x: Any, dtype: np.dtype[Any]) -> tuple[Value, Any] | None:
    """A known number as one of this dtype, if it is exactly that."""
    x = x.item() if isinstance(x, np.generic) else x
    if isinstance(x, complex) and x.imag == 0:
        x = x.real
    if not isinstance(x, (bool, int, float)):
        return None
    if dtype.kind != "f" and isinstance(x, float):
        if not x.is_integer():
            return None
        x = int(x)
    if dtype.kind == "b" and x not in (0, 1):
        return None
    try:
        found = np.asarray(x, dtype)[()]
    except OverflowError:
        return None
    return (as_value(found, dtype), True) if found.item() == x or x != x else None


def _converted(x: Tracer, dtype: np.dtype[Any]) -> tuple[Value, Any] | None:
    """A traced number as one of this dtype, and whether it is exactly that."""
    if x.shape:
        return None
    value = as_value(x)
    if x.dtype.kind == "c":
        complain(
            errors.TransformError,
            "a container of numbers is asked for a complex one",
            "ask for its .real where its .imag is 0.",
        )
    if x.dtype == dtype:
        return value, True
    if dtype.kind == "b":
        whole = wrap(value)
        return as_value(whole != 0), (whole == 0) | (whole == 1)
    if x.dtype.kind == "b" or np.can_cast(x.dtype, dtype, "safe"):
        if x.dtype.kind in "iu" and x.dtype.itemsize == 8 and dtype.kind == "f":
            return _rounded(value, dtype)
        return emit("convert", value, dtype=dtype).value, True
    if dtype.kind == "f":
        return _rounded(value, dtype)
    if x.dtype.kind == "f":
        low, high = -(2.0**63), 2.0**63
        if dtype != np.int64:
            low, high = float(np.iinfo(dtype).min), float(np.iinfo(dtype).max) + 1
        wide = emit("convert", value, dtype=F64)
        fits = (wide >= low) & (wide < high) & (np.floor(wide) == wide)
        tame = np.where(fits, wide, 0.0)
        return emit("convert", as_value(tame), dtype=dtype).value, fits
    found = emit("convert", value, dtype=dtype)
    same = emit("convert", found.value, dtype=x.dtype) == wrap(value)
    if (x.dtype.kind == "i") != (dtype.kind == "i"):  # -1 is no unsigned one of all bits
        same = same & (wrap(value) >= 0) & (found >= 0)
    return found.value, same


def _rounded(value: Value, dtype: np.dtype[Any]) -> tuple[Value, Any]:
    """A number as a float, and whether it is that: compared as it was."""
    found = emit("convert", value, dtype=dtype)
    if value.dtype.kind == "f":
        return found.value, emit("convert", found.value, dtype=value.dtype) == wrap(value)
    back, exact = _converted(found, value.dtype)  # type: ignore[misc]
    return found.value, (wrap(back) == wrap(value)) & exact
