"""Generators: one stream in Python, in compiled functions, in loops and branches, under derivatives."""

from __future__ import annotations

import contextvars
import copy
import functools
import inspect
import os
import pickle
import secrets
import threading
import uuid

import numpy as np
import pytest

import jitney as jt

R = jt.random
interpreted = functools.partial(jt.jit, backend="interpreter")
rng = R.default_rng(0)


@pytest.fixture(autouse=True)
def fresh():
    rng.state = R.default_rng(5).state


def agree(f, *args, wrap=jt.jit) -> None:
    """Two calls in a row give the same in Python and compiled, and leave the same state."""
    start = rng.state
    plain = [f(*args), f(*args)]
    after = rng.state
    assert after[1] > start[1]
    rng.state = start
    g = wrap(f)
    compiled = [g(*args), g(*args)]
    np.testing.assert_array_equal(rng.state, after)
    for a, b in zip(jt.tree.leaves(plain), jt.tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


class Model:
    def __init__(self):
        self.rng = R.default_rng(7)

    @jt.jit
    def step(self, x):
        return x * self.rng.random(3)


def straight(x):
    first = rng.normal(size=3)
    return x + first, rng.integers(0, 100, 5), rng.choice(10, 4, replace=False)


def in_a_counted_loop(x):
    return jt.fori_loop(0, 5, lambda i, c: c + i * rng.normal(size=3), x)


def in_an_unrolled_loop(x):
    return jt.fori_loop(0, 5, lambda i, c: c + i * rng.normal(size=3), x, unroll=2)


def in_a_loop_of_unknown_length(x):
    def body(carry):
        n, total = carry
        return n + 1, total + rng.exponential()

    return jt.while_loop(lambda c: c[1] < 6.0, body, (0, x[0])), rng.random()


def in_a_scan(x):
    def step(total, x):
        noise = rng.random()
        return total + noise * x, noise

    return jt.scan(step, 0.0, x, reverse=True)


def in_a_branch(x):
    flips = [jt.cond(rng.random() < 0.5, lambda: rng.normal(), lambda: -1.0) for _ in range(6)]
    return jt.stack(flips) + x[0], rng.random()


def in_branches_in_loops(x):
    def body(i, total):
        total = total + jt.cond(total > 0, lambda t: t * rng.random(), lambda t: t + 0.1, total)
        return jt.fori_loop(0, 2, lambda j, t: t + rng.normal() * x.mean(), total)

    return jt.fori_loop(0, 4, body, 0.0)


def in_a_switch(x):
    draws = [lambda: rng.random(), lambda: rng.normal() + rng.normal(), lambda: 0.0]
    return [jt.switch(rng.integers(0, 3), draws) for _ in range(5)]


def in_an_inner_function(x):
    inner = jt.jit(lambda y: y + rng.gamma(2.0, size=2))
    return inner(x[0]), inner(x[1])


def under_a_derivative(x):
    def loss(w):
        return ((w * x + rng.normal(size=3)) ** 2).sum()

    return jt.grad(loss)(2.0), jt.value_and_grad(loss)(1.0), rng.random()


def under_a_checkpoint(x):
    return jt.grad(lambda w: jt.checkpoint(lambda w: (w * rng.random(3)).sum())(w))(
        2.0
    ), rng.random()


def made_inside(x):
    own = R.default_rng(11)
    total = jt.fori_loop(0, 3, lambda i, c: c + own.normal(size=3), x)
    child = rng.spawn(2)[1]
    return total, own.random(), child.random(), R.default_rng(rng.key()).normal()


def shuffled(x):
    y = x.copy()
    rng.shuffle(y)
    return y, rng.permutation(4), rng.permuted(x.reshape(1, 3), axis=1), rng.permuted(x)


PROGRAMS = [
    straight, in_a_counted_loop, in_an_unrolled_loop, in_a_loop_of_unknown_length, in_a_scan,
    in_a_branch, in_branches_in_loops, in_a_switch, in_an_inner_function, under_a_derivative,
    under_a_checkpoint, made_inside, shuffled,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled_functions_go_on_with_the_stream(f):
    agree(f, np.array([0.5, 1.0, -2.0]))


@pytest.mark.parametrize("f", [straight, in_branches_in_loops, under_a_derivative])
def test_interpreted(f):
    agree(f, np.array([0.5, 1.0, -2.0]), wrap=interpreted)


def walk(x, n):
    for _ in range(n):
        if rng.random() < 0.5:
            x += rng.normal()
        else:
            x -= 1.0
    while x < 3.0:
        x += rng.random()
    return x


def test_python_control_flow():
    agree(walk, 1.0, 7, wrap=jt.jit(autograph=True))


def test_a_draw_is_a_function_of_its_number():
    """The n-th draw has the key fold_in(key, n)."""
    key = R.key(5)
    for n in range(3):
        np.testing.assert_array_equal(rng.normal(size=4), R.normal(R.fold_in(key, n), (4,)))
    assert rng.state.tolist() == [5, 3]


def test_generators_are_found_wherever_arrays_are():
    model, other = Model(), R.default_rng(7)
    for _ in range(2):
        np.testing.assert_array_equal(model.step(1.0), other.random(3))
    held = R.default_rng(7)
    first = jt.jit(lambda x: x + held.random(3))(0.0)
    given = jt.jit(lambda g, x, h: (x + g.random(3), h.random(3), g.random()))
    a, b = R.default_rng(7), R.default_rng(7)
    one = given(a, 0.0, b)
    np.testing.assert_array_equal(one[0], first)
    np.testing.assert_array_equal(one[1], first)
    assert a.state.tolist() == [7, 2] and b.state.tolist() == [7, 1]
    same = R.default_rng(7)
    for _ in range(2):  # one generator in two places
        x, y, z = given(same, 0.0, same)
        assert len({*x, *y, z}) == 7
    assert same.state.tolist() == [7, 6]
    assert given.cache_info().misses == 2


def test_generators_in_containers_and_as_arguments_of_everything():
    def loss(w, g):
        return ((w * 2 + g["rng"].normal(size=3)) ** 2).sum()

    def flip(p, g):
        return jt.cond(p > 0, lambda q: q.random(), lambda q: 0.0, g)

    for f, *args in ((jt.grad(loss), 1.0, {"rng": rng}), (flip, 1.0, rng)):
        start = rng.state
        plain, after = f(*args), rng.state
        rng.state = start
        np.testing.assert_allclose(jt.jit(f)(*args), plain)
        np.testing.assert_array_equal(rng.state, after)
        assert after[1] == start[1] + 1
    assert "add" in str(jt.jit(lambda x, g: x + g.random(3)).trace(1.0, rng))


def test_calls_with_generators_are_native():
    f = jt.jit(lambda x: x + rng.random(2))
    g = jt.jit(lambda x, r: x + r.random(2))
    for _ in range(3):
        f(1.0)
        g(1.0, rng)
    assert f.cache_info().misses == 1 and g.cache_info().misses == 1


def test_numbers_do_not_depend_on_what_was_drawn_before():
    rng.random(1000)
    a = rng.normal()
    rng.state = [5, 1]
    assert rng.normal() == a


def test_copies_pickles_and_seeds():
    for other in (copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))):
        assert other.random() == R.default_rng(5).random()
    assert rng.state.tolist() == [5, 0]
    assert R.default_rng(rng) is rng
    assert R.default_rng(R.key(5)).random() == R.default_rng(5).random()
    assert R.default_rng().random() != R.default_rng().random()
    assert R.default_rng(-1).state.tolist() == [2**64 - 1, 0]
    assert len({g.random() for g in rng.spawn(5)}) == 5
    assert len(rng.bytes(7)) == 7


