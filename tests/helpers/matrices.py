"""Sample matrices, and the checks of derivatives that tests of functions of matrices share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

Array = np.ndarray[Any, Any]
REAL_AND_COMPLEX = (np.float64, np.complex128)


def numbers(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def check_gradients(f: Callable[..., Any], *args: Array) -> None:
    jt.check_grads(f, args, order=1, modes=("fwd", "rev"))
    jt.check_grads(jt.jit(f), args, order=2, modes=("rev",))
