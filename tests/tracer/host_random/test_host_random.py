"""NumPy's and Python's generators in compiled functions: the numbers of plain Python, to the bit, and
the generators afterwards where plain Python leaves them."""

from __future__ import annotations

import copy
import functools
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from random import randint as early_randint
from typing import Any

import numpy as np
import pytest
from numpy.random import rand as early_rand
from streams import agree, check, metropolis, pi, state

import jitney as jt

BOTH = pytest.mark.parametrize("autograph", [False, True], ids=["plain", "autograph"])
rng = np.random.default_rng(11)
table = {"rngs": [np.random.default_rng(12), np.random.RandomState(13)]}
bound = np.random.default_rng(14).normal


# Where generators are


@BOTH
def test_an_argument(autograph: bool) -> None:
    def f(r: Any, x: float) -> Any:
        return r.random() + x, r.normal(x, 2.0, 3), r.integers(10), r.integers(0, 5, (2, 2))

    check(f, np.random.default_rng(1), 2.0, autograph=autograph)


@BOTH
def test_a_global_and_another_in_its_place(autograph: bool) -> None:
    global rng

    def f(x: float) -> Any:
        return x + rng.random()

    compiled = jt.jit(f, autograph=autograph)
    before = rng
    try:
        for seed in (1, 2):
            rng, twin = np.random.default_rng(seed), np.random.default_rng(seed)
            assert [compiled(1.0), compiled(1.0)] == [1.0 + twin.random(), 1.0 + twin.random()]
            assert state(rng) == state(twin)
        assert compiled.cache_info().misses == 1
        rng = np.random.Generator(np.random.SFC64(3))
        twin = np.random.Generator(np.random.SFC64(3))
        assert compiled(1.0) == 1.0 + twin.random()
        assert state(rng) == state(twin)
    finally:
        rng = before


@BOTH
def test_a_closure_and_helpers(autograph: bool) -> None:
    def make() -> Any:
        r = np.random.default_rng(4)

        def draw(y: float) -> Any:
            return y * r.random()

        return lambda x: draw(x) + sum(draw(x) for _ in range(3))

    assert jt.jit(make(), autograph=autograph)(2.0) == make()(2.0)


class Walker:
    shared = np.random.default_rng(5)

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.legacy = np.random.RandomState(seed)
        self.python = random.Random(seed)

    def step(self, x: float) -> Any:
        return x + self.rng.normal() * self.legacy.rand() + self.python.random()

    def walk(self, x: float) -> Any:
        for _ in range(30):
            x = self.step(x)
        return x

    def through(self, x: float) -> Any:
        return helper(self, x)


def helper(walker: Walker, x: float) -> Any:
    return x + walker.rng.random()


@pytest.mark.parametrize("name", ["step", "walk", "through"])
def test_attributes(name: str) -> None:
    mine, theirs = Walker(1), Walker(1)
    compiled = jt.jit(getattr(theirs, name), autograph=True)
    for _ in range(3):
        assert getattr(mine, name)(1.0) == compiled(1.0)
    for attribute in ("rng", "legacy", "python"):
        assert state(getattr(mine, attribute)) == state(getattr(theirs, attribute))
    theirs.rng, mine.rng = np.random.default_rng(9), np.random.default_rng(9)
    assert getattr(mine, name)(1.0) == compiled(1.0)


def test_attributes_without_autograph() -> None:
    """The copy of an object that a method is traced with has other attributes, where that can be."""

    class Sampler:
        def __init__(self) -> None:
            self.rng = np.random.default_rng(1)

        @functools.partial(jt.jit, autograph=False)
        def draw(self, x: float) -> Any:
            return x + self.rng.normal()

    sampler, twin = Sampler(), np.random.default_rng(1)
    assert [sampler.draw(1.0), sampler.draw(2.0)] == [1.0 + twin.normal(), 2.0 + twin.normal()]
    for name in ("step", "through"):
        walker = Walker(1)
        with pytest.raises(jt.errors.ImpureFunctionError, match="autograph=False"):
            jt.jit(getattr(walker, name), autograph=False)(1.0)


def test_an_attribute_of_a_class() -> None:
    twin = copy.deepcopy(Walker.shared)
    assert (
        jt.jit(lambda w: w.shared.random(), static_argnums=0, autograph=True)(Walker(1))
        == twin.random()
    )
    assert state(Walker.shared) == state(twin)


