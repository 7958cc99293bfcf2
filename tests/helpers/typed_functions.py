"""What a type checker sees of array functions, whose stubs are made: `test_stubs.py` and `.ci/run types`
check this file, as `typed_calls.py`."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import jitney as jt

Array = np.ndarray[tuple[int], np.dtype[np.float64]]


def from_numpy(x: Array, a: NDArray[np.float64]) -> None:
    assert_type(jt.sum(x), np.float64)
    assert_type(jt.nancumsum(a, axis=0), NDArray[np.float64])
    assert_type(jt.fft.fftshift(a), NDArray[np.float64])
    assert_type(jt.float32(1), np.float32)
    assert_type(jt.pi, float)
    jt.add.reduce(x)
    jt.asarray([1, 2], dtype=jt.int32)


def our_own(x: Array) -> None:
    assert_type(jt.conv(x[None, :, None], x[:, None, None]), NDArray[Any])
    assert_type(jt.nonzero(x, size=3, fill_value=0), tuple[NDArray[Any], ...])
    assert_type(jt.linalg.band_part(np.eye(3), 1, 0), NDArray[Any])
    assert_type(jt.ops.one_hot(np.arange(3), 3), NDArray[Any])
    assert_type(jt.ops.top_k(x, k=2).indices, Any)
    jt.at(x)[0].set(1.0)
    jt.special.gammainc(1.0, x)
    jt.special.jv(1.0, x)  # SciPy's
    jt.image.resize(np.ones((4, 4)), (2, 2), antialias=False)


def refused(x: Array) -> None:
    jt.sum(x, axes=1)  # type: ignore[call-overload]
    jt.conv(x)  # type: ignore[call-arg]
    jt.linalg.band_part(x, 1, "0")  # type: ignore[arg-type]
    jt.ops.one_hot(x)  # type: ignore[call-arg]
    jt.sine(x)  # type: ignore[attr-defined]
    jt.linalg.norms(x)  # type: ignore[attr-defined]