def test_threads_get_different_numbers():
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda: found.extend(rng.random() for _ in range(50)))
        for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(found)) == 200 and rng.state[1] == 200


METHODS = {
    "random": (), "uniform": (1.0, 2.0), "standard_normal": (), "normal": (1.0, 2.0),
    "standard_exponential": (), "exponential": (2.0,), "standard_gamma": (2.0,),
    "gamma": (2.0, 3.0), "beta": (2.0, 3.0), "dirichlet": ([1.0, 2.0, 3.0],), "chisquare": (3.0,),
    "f": (4.0, 9.0), "standard_t": (9.0,), "standard_cauchy": (), "laplace": (), "logistic": (),
    "gumbel": (), "lognormal": (), "rayleigh": (2.0,), "weibull": (2.0,), "pareto": (5.0,),
    "power": (2.0,), "triangular": (0.0, 1.0, 3.0), "wald": (1.0, 3.0), "vonmises": (0.0, 2.0),
    "poisson": (4.0,), "binomial": (9, 0.3), "multinomial": (9, [0.2, 0.8]), "geometric": (0.3,),
    "negative_binomial": (5, 0.4), "zipf": (5.0,), "logseries": (0.5,),
    "hypergeometric": (20, 30, 12), "noncentral_chisquare": (3.0, 2.0),
    "noncentral_f": (4.0, 12.0, 2.0), "multivariate_hypergeometric": ([20, 30, 5], 12),
    "multivariate_normal": ([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]]), "integers": (5, 15),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_numpys(name):
    """The same parameters, shapes and dtypes, and nearly the same means."""
    args = METHODS[name]
    ours = getattr(rng, name)(*args, size=4000)
    theirs = getattr(np.random.default_rng(0), name)(*args, size=4000)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    if name != "standard_cauchy":
        spread = theirs.std(axis=0) / 4000**0.5
        assert (abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 6 * spread + 1e-12).all()
    one = interpreted(lambda: getattr(rng, name)(*args))()
    other = getattr(np.random.default_rng(0), name)(*args)
    assert np.shape(one) == np.shape(other)