@BOTH
def test_containers(autograph: bool) -> None:
    def f(d: Any) -> Any:
        return d["r"].random() * d["x"] + table["rngs"][0].random(), table["rngs"][1].randn(2)

    saved = copy.deepcopy(table["rngs"])
    d = {"r": np.random.default_rng(1), "x": 2.0}
    want = f(copy.deepcopy(d))
    table["rngs"][:] = saved
    agree(want, jt.jit(f, autograph=autograph)(d))


@BOTH
def test_functions_of_the_modules(autograph: bool) -> None:
    def f(x: float) -> Any:
        a = np.random.rand(), np.random.rand(2, 3), np.random.randn(4), np.random.randint(0, 9, 5)
        b = np.random.normal(x, 2.0), np.random.uniform(-1, 1, 3), np.random.random()
        c = np.random.sample(2), random.random(), random.uniform(1, 2), random.randint(1, 6)
        return a, b, c, np.random.permutation(5), np.random.choice(7), np.random.exponential(x)

    check(f, 2.0, autograph=autograph)


@BOTH
def test_names_of_their_own(autograph: bool) -> None:
    def f(x: float) -> Any:
        return early_rand() * x + early_randint(1, 6)

    check(f, 2.0, autograph=autograph)
    twin = copy.deepcopy(bound.__self__)
    assert jt.jit(lambda x: bound(x), autograph=autograph)(3.0) == twin.normal(3.0)


@BOTH
def test_seeds(autograph: bool) -> None:
    def known(x: float) -> Any:
        np.random.seed(42)
        random.seed(7)
        return np.random.randn(3) * x, random.random()

    def traced(n: int) -> Any:
        np.random.seed(n)
        random.seed(n)
        return np.random.rand(), random.random()

    check(known, 2.0, autograph=autograph)
    check(traced, 5, autograph=autograph)


def test_generators_made_inside() -> None:
    def f(seed: int, x: float) -> Any:
        a, b, c = np.random.default_rng(3), np.random.RandomState(4), random.Random(5)
        d = np.random.default_rng(seed)
        total = 0.0
        for _ in range(200):
            total += a.random() * x + b.rand() - c.random() + d.normal()
        return total

    check(f, 8, 2.0, autograph=True)
    made = jt.jit(lambda x: x + np.random.default_rng().random(), autograph=True)
    assert made(1.0) != made(1.0)


# Control flow


def until(r: Any, p: float) -> Any:
    n = np.int64(0)
    while r.random() < p:
        n += r.integers(1, 4)
    return n


def branches(r: Any, x: float) -> Any:
    if x > 0:
        y = r.random()
        if y > 0.5:
            y = y + r.normal()
    else:
        y = r.exponential(2.0)
    return y + r.random()


def filled(r: Any, n: int) -> Any:
    out = np.zeros(50)
    pairs = np.zeros((50, 2))
    for i in range(50):
        out[i] = r.standard_normal() * n
        pairs[i] = r.random(2)
    return out, pairs


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_loops_and_branches(backend: str) -> None:
    def g() -> Any:
        return np.random.default_rng(6)

    options: dict[str, Any] = {"autograph": True, "backend": backend}
    check(pi, 300, **options)
    check(metropolis, g(), 300, **options)
    for p in (0.0, 0.5, 0.95):
        check(until, g(), p, **options)
    for x in (1.0, -1.0):
        check(branches, g(), x, times=6, **options)
    check(filled, g(), 3, **options)


def test_ising() -> None:
    def sweep(spins: Any, beta: float, steps: int) -> Any:
        n = spins.shape[0]
        for _ in range(steps):
            i, j = np.random.randint(0, n), np.random.randint(0, n)
            around = (
                spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
            )
            energy = 2 * spins[i, j] * around
            if energy <= 0 or np.random.rand() < 0.25:
                spins[i, j] = -spins[i, j]
        return spins.sum()

    spins = np.where(np.random.default_rng(1).random((8, 8)) < 0.5, 1, -1)
    mine, theirs = spins.copy(), spins.copy()
    compiled = jt.jit(sweep, autograph=True)
    for _ in range(2):
        np.random.seed(3)
        want = sweep(mine, 0.4, 500)
        np.random.seed(3)
        assert compiled(theirs, 0.4, 500) == want
        np.testing.assert_array_equal(mine, theirs)


