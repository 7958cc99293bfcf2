"""Numbers that are of one class on one way and of another on another: a word, and which class it is.

    dist = [float("inf")] * n       # floats
    dist[start] = 0                 # and an int among them
    rows.append([x[i], 1])          # a list of an np.float64 and an int

Such a number is the float, or the np.int64 among ints, that stands for it in what is computed, with the
union of all beside it (see `unions.exact`). In memory, and from iteration to iteration, it is two words:
that number and a flag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import BOOL, F64, I64
from ..arrays.python_integers import check_kept, note_reach
from ..core.tracers import Tracer, as_value, emit, weak_kind, wrap
from .unions import Union, constant_tag, exact, is_one_of, kind_number, possible

Class = tuple[str | None, np.dtype[Any]]  # how it promotes, and its type
_INT, _FLOAT, _NUMPYS, _NUMPYS_INT = ("i", I64), ("f", F64), (None, F64), (None, I64)
# Classes by the code that says in memory which one a number is of, and a letter for each: how a number
# promotes that is of several of them are their letters.
_OF_CODES = (_FLOAT, _INT, _NUMPYS, _NUMPYS_INT)
LETTERS = "fidl"
_PYTHON: tuple[type, ...] = (float, int, np.float64, np.int64)
MIXED = "fi"  # an int or a float of Python's
# The word behind such a number: for `MIXED` whether it is an int, which is its code as well.
FLAGS = {
    "".join(letters): BOOL if letters == tuple(MIXED) else I64
    for n in (2, 3, 4)
    for letters in combinations(LETTERS, n)
}
_MOST = 1 << 53  # an int among floats that is kept exactly: `check_kept`


def may_be_both(x: Any) -> bool:
    """Whether a number is an int of Python's on one way and a float of Python's on another."""
    several = exact(x)
    if type(several) is not Union:
        return False
    return {weak_kind(several.options[n]) for n in possible(several)} == {"i", "f"}


def is_int(x: Any) -> Any:
    """Whether a number is an int of Python's: a bool, or a traced one."""
    several = exact(x)
    if type(several) is not Union:
        return weak_kind(x) == "i"
    ints = [n for n, option in several.options.items() if weak_kind(option) == "i"]
    return is_one_of(several, ints)


def classes_of(x: Any) -> tuple[Class, ...]:
    """The classes of which a number can be; none if it is of one."""
    several = exact(x)
    if type(several) is not Union:
        return ()
    options = [several.options[n] for n in possible(several)]
    classes = tuple(map(class_of, options))
    return classes if len(classes) > 1 else ()


def tag_of_class(x: Any) -> Any:
    """Of which class a number is, as an integer."""
    several = exact(x)
    if type(several) is Union:
        return several.tag
    return np.int64(number_of_class(x))


def number_of_class(x: Any) -> int:
    """The number of the class of a number of one class."""
    return kind_number(*class_of(x))


def class_of(x: Any) -> Class:
    """The class of a number, or that of what stands for it."""
    return weak_kind(x), as_value(x).dtype


def of_class(x: Tracer, tag: Value, classes: Sequence[Class]) -> Tracer:
    """Let a number be of that one of these classes which the tag says."""
    options, number, test = {}, as_value(x), wrap(tag, scalar=True)
    for weak, dtype in classes:
        own = kind_number(weak, dtype)
        value = number
        if dtype.kind in "iu" and number.dtype.kind not in "iu":  # no infinity of another class
            is_own = as_value(test == own, BOOL)
            value = emit("select", is_own, number, as_value(0.0, number.dtype)).value
        if dtype != number.dtype:
            value = emit("convert", value, dtype=dtype).value
        if weak == "i" and number.dtype == F64:
            note_reach(value, (-_MOST, _MOST))
        options[own] = wrap(value, weak, scalar=True)
    x._storage.exact = Union(test, options)
    return x


def exact_parts(x: Any, classes: Sequence[Class]) -> tuple[Any, ...]:
    """Of which of these classes a number is, as an integer, and what it is in each class of integers."""
    several = exact(x)
    options = several.options if type(several) is Union else {number_of_class(x): x}
    whole = [(weak, dtype) for weak, dtype in classes if dtype.kind in "iu"]
    nothing = [0 if weak else dtype.type(0) for weak, dtype in whole]
    numbers = [kind_number(*one) for one in whole]
    return tag_of_class(x), *map(options.get, numbers, nothing)