def test_methods_of_numpys_generator_that_are_missing():
    """What is known to be missing; a method that comes leaves this list."""
    missing = {"bit_generator"}
    public = {n for n in dir(np.random.Generator) if not n.startswith("_")}
    assert public - set(dir(rng)) == missing


def test_keyword_arguments_are_numpys():
    """Every parameter of NumPy's methods is there, in NumPy's order."""
    for name in METHODS:
        text = getattr(np.random.Generator, name).__doc__.split(")")[0].split("(")[1]
        theirs = [p.split("=")[0].strip() for p in text.split(",") if p.strip() not in ("", "*")]
        ours = list(inspect.signature(getattr(R.Generator, name)).parameters)[1:]
        assert ours[: len(theirs)] == theirs, name


def test_results_go_to_out():
    out, small = np.zeros((2, 3)), np.zeros(3, np.float32)
    start = rng.state
    for draw in (rng.random, rng.standard_normal, rng.standard_exponential):
        rng.state = start
        want = draw((2, 3))
        rng.state = start
        assert draw(out=out) is out
        np.testing.assert_array_equal(out, want)
        assert draw(3, np.float32, out=small) is small and small.all()
    assert rng.standard_gamma(np.ones(3), out=out) is out
    x = np.arange(6.0).reshape(2, 3)
    assert rng.permuted(x, axis=1, out=out) is out
    np.testing.assert_array_equal(np.sort(out), x)
    noisy = jt.jit(lambda a: (rng.random(out=a[0]), rng.random(3))[1])
    x[...] = 7.0
    rng.state = start
    after = noisy(x)
    rng.state = start
    np.testing.assert_array_equal(x[0], rng.random(3))
    np.testing.assert_array_equal(after, rng.random(3))
    assert (x[1] == 7.0).all()
    for wrong, error in (
        (lambda: rng.random(out=small), TypeError),
        (lambda: rng.random(out=[1.0]), TypeError),
        (lambda: rng.random(2, out=out), ValueError),
    ):
        with pytest.raises(error):
            wrong()