def test_structured_loops() -> None:
    r, twin = np.random.default_rng(1), np.random.default_rng(1)

    def f(x: float) -> Any:
        total = jt.fori_loop(0, 5, lambda i, c: c + x * r.random(), 0.0)
        _, ys = jt.scan(lambda c, _: (c + r.normal(), c), 0.0, None, length=4)
        z = jt.cond(x > 0, lambda: r.random(), lambda: r.random() + r.random())
        return total, ys, z

    total, ys, z = jt.jit(f)(2.0)
    want = 0.0
    for _ in range(5):
        want = want + 2.0 * twin.random()
    assert total == want
    sums = [0.0]
    for _ in range(4):
        sums.append(sums[-1] + twin.normal())
    np.testing.assert_array_equal(ys, sums[:4])
    assert z == twin.random()
    assert state(r) == state(twin)


def test_after_an_exception() -> None:
    def f(r: Any, x: float) -> Any:
        for i in range(10):
            y = r.random() * x
            if i == 3 and x > 0:
                raise ValueError("stop")
        return y + r.normal(0.0, x)

    mine, theirs = np.random.default_rng(1), np.random.default_rng(1)
    compiled = jt.jit(f, autograph=True)
    for x in (1.0, -1.0):
        for function, r in ((f, mine), (compiled, theirs)):
            with pytest.raises(ValueError, match="stop" if x > 0 else "scale < 0"):
                function(r, x)
        assert state(mine) == state(theirs)


def test_what_nobody_reads_is_drawn() -> None:
    def f(r: Any, x: float) -> Any:
        r.random(5)
        r.poisson(3.0)
        return x

    check(f, np.random.default_rng(1), 1.0)


# Derivatives, examples, threads


def test_derivatives_take_numbers_for_constants() -> None:
    def f(x: float, r: Any) -> Any:
        total = 0.0
        for _ in range(10):
            total = total + r.normal(x, 2 * x) * r.random()
        return total + r.gamma(2.0, x) + r.laplace(x, x) + r.uniform(x, 3 * x)

    twin = np.random.default_rng(1)
    want = 0.0
    for _ in range(10):
        z, u = twin.standard_normal(), twin.random()
        want += (1 + 2 * z) * u
    want += twin.standard_gamma(2.0) + (1 + twin.laplace()) + (1 + 2 * twin.random())
    r = np.random.default_rng(1)
    got = jt.jit(jt.grad(f), autograph=True)(1.5, r)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert state(r) == state(twin)
    again = jt.jit(jt.grad(jt.checkpoint(f)), autograph=True)(1.5, np.random.default_rng(1))
    np.testing.assert_allclose(again, want, rtol=1e-12)


def test_examples_are_refused() -> None:
    r = np.random.default_rng(1)
    for f in (lambda x: x + r.random(), lambda x: x + np.random.rand()):
        with pytest.raises(jt.errors.OuterMutationError, match=r"jt\.random\.split"):
            jt.jit(jt.vmap(f), autograph=True)(np.ones(3))


def test_threads_take_turns() -> None:
    """Calls that draw keep the GIL: what two threads draw is one stream, cut somewhere."""
    r, twin = np.random.default_rng(1), np.random.default_rng(1)
    compiled = jt.jit(lambda g: g.random(1000), autograph=True)
    found: list[Any] = []

    def work() -> None:
        for _ in range(20):
            found.append(compiled(r))

    compiled(np.random.default_rng(0))
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = twin.random((60, 1000))
    assert sorted(x[0] for x in found) == sorted(want[:, 0])
    assert state(r) == state(twin)


# Errors


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda r, x: r.normal(0.0, x), "scale < 0"),
        (lambda r, x: r.integers(5, x), "low >= high"),
        (lambda r, x: r.integers(5, 5), "low >= high"),
        (lambda r, x: r.integers(0, 300, dtype=np.uint8), "high is out of bounds for uint8"),
        (lambda r, x: r.poisson(x), "lam < 0"),
        (lambda r, x: r.binomial(3, x), "p < 0"),
        (lambda r, x: r.beta(x, 1.0), "a <= 0"),
        (lambda r, x: r.triangular(0.0, x, 1.0), "left > mode"),
        (lambda r, x: r.choice(3, p=[0.5, 0.2, 0.1]), "do not sum to 1"),
    ],
)
def test_errors_are_numpys(draw: Callable[..., Any], message: str) -> None:
    mine, theirs = np.random.default_rng(1), np.random.default_rng(1)
    for function, r in ((draw, mine), (jt.jit(draw), theirs)):
        with pytest.raises(ValueError, match=message):
            function(r, -3)
    assert state(mine) == state(theirs)


