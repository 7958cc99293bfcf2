"""Programs on every backend, compared with plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt
from jitney.tracer.data import pytree

BACKENDS = ["interpreter", "native"]


def both(f: Callable[..., Any], *arguments: Any) -> None:
    """Plain Python and every backend agree, structure and dtypes included."""
    expected, tree = pytree.flatten(f(*arguments))
    for backend in BACKENDS:
        result, found = pytree.flatten(jt.jit(f, backend=backend)(*arguments))
        assert found == tree
        for got, want in zip(result, expected, strict=True):
            assert np.asarray(got).dtype == np.asarray(want).dtype
            np.testing.assert_allclose(got, want, rtol=1e-12)


X = np.linspace(-1.0, 2.0, 5)
