"""`np.errstate(...="raise")` inside of functions: the errors that NumPy raises, where it raises them."""

import warnings

import numpy as np
import pytest

import jitney as jt

VALUES = [
    ([1.0, 2.0], [1.0, 4.0]),
    ([1.0, 0.0], [1.0, 0.0]),
    ([1.0, 2.0], [1.0, 0.0]),
    ([1e308, 1e308], [1e-5, 3.0]),
    ([np.inf, 1.0], [np.inf, 2.0]),
    ([np.nan, 1.0], [0.0, np.nan]),
    ([1e-308, 1.0], [1e300, 1.0]),
    ([-1.0, 3.0], [np.inf, 2.0]),
    ([np.inf, -np.inf], [1.0, 1.0]),
    ([], []),
]
CASES = {
    "divide": lambda a, b: a / b,
    "floor_divide of ints": lambda a, b: np.arange(a.size) // (b > 2),
    "remainder": lambda a, b: a % b,
    "log": lambda a, b: np.log(a),
    "multiply": lambda a, b: a * a,
    "exp": lambda a, b: np.exp(a),
    "power": lambda a, b: np.power(a, -1),
    "sqrt": lambda a, b: np.sqrt(a),
    "sum": lambda a, b: a.sum(),
    "prod": lambda a, b: np.prod(a),
    "cumsum": lambda a, b: np.cumsum(a),
    "cast to integers": lambda a, b: a.astype(int),
    "cast to float32": lambda a, b: a.astype(np.float32),
    "comparison": lambda a, b: a < b,
    "where=": lambda a, b: np.divide(a, b, out=np.zeros_like(a), where=b != 0),
    "both sides of where": lambda a, b: np.where(b != 0, a / b, 0.0),
}


def told(f, a, b):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            f(a, b)
        except FloatingPointError as error:
            return str(error).splitlines()[0]
    return None


@pytest.mark.parametrize("name", CASES)
def test_errors_are_raised_where_numpy_raises_them(name):
    compute = CASES[name]

    def every(a, b):
        with np.errstate(all="raise"):
            return compute(a, b)

    def two(a, b):
        with np.errstate(divide="raise", over="raise"):
            return compute(a, b)

    for f in (every, two):
        compiled = jt.jit(f)
        for one, other in VALUES:
            a, b = np.array(one), np.array(other)
            assert told(compiled, a, b) == told(f, a, b), (a, b)


def test_products_of_matrices():
    @jt.jit
    def f(a):
        with np.errstate(over="raise"):
            return a @ a

    f(np.full((2, 2), 1e100))
    with pytest.raises(FloatingPointError, match="overflow encountered in matmul"):
        f(np.full((2, 2), 1e200))


def test_the_state_is_the_functions_own():
    f = jt.jit(lambda x: 1 / x)
    with np.errstate(all="raise"):
        assert f(np.array([0.0])) == np.inf  # what is compiled depends on nothing around it
    assert f(np.array([0.0])) == np.inf


def test_other_ways_of_telling_are_refused():
    def seterr(x):
        np.seterr(all="raise")
        return 1 / x

    def call(x):
        with np.errstate(divide="print"):
            return 1 / x

    before = np.geterr()
    with pytest.raises(jt.errors.ImpureFunctionError, match=r"np\.errstate"):
        jt.jit(seterr)(np.ones(2))
    assert np.geterr() == before
    with pytest.raises(jt.errors.TransformError, match="print"):
        jt.jit(call)(np.ones(2))