def test_a_size_may_come_of_an_argument() -> None:
    def around(n: int) -> Any:
        return np.random.uniform(0, 1, n), np.random.rand(2, n), random.random()

    def f(n: int) -> Any:
        return around(n), np.random.normal(size=(n, n // 2)), np.random.permutation(n - 4)

    check(f, 3)


@pytest.mark.parametrize(
    "draw",
    [
        lambda n: np.random.rand(2, n),
        lambda n: np.random.normal(0.0, 1.0, (n,)),
        lambda n: np.random.choice(5, n),
        lambda n: np.random.multinomial(5, [0.5, 0.5], size=n),
        lambda n: rng.integers(0, 5, size=n),
        lambda n: np.broadcast_to(np.random.rand(1), (2, n)),
    ],
)
def test_negative_sizes_are_errors(draw: Callable[..., Any]) -> None:
    for function in (draw, jt.jit(draw)):
        with pytest.raises(ValueError, match="negative"):
            function(-1)


def test_what_is_refused() -> None:
    r = np.random.default_rng(1)
    with pytest.raises(jt.errors.TracerIndexError, match="needs an integer"):
        jt.jit(lambda g, n: g.random(g.integers(1, n[0])))(r, np.array([3]))
    with pytest.raises(TypeError, match=r"spawn is not there"):
        jt.jit(lambda g: g.spawn(2)[0].random())(r)
    with pytest.raises(TypeError, match="integers"):
        jt.jit(lambda g: g.bytes(3))(r)
    with pytest.raises(TypeError, match="SystemRandom"):
        jt.jit(lambda g: g.random())(random.SystemRandom())
    with pytest.raises(AttributeError, match="no attribute 'rand'"):
        jt.jit(lambda g: g.rand())(r)
    assert state(r) == state(np.random.default_rng(1))


def test_callbacks_draw_from_the_generator_itself() -> None:
    r, twin = np.random.default_rng(1), np.random.default_rng(1)

    def f(x: float) -> Any:
        first = jt.io_callback(lambda: np.float64(r.random()), np.float64(0))
        return first + r.random() * x

    for compiled in (jt.jit(f), jt.jit(f, autograph=True)):
        assert compiled(2.0) == twin.random() + twin.random() * 2.0
    assert state(r) == state(twin)


def test_python_is_left_alone() -> None:
    before = dict(vars(np.random)), dict(vars(random))
    f = jt.jit(lambda x: x + np.random.rand())
    f(1.0)
    assert before == (dict(vars(np.random)), dict(vars(random)))
    assert isinstance(jt.jit(lambda r: r.random() if isinstance(r, np.random.Generator) else 0)(
        np.random.default_rng(1)
    ), float)  # fmt: skip


def test_explain_says_what_is_asked_of_numpy() -> None:
    r = np.random.default_rng(1)
    text = str(jt.jit(lambda g: g.dirichlet([1.0, 2.0])).explain(r))
    assert "Generator.dirichlet" in text and "test_host_random.py" in text
    assert "calls Python" not in str(jt.jit(lambda g: g.normal(size=3)).explain(r))


def test_a_loop_is_scalar_code() -> None:
    program = """if True:
        import sys
        import numpy as np, jitney as jt
        sys.path.insert(0, sys.argv[1])
        from streams import pi
        kernels = jt.jit(pi, autograph=True).lower(100).kernels
        assert any("draw" in kernel.ops and "cond" in kernel.ops for kernel in kernels), kernels
    """
    folder = str(Path(__file__).parents[2] / "helpers")
    subprocess.run([sys.executable, "-c", program, folder], check=True)  # that has compiled nothing


def test_generators_that_numpy_loads_while_a_function_is_traced_are_seen(tmp_path: Path) -> None:
    """NumPy loads them when somebody asks: no code names them here, so the first trace loads them."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, numpy as np, jitney as jt\n"
        "def helper(x): return getattr(np, 'ran' + 'dom').uniform(0, x)\n"
        "@jt.jit\n"
        "def f(x): return x + helper(x)\n"
        "print('numpy.random' in sys.modules)\n"
        "try: f(1.0)\n"
        "except jt.errors.ImpureFunctionError as error: print(error)\n"
    )
    run = [sys.executable, str(script)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("False\n")
    assert "uniform of a RandomState that compiled code cannot find again" in done.stdout