def of_parts(x: Tracer, parts: Sequence[Any], classes: Sequence[Class]) -> Tracer:
    """Let a number be what `exact_parts` says."""
    tag, *whole = parts
    integers = iter(whole)
    options = {}
    for weak, dtype in classes:
        is_whole = dtype.kind in "iu"
        option = next(integers) if is_whole else wrap(as_value(x, dtype), weak, scalar=True)
        options[kind_number(weak, dtype)] = option
    x._storage.exact = Union(tag, options)
    return x


def check_kept_exactly(x: Any, dtype: np.dtype[Any] = F64) -> None:
    """OverflowError where the number is an int that is no float."""
    several = exact(x)
    if type(several) is not Union:
        check_kept(x, dtype)
        return
    for number, option in several.options.items():
        check_kept(option, dtype, or_else=several.tag != number)


def give_class(x: Tracer, flag: Any) -> Tracer:
    """Let a float be an int of Python's where the flag says so."""
    tags = [constant_tag(kind_number(*one)).value for one in (_INT, _FLOAT)]
    return of_class(x, emit("select", as_value(flag, BOOL), *tags).value, (_INT, _FLOAT))


def mixture(x: Tracer) -> tuple[np.dtype[Any], str | None]:
    """The type of a number in memory, and how it promotes there."""
    classes = classes_of(x)
    if not classes or not set(classes) <= set(_OF_CODES):
        return x.dtype, x.weak
    weak = "".join(k for k, one in zip(LETTERS, _OF_CODES, strict=True) if one in classes)
    return dtype_of(weak), weak


def dtype_of(weak: str) -> np.dtype[Any]:
    """The type of numbers of several classes in memory."""
    return I64 if weak == "il" else F64


def flag_of(x: Any, weak: str) -> Value:
    """The word that says of which class a number is."""
    if weak == MIXED:
        return as_value(is_int(x), BOOL)
    several = exact(x)
    if type(several) is not Union:
        return as_value(np.int64(_code_of(x)), I64)
    code = as_value(np.int64(0), I64)
    for n in possible(several):
        own = as_value(np.int64(_code_of(several.options[n])), I64)
        code = emit("select", as_value(several.tag == n, BOOL), own, code).value
    return code


def _code_of(x: Any) -> int:
    weak, dtype = class_of(x)
    return _OF_CODES.index((weak, I64 if dtype.kind in "iu" else F64))


def of_flag(number: Value, flag: Value, weak: str) -> Tracer:
    """The number that these two words are."""
    if weak == MIXED:
        return int_or_float(number, flag)
    codes = [LETTERS.index(letter) for letter in weak]
    classes = [_OF_CODES[k] for k in codes]
    code, tag = wrap(flag, scalar=True), constant_tag(kind_number(*classes[0])).value
    for k, one in zip(codes[1:], classes[1:], strict=True):
        own = constant_tag(kind_number(*one)).value
        tag = emit("select", as_value(code == k, BOOL), own, tag).value
    return of_class(wrap(number, scalar=True), tag, classes)


def sum_of_floats(function: Callable[..., Any], operands: Sequence[Any]) -> Tracer:
    """What `function` gives of floats of Python's and NumPy's: one of Python's if all of them are."""
    result, python = function(*(wrap(as_value(x), scalar=True) for x in operands)), True
    for several in map(exact, operands):
        if type(several) is Union:
            weak = [n for n in possible(several) if weak_kind(several.options[n]) is not None]
            python = is_one_of(several, weak) & python
        elif weak_kind(several) is None:
            python = False
    tags = [constant_tag(kind_number(*one)).value for one in (_NUMPYS, _FLOAT)]
    tag = emit("select", as_value(python, BOOL), tags[1], tags[0]).value
    return of_class(result, tag, (_FLOAT, _NUMPYS))


def of_code(x: Any, code: Any) -> Any:
    """A number of Python's as what it is."""
    return _PYTHON[code](x)


def code_of_class(cls: type) -> int:
    """The code of a class of Python's or NumPy's."""
    return _PYTHON.index(cls)


def int_or_float(number: Value, flag: Value) -> Tracer:
    """The number that these two words are."""
    return give_class(wrap(number, "f"), wrap(flag, "b"))