WRONG = {
    "normal": {"scale": -1.0}, "poisson": {"lam": [1.0, -1.0]}, "binomial": {"n": 3, "p": 1.5},
    "hypergeometric": {"ngood": 3, "nbad": 4, "nsample": 8}, "gamma": {"shape": -1.0},
    "multivariate_hypergeometric": {"colors": [3, 4], "nsample": 8}, "zipf": {"a": 1.0},
    "choice": {"a": 3, "p": [0.5, 0.5, 0.5]}, "triangular": {"left": 1, "mode": 0, "right": 2},
    "multinomial": {"n": 3, "pvals": [0.9, 0.9, 0.1]}, "geometric": {"p": 0.0},
    "multivariate_normal": {"mean": [0, 0], "cov": [[1, 2], [2, 1]], "check_valid": "raise"},
    "wald": {"mean": 0.0, "scale": 1.0}, "standard_t": {"df": 0.0}, "beta": {"a": 0, "b": 1},
    "logseries": {"p": 1.0}, "vonmises": {"mu": 0, "kappa": -1}, "rayleigh": {"scale": -1},
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_known_parameters_that_cannot_be_are_numpys_errors(name):
    with pytest.raises(ValueError):
        getattr(np.random.default_rng(0), name)(**WRONG[name])
    with pytest.raises(ValueError):
        getattr(rng, name)(**WRONG[name])
    with pytest.raises(ValueError):
        jt.jit(lambda: getattr(rng, name)(**WRONG[name]))()


def test_covariances_are_checked_and_may_be_singular():
    flat = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    for method in ("cholesky", "eigh", "svd"):
        x = rng.multivariate_normal(np.zeros(3), flat, 5, method=method)
        np.testing.assert_allclose(x, x[:, :1] * [1.0, 2.0, 3.0], atol=1e-6)
        y = rng.multivariate_normal(np.ones(2), [[2, 0.5], [0.5, 1]], 20_000, method=method)
        np.testing.assert_allclose(np.cov(y.T), [[2, 0.5], [0.5, 1]], atol=0.07)
    with pytest.warns(RuntimeWarning, match="positive-semidefinite"):
        rng.multivariate_normal(np.zeros(2), [[1, 2], [2, 1]])
    with pytest.warns(RuntimeWarning, match="symmetric"):
        rng.multivariate_normal(np.zeros(2), [[1, 0.5], [0, 1]])


def test_choices_without_shuffling_are_in_order():
    for p in (None, np.full(50, 0.02)):
        for count in (5, 40):
            found = rng.choice(50, count, replace=False, p=p, shuffle=False)
            assert (np.diff(found) > 0).all()
    x = np.arange(20.0).reshape(10, 2)
    assert (np.diff(rng.choice(x, 4, replace=False, shuffle=False)[:, 0]) > 0).all()


def test_generators_behind_names_made_up_at_run_time_advance(monkeypatch):
    """They are found, since the module as a whole is looked at."""
    f = jt.jit(lambda x: x + globals()["rng"].random())
    monkeypatch.setitem(globals(), "rng", R.default_rng(5))
    got = [f(1.0) for _ in range(3)]
    monkeypatch.setitem(globals(), "rng", R.default_rng(5))
    assert got == [1.0 + rng.random() for _ in range(3)] and len(set(got)) == 3


unseen = contextvars.ContextVar("unseen", default=rng)


def test_what_cannot_be_is_refused():
    x = np.ones(3)
    with pytest.raises(ValueError, match="all examples would get the same"):
        jt.jit(jt.vmap(lambda x: x + rng.random()))(x)
    for wrap in (jt.vmap, lambda f: jt.jit(jt.vmap(f, (0, None)))):
        with pytest.raises(ValueError, match="all examples would get the same"):
            wrap(lambda x, g=rng: x + g.random())(*((x,) if wrap is jt.vmap else (x, rng)))
    with pytest.raises(TypeError, match="by its name"):
        jt.jit(lambda g: jt.fori_loop(0, 3, lambda i, c: c, g))(rng)
    with pytest.raises(ValueError, match="inside of linear_transpose draws"):
        loop = lambda w: jt.fori_loop(0, 3, lambda i, c: c * rng.random(), w)  # noqa: E731
        jt.jit(lambda x: jt.linear_transpose(loop, x)(x))(1.0)
    with pytest.raises(ValueError, match="cannot reach"):
        jt.jit(lambda x: x + unseen.get().random())(1.0)
    with pytest.raises(ValueError, match="seed"):
        jt.jit(lambda x: x + R.default_rng().random())(1.0)
    with pytest.raises(TypeError, match="in place"):
        rng.shuffle([1, 2, 3])
    with pytest.raises(TypeError, match="unexpected keyword"):
        R.normal(R.key(0), sigma=2.0)


def test_random_numbers_of_the_operating_system_are_not_frozen():
    """A generator of NumPy's without a seed, secrets and UUIDs, made while a function is traced."""
    np.random.default_rng()
    real = os.urandom
    for draw in (
        lambda: secrets.randbelow(100),
        lambda: os.urandom(1)[0],
        lambda: uuid.uuid4().int % 10,
    ):
        with pytest.raises(ValueError, match="operating system"):
            jt.jit(lambda x, draw=draw: x + draw())(1.0)
    assert os.urandom is real
    seeded = jt.jit(lambda x: x + np.random.default_rng(3).normal())
    assert seeded(1.0) == seeded(1.0) == 1.0 + np.random.default_rng(3).normal()


def test_a_generator_made_of_a_key_serves_where_one_from_outside_does_not():
    def noisy(w, key):
        own = R.default_rng(key)
        return jt.fori_loop(0, 3, lambda i, c: c * own.random(), w)

    keys = R.split(R.key(0), 4)
    slopes = jt.jit(jt.vmap(jt.grad(noisy), (None, 0)))(2.0, keys)
    np.testing.assert_allclose(slopes, [noisy(1.0, k) for k in keys])
