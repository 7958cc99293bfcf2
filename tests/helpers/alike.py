"""Equal in value and in class: what compiled functions give is what Python gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

UP, DOWN, NONE = np.arange(1.0, 5.0), np.array([3.0, -1.0, 2.0, 2.5]), np.zeros(0)


def alike(want: Any, got: Any) -> bool:
    """Equal in value and in class, all the way down."""
    if type(want) is not type(got):
        return False
    if isinstance(want, (tuple, list)):
        return len(want) == len(got) and all(map(alike, want, got))
    if isinstance(want, np.ndarray):
        return want.dtype == got.dtype and np.array_equal(want, got)
    return bool(want == got)


def compare(f: Callable[..., Any], *calls: tuple[Any, ...], backend: str = "interpreter") -> None:
    """The compiled function gives what Python gives, for each of the calls; so do errors."""
    compiled: Any = jt.jit(f, backend=backend)
    for args in calls:
        try:
            want = f(*copy.deepcopy(args))
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(*copy.deepcopy(args))
            continue
        got = compiled(*copy.deepcopy(args))
        assert alike(want, got), (f.__name__, args, want, got)


class Node:
    def __init__(self, value):
        self.value, self.following = value, None
