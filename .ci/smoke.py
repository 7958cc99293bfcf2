"""Use the installed wheel as a user would. `.ci/run` gives the checkout's path as the argument."""

import sys
from pathlib import Path

import numpy as np

import jitney as jt

home = Path(jt.__file__).resolve().parent
checkout = Path(sys.argv[1]).resolve()
assert home != checkout and checkout not in home.parents, f"imported from the checkout: {home}"
assert (home / "py.typed").exists(), "the wheel lost py.typed"
assert not (home / "tests").exists(), "the wheel carries the tests"


@jt.jit
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


x = np.random.default_rng(0).standard_normal((64, 100))
y = softmax(x)
e = np.exp(x - x.max(axis=-1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(axis=-1, keepdims=True), rtol=1e-12)
slope = jt.jit(jt.grad(lambda v: (softmax(v) ** 2).sum()))(x)
assert slope.shape == x.shape and np.isfinite(slope).all()
print(f"jitney {jt.__version__} from {home}: a jitted function and its gradient agree with NumPy")
