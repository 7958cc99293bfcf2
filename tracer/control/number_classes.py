"""Numbers that are ints of Python's on one way and floats on another: a float, and whether it is an int.

    dist = [float("inf")] * n       # floats
    dist[start] = 0                 # and an int among them

Such a number is the float that stands for it in what is computed, with the union of both beside it (see
`unions.exact`). In memory, and from iteration to iteration, it is two words: the float and a flag.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import BOOL, F64, I64
from ..arrays.python_integers import check_kept, note_reach
from ..core.tracers import Tracer, as_value, emit, weak_kind, wrap
from .unions import Union, constant_tag, exact, is_one_of, kind_number, possible

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
    number, flag = as_value(x), as_value(flag, BOOL)
    int_, float_ = kind_number("i", I64), kind_number("f", F64)
    tags = [constant_tag(n).value for n in (int_, float_)]
    finite = emit("select", flag, number, as_value(0.0, F64)).value
    whole = emit("convert", finite, dtype=I64).value
    note_reach(whole, (-_MOST, _MOST))
    options = {int_: wrap(whole, "i"), float_: wrap(number, "f")}
    x._storage.exact = Union(wrap(emit("select", flag, *tags).value, scalar=True), options)
    return x


def int_or_float(number: Value, flag: Value) -> Tracer:
    """The number that these two words are."""
    return give_class(wrap(number, "f"), wrap(flag, "b"))
