"""`np.testing`'s assertions of traced values fail where NumPy's fail, and at each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.array([1.0, np.nan, np.inf, -2.0])
CASES: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (np.testing.assert_allclose, (X, X * (1 + 1e-9)), {}),
    (np.testing.assert_allclose, (X, X), {"equal_nan": False}),
    (np.testing.assert_allclose, (X[0], 1), {"err_msg": "one"}),
    (np.testing.assert_allclose, (X, X + 1e-3), {"rtol": 1e-6, "atol": 1e-4}),
    (np.testing.assert_allclose, (X, -X), {}),
    (np.testing.assert_array_equal, (X, X.copy()), {}),
    (np.testing.assert_array_equal, (X, X[0]), {}),
    (np.testing.assert_array_equal, (X, X[:2]), {}),
    (np.testing.assert_array_almost_equal, (X, X + 1e-8), {}),
    (np.testing.assert_array_almost_equal, (X, X + 1e-3), {"decimal": 4}),
    (np.testing.assert_array_less, (X[:1], X[:1] + 1), {}),
    (np.testing.assert_array_less, (X[:1], X[:1]), {}),
    (np.testing.assert_equal, (X, X.copy()), {}),
    (np.testing.assert_equal, (X, X + 1), {}),
    (np.testing.assert_equal, (X[0], 1), {}),
    (np.testing.assert_equal, (X[1], X[1]), {}),
    (np.testing.assert_equal, (0.0, -0.0), {}),
    (np.testing.assert_equal, (3, 4), {}),
    (np.testing.assert_equal, ([X[0], (X[3], 2)], [1, (-2.0, 2)]), {}),
    (np.testing.assert_equal, ([X[0], X[3]], [1]), {}),
    (np.testing.assert_equal, ({"a": X}, {"b": X}), {}),
    (np.testing.assert_equal, (X[0], "1"), {}),
    (np.testing.assert_equal, (X[0] + 2j, 1 + 2j), {}),
    (np.testing.assert_almost_equal, (X[0] + 1e-9, 1), {}),
    (np.testing.assert_almost_equal, (X[0] + 1e-6, 1), {}),
    (np.testing.assert_almost_equal, (1 + 1e-6j, 1.0), {"decimal": 5}),
    (np.testing.assert_, (X[0] == 1, "no"), {}),
    (np.testing.assert_, (X[0] == 2, "no"), {}),
]


@pytest.mark.parametrize(("assertion", "arguments", "options"), CASES)
def test_they_fail_where_numpys_fail(
    assertion: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    def f(x: Any, y: Any) -> Any:
        assertion(x, y, **options)
        return x

    compiled = jt.jit(f)
    for _ in range(2):
        try:
            f(*arguments)
        except AssertionError:
            with pytest.raises(AssertionError):
                compiled(*arguments)
        else:
            np.testing.assert_equal(compiled(*arguments), arguments[0])
