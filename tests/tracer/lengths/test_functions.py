"""Functions of arrays of any length: one program for all lengths, with NumPy's and SciPy's results."""

import numpy as np
import pytest
import scipy.special as sp
from test_lengths import rows_of, same

import jitney as jt

SIZES = (17, 0, 1, 2, 1000)


def softmaxes(x):
    return sp.softmax(x, axis=1), sp.log_softmax(x, axis=1), sp.logsumexp(x, axis=1)


def sums_of_exponentials(x):
    wide = sp.logsumexp(x, axis=1, b=np.float32(2), keepdims=True)
    return wide, sp.softmax(x[:, :2].astype(np.int64), axis=-1)


def softmaxes_along(x):
    return sp.softmax(x, axis=0), sp.log_softmax(x, axis=0), sp.logsumexp(x, axis=0), sp.softmax(x)


def softmaxes_of_nothing(x):
    """As `softmaxes_along`, where SciPy has no largest element."""
    return softmaxes_along(x) if len(x) else (x, x, np.full(6, -np.inf, x.dtype), x)


def errors(x):
    return sp.erf(x), sp.expit(x), sp.ndtr(x), sp.i0(x), sp.xlogy(np.abs(x), np.abs(x) + 1)


def chosen(x):
    some = np.select([x > 0.5, x < -0.5], [x, 2 * x], 0)
    parts = np.piecewise(x, [x < 0, x >= 1], [lambda v: -v, 3.0, lambda v: v * v])
    return some, np.select([x[:, 0] > 0], [x[:, 1]], 7.0), parts


def chosen_by_number(x):
    return np.choose((x > 0).astype(np.int64), [x, 2 * x])


def along(x):
    best = x.argmax(axis=1)
    columns = (x[:, :3] > 0) + 2 * (x[:, 3:] > 0)
    picked = np.take_along_axis(x, columns, axis=1)
    return np.take_along_axis(x, best[:, None], axis=1), picked


def along_the_first(x):
    return np.take_along_axis(x, np.where(x > 0, 0, -1), axis=0)


def spread(x):
    n, k = x.shape
    return (
        np.broadcast_to(x.sum(axis=0), x.shape) + x,
        np.broadcast_to(x[:, :1], (n, k)) + 1,
        np.broadcast_to(x, (3, n, k)).sum(axis=0),
        np.broadcast_to(np.float32(2), n) + 1,
    )


def binned(x):
    return np.digitize(x, np.array([-1.0, 0.0, 1.0])), np.digitize(x[:, 0], [1.0, 0.0], right=True)


def replaced(x):
    y = x.copy()
    y[:, 0] = 1
    z = x.copy()
    z[:, 1:3] += x[:, :2]
    return y, z, np.where(x > 0, np.float32(1), x), np.nanmean(x, axis=1)


def replaced_by_at(x):
    y, z = jt.at(x)[:, 0].set(1.0), jt.at(x)[:, 1:3].add(x[:, :2])
    return y, z, jt.at(x)[x > 0].set(1.0), np.nanmean(x, axis=1)


CASES = (
    *(
        softmaxes,
        sums_of_exponentials,
        (softmaxes_along, softmaxes_of_nothing),
        errors,
        chosen,
        chosen_by_number,
    ),
    *(along, along_the_first, spread, binned, (replaced_by_at, replaced)),
)


@pytest.mark.parametrize("case", CASES, ids=lambda c: (c if callable(c) else c[0]).__name__)
@pytest.mark.filterwarnings("ignore")  # NumPy's, of means of nothing
def test_one_program_for_all_lengths(case):
    function, model = case if isinstance(case, tuple) else (case, case)
    f = jt.jit(function, dynamic={"x": {0: "n"}})
    for n in SIZES:
        x = rows_of(n)
        try:
            wanted = model(x)
        except (ValueError, IndexError) as error:  # the largest, or the last, of nothing
            with pytest.raises(type(error)):
                f(x)
            continue
        same(f(x), wanted)
    # One of no row, or of one that NumPy would broadcast, may be compiled for itself.
    assert f.cache_info().misses <= 3, f.cache_info()
    assert "no axis of any length" not in f.explain_recompile(), f.explain_recompile()
