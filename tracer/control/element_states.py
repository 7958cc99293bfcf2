"""Which elements of a `TensorArray` were written and read: one number each, and the checks of it.

States are an ndarray wherever they are known, so that errors come while tracing; otherwise a tracer,
and then the checks are assertions that run with the compiled code.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ..core.effects import check
from ..core.tracers import Tracer
from ..messages import errors
from ..messages.errors import complain
from .elements import known, put_at, take

UNWRITTEN, WRITTEN, CLEARED = 0, 1, 2
TWICE = "TensorArray: element {0} was written before; each element can be written once"
UNREAD = "TensorArray: element {0} cannot be read: it has not been written"
_RANGE = "TensorArray: index {0} is out of range for size "


def require_range(at: Any, size: int, whose: Any) -> None:
    """The indices `at` are those of elements of the TensorArray `whose`."""
    if isinstance(at, Tracer):
        inside, message = (at >= 0) & (at < size), _RANGE + str(size)
        if at.shape:
            _check_all(inside, message, at)
        else:
            check(inside, message, at)
        return
    wrong = [i for i in np.reshape(at, -1).tolist() if not 0 <= i < size]
    if wrong:
        complain(
            errors.BoundsError,
            _RANGE.format(wrong[0]) + str(size),
            "make it longer, or let it grow outside of jit: dynamic_size=True."
            if wrong[0] >= 0
            else "indices of a TensorArray count from 0 up.",
            operands={"TensorArray": whose},
        )


def require_state(state: Any, at: Any, wanted: int, message: str) -> None:
    """Element `at` is in the state `wanted`."""
    state = known(state)
    if isinstance(at, Tracer) or isinstance(state, Tracer):
        check(take(state, at) == wanted, message, at)
    elif state[at] != wanted:
        _refuse(message, at, int(state[at]))


def require_all(good: Any, state: Any, message: str, indices: Any = None) -> None:
    """All of the 1-d `good` hold; else the message names the first index for which it does not."""
    if isinstance(good, Tracer):
        _check_all(good, message, indices)
    elif not good.all():
        worst = int(np.argmin(good))
        at = worst if indices is None else int(indices[worst])
        _refuse(message, at, int(known(state)[at]))


def marked(state: Any, at: Any, new: int) -> Any:
    """The states after the elements `at` have come into the state `new`."""
    state = known(state)
    if isinstance(at, Tracer) or isinstance(state, Tracer):
        return put_at(state, at, np.full(np.shape(at), new, np.int8), "set")
    state = state.copy()
    state[at] = new
    return state


def _check_all(good: Tracer, message: str, indices: Any) -> None:
    if good.shape != (0,):
        first = np.argmin(good)
        check(np.all(good), message, first if indices is None else take(indices, first))


def _refuse(message: str, index: int, state: int) -> NoReturn:
    text = message.format(index)
    if state == CLEARED and message is UNREAD:
        text = f"TensorArray: element {index} was read before, and clear_after_read=True"
    complain(
        errors.TensorArrayError,
        text,
        "write it first; what stays unwritten can be filled: ta.stack(fill_value=0)."
        if message is UNREAD
        else "use another index, or another TensorArray: `ta = ta.write(i, value)` gives a new one.",
    )
