"""First axes of any length: one program for all sizes, with the results that each has for itself."""

import ctypes
import mmap
import sys

import numpy as np
import pytest

import jitney as jt

W1 = np.random.default_rng(1).standard_normal((6, 32)).astype(np.float32)
W2 = np.random.default_rng(2).standard_normal((32, 4)).astype(np.float32)
SIZES = (5, 7, 1, 0, 64, 33, 2, 301, 16)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x):
    d = x - x.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5)


def mlp(x):
    return np.maximum(x @ W1, 0) @ W2


def totals(x):
    return x.sum(), x.sum(axis=0), (x * x).sum(axis=1), x.shape[0] * 2


def moments(x):
    return x.mean(axis=0), x.std(axis=0), x.max(), x.argmax(axis=0)


def sizes_as_numbers(x):
    n = x.shape[0]
    return x / n + np.arange(n)[:, None], np.zeros(n) + 1, np.ones((n, 2)) * n


def joined(x):
    return np.concatenate([x, 2 * x], axis=1), np.where(x > 0, x, 0)


def squares(x):
    return x.T @ x, x.astype(np.float64).T @ np.abs(x)


def turned(x):
    return np.exp(x[:, 1]), x[:, ::2] * 2, x.T.sum(axis=0)


def rows(x):
    return x.sum(axis=1) - np.float32(1), (x > 0).any(axis=1), x.max(axis=1).sum()


def rows_of_other_shapes(x):
    images = x.reshape(x.shape[0], 2, -1) * 2
    return images.sum(axis=2), images.reshape(x.shape[0], 6), np.reshape(x, (-1, 3, 2)) + 1


def examples(x):
    one = jt.vmap(lambda r: np.tanh(r).sum() * 2)
    both = jt.vmap(lambda r, w: np.log(r * r + 1) @ w, (0, None))
    return one(x), both(x, W1), jt.map_fn(lambda r: r[0] * r, x)


def steps(x):
    last, states = jt.scan(lambda c, r: (np.tanh(c + r), c * 2), np.zeros(6, np.float32), x)
    back = jt.scan(lambda c, r: (c * np.float32(0.9) + r[0], c), np.float32(0), x, reverse=True)
    return last, states, *back


def numbers(x):
    n = x.shape[0]
    ones = np.ones(n)
    return (
        ones.sum(),
        ones @ ones,
        (np.zeros(n) + 1).prod(),
        np.arange(n).sum(),
        np.full(n, 2.5).mean(),
    )


def slopes(x):
    w = W1[:, :3] + 0

    def loss(w, b):
        return (np.tanh(jt.vmap(lambda r: r @ w)(x) + b) ** 2).mean()

    return (
        *jt.grad(loss, argnums=(0, 1))(w, np.ones(3, np.float32)),
        jt.grad(through_time)(w[:, :1], x),
    )


def through_time(w, x):
    state = np.zeros(1, np.float32)
    return jt.scan(lambda c, r: (np.tanh(c + r @ w), None), state, x)[0].sum()


def neighbours(x):
    return x[1:] - x[:-1], (x[2:] * x[:-2]).sum(axis=0), np.exp(x[:3]), x[-2:] + 1, x[1:-1].mean()


def turned_round(x):
    return x[::-1] * 2, x[::2] + 1, x[::-3].sum(), np.flip(x, 0).max(axis=1)


def places(x):
    best = x.argmax(axis=1)
    return x[-1] * x[0], x[np.array([0, -1])], x[x[:, 0].argmax()], x[np.arange(x.shape[0]), best]


def smooth(x):
    def loss(w):
        y = np.tanh(x @ w)
        return ((y[1:] - y[:-1]) ** 2).sum() + (y[::-1] * x[:, :2]).sum()

    return jt.grad(loss)(W1[:, :2] + 0)


def branch(x):
    return x * 2 if x.shape[0] > 10 else x + 1


FUNCTIONS = (
    *(softmax, layer_norm, mlp, totals, moments, sizes_as_numbers),
    *(joined, squares, turned, rows, branch, rows_of_other_shapes),
    *(examples, steps, numbers, slopes),
    *(neighbours, turned_round, places, smooth),
)


def rows_of(n, dtype=np.float32, seed=0):
    return np.random.default_rng([n, seed]).standard_normal((n, 6)).astype(dtype)


def same(got, wanted):
    if isinstance(wanted, tuple):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            same(a, b)
        return
    assert np.shape(got) == np.shape(wanted)
    assert np.asarray(got).dtype == np.asarray(wanted).dtype
    tolerance = 2e-2 if np.asarray(wanted).dtype == np.float16 else 2e-5
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")  # NumPy's, of means of nothing
def test_any_length_is_as_each_for_itself(function):
    f = jt.jit(function, dynamic={"x": {0: "batch"}})
    for n in SIZES:
        x = rows_of(n)
        try:
            wanted = function(x)
        except (ValueError, IndexError) as error:  # the largest, or the last, of nothing
            with pytest.raises(type(error)):
                f(x)
            continue
        same(f(x), wanted)
        same(f(np.asfortranarray(x)), wanted)
        same(f(np.repeat(x, 2, axis=0)[::2]), wanted)
        x.flags.writeable = False
        same(f(x), wanted)
    assert f.cache_info().misses <= 3, f.cache_info()


def test_nothing_behind_the_last_row_is_read():
    f = jt.jit(lambda x: (softmax(x), x.sum(), x.T @ x, mlp(x)), dynamic={"x": {0: None}})
    f(rows_of(4))
    for n in (3, 17, 100):
        whole = np.full((n + 40, 6), np.nan, np.float32)
        whole[20 : 20 + n] = rows_of(n)
        before = whole.copy()
        results = f(whole[20 : 20 + n])
        assert all(np.isfinite(r).all() for r in results)
        np.testing.assert_array_equal(whole, before)
    assert f.cache_info().misses == 1


@pytest.mark.skipif(sys.platform != "linux", reason="pages that may not be read")
def test_nothing_outside_of_an_array_is_touched():
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 4 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for k in (0, 3):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + k * page), page, 0) == 0
    between = np.frombuffer(memory, np.float32)[page // 4 : 3 * page // 4]
    jitted = [jt.jit(f, dynamic={"x": {0: "n"}}) for f in (neighbours, turned_round, places)]
    for n in (2, 3, 7, 64, 301):
        for x in (between[: 6 * n].reshape(n, 6), between[-6 * n :].reshape(n, 6)):
            x[...] = rows_of(n)
            for f in jitted:
                same(f(x), f.__wrapped__(x))
    assert all(f.cache_info().misses == 1 for f in jitted)


def test_lengths_of_nothing_and_places_that_are_not_there():
    f = jt.jit(lambda x, i: x[i] + x[1:].sum(), dynamic={"x": {0: "n"}})
    for n in (5, 1, 9, 2, 0):
        x = np.arange(float(n))
        for i in (0, n - 1, -n, n, -n - 1):
            if -n <= i < n:
                assert f(x, i) == x[i] + x[1:].sum()
            else:
                with pytest.raises(IndexError):
                    f(x, i)


@pytest.mark.parametrize(
    "dtype", [np.float64, np.int64, np.int8, np.bool_, np.complex64, np.float16]
)
def test_dtypes(dtype):
    f = jt.jit(lambda x: (x + x, x.sum(axis=0), x[:, 0] * x[:, 1]), dynamic={"x": {0: "n"}})
    for n in (3, 1, 40, 0, 129):
        x = (rows_of(n, np.float64) * 9).astype(dtype)
        same(f(x), (x + x, x.sum(axis=0), x[:, 0] * x[:, 1]))
    assert f.cache_info().misses == 1


def test_vectors_and_several_lengths():
    f = jt.jit(
        lambda x, y: (2 * x + 1, x.sum() + y.sum(), y * y), dynamic={"x": {0: "n"}, "y": {0: "m"}}
    )
    for n, m in ((3, 4), (4, 3), (0, 7), (100, 1), (9000, 2), (2, 9000)):
        x, y = np.arange(n) / 7, np.arange(m) / 3
        same(f(x, y), (2 * x + 1, x.sum() + y.sum(), y * y))
    assert f.cache_info().misses <= 3  # above some thousands it is another program


def test_lengths_that_must_agree():
    f = jt.jit(lambda x, y: x + y, dynamic={"x": {0: "n"}, "y": {0: "m"}})
    for n in (3, 8, 2):
        same(f(np.ones(n), np.arange(n)), np.ones(n) + np.arange(n))
    with pytest.raises(ValueError):
        f(np.ones(3), np.ones(4))
    same(f(np.ones(1), np.ones(5)), np.full(5, 2.0))  # NumPy broadcasts it
    same(f(np.ones(5), np.ones(1)), np.full(5, 2.0))


def test_gradients():
    def loss(w, x, y):
        return ((np.tanh(x @ w) - y) ** 2).mean()

    step = jt.jit(jt.value_and_grad(loss), dynamic={"x": {0: "batch"}, "y": {0: "batch"}})
    each = jt.jit(jt.value_and_grad(loss))
    for n in (4, 9, 2, 50):
        x, y = rows_of(n), rows_of(n, seed=1)[:, :1] + np.zeros(32, np.float32)
        same(step(W1, x, y), each(W1, x, y))
    assert step.cache_info().misses == 1


def test_found_by_itself():
    f, each = jt.jit(softmax, dynamic="auto"), jt.jit(softmax)
    for n in np.random.default_rng(0).integers(0, 400, 200):
        if n:
            same(f(rows_of(n)), softmax(rows_of(n)))
    assert f.cache_info().misses == 3
    assert "the third size" in f.explain_recompile()
    assert "n0" in str(f.cache_info())
    np.testing.assert_array_equal(f(rows_of(37)), each(rows_of(37)))


def test_axes_that_change_together_share_a_length():
    f = jt.jit(lambda x, y, w: (x * y) @ w, dynamic="auto")
    w = np.ones((6, 2), np.float32)
    for n in (3, 5, 8, 13, 1):
        same(f(rows_of(n), rows_of(n, seed=1), w), (rows_of(n) * rows_of(n, seed=1)) @ w)
    assert f.cache_info().misses == 3
    with pytest.raises(ValueError):
        f(rows_of(3), rows_of(4), w)
    same(f(rows_of(4), rows_of(1), w), (rows_of(4) * rows_of(1)) @ w)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: x.reshape(x.shape[0], 2, 3), "view"),
        (lambda x: x - x[:1], "length of 1"),
        (lambda x: x[1:3] + x[-1:], "length of 1"),
        (lambda x: x.reshape(-1, 3) + 1, ""),
        (lambda x: np.linalg.inv(x @ x.T + np.eye(len(x))), ""),
    ],
)
def test_what_cannot_be_is_compiled_for_each_size(function, why):
    f = jt.jit(function, dynamic={"x": {0: "n"}})
    for n in (4, 6, 8, 6):
        same(f(rows_of(n)), function(rows_of(n)))
    if why:
        assert why in f.explain_recompile()


def test_refused_again_with_a_number_that_is_compiled_in():
    f = jt.jit(lambda x, k: np.zeros(k) + np.sort(x, axis=0)[0, 0], dynamic={"x": {0: "n"}})
    for n in (4, 6, 9):
        same(f(rows_of(n), 3), np.zeros(3) + rows_of(n)[:, 0].min())


def test_assignment_to_arguments():
    @jt.jit(dynamic={"x": {0: "n"}})
    def f(x):
        x *= 2

    for n in (3, 4, 5):
        x = rows_of(n)
        f(x)
        same(x, 2 * rows_of(n))
    assert "assigns to an argument" in f.explain_recompile()


def test_arguments_that_are_given_up():
    f = jt.jit(lambda x: np.tanh(x) + 1, dynamic={"x": {0: "n"}}, donate_argnums=0)
    for n in (3, 0, 1, 40, 3):
        same(f(rows_of(n)), np.tanh(rows_of(n)) + 1)
        same(f(rows_of(n)[:, ::-1]), np.tanh(rows_of(n)[:, ::-1]) + 1)
    assert f.cache_info().misses == 1


def test_training_in_place():
    class Counter:
        rows = 0

    counter = Counter()

    @jt.jit(dynamic={"x": {0: "n"}, "y": {0: "n"}})
    def step(weights, x, y):
        def loss(weights):
            return ((np.tanh(x @ weights["w"]) @ weights["v"] - y) ** 2).mean()

        value, slope = jt.value_and_grad(loss)(weights)
        for name in weights:
            weights[name] -= np.float32(0.1) * slope[name]
        counter.rows += x.shape[0]
        return value

    def plain(weights, x, y):
        h = np.tanh(x @ weights["w"])
        d = h @ weights["v"] - y
        g = 2 * d / d.size
        slope = {"w": x.T @ ((g @ weights["v"].T) * (1 - h * h)), "v": h.T @ g}
        for name in weights:
            weights[name] -= np.float32(0.1) * slope[name]
        return (d**2).mean()

    weights = {"w": W1.copy(), "v": W2[:, :1].copy()}
    others = {name: w.copy() for name, w in weights.items()}
    rows = 0
    for n in (8, 3, 40, 2, 17, 3, 3):
        x, y = rows_of(n), rows_of(n, seed=1)[:, :1]
        same(step(weights, x, y), plain(others, x, y))
        rows += n
        assert counter.rows == rows
        for name in weights:
            np.testing.assert_allclose(weights[name], others[name], rtol=1e-3, atol=1e-4)
    assert step.cache_info().misses == 1, step.cache_info()
    # What is written and what is read may lie side by side, or share memory.
    memory = np.zeros(2000, np.float32)
    weights["w"], x = memory[:192].reshape(6, 32), memory[192:240].reshape(8, 6)
    x[:], weights["w"][:] = rows_of(8), W1
    others = {"w": W1.copy(), "v": weights["v"].copy()}
    same(step(weights, x, rows_of(8)[:, :1]), plain(others, rows_of(8), rows_of(8)[:, :1]))
    np.testing.assert_allclose(weights["w"], others["w"], rtol=1e-3, atol=1e-4)


def test_an_argument_is_returned_as_it_came():
    f = jt.jit(lambda x: (x, x + 1), dynamic={"x": {0: "n"}})
    for n in (3, 4):
        x = rows_of(n)
        assert f(x)[0] is x


def test_arguments_in_containers_and_closures():
    bias = np.arange(4, dtype=np.float32)

    @jt.jit(dynamic={"batch": {0: "n"}})
    def f(params, batch):
        return {"y": batch["x"] @ params["w"] + bias, "m": batch["mask"].sum()}

    params = {"w": np.ones((6, 4), np.float32)}
    for n in (3, 8, 1, 70):
        batch = {"x": rows_of(n), "mask": rows_of(n)[:, 0] > 0}
        got = f(params, batch)
        same(got["y"], batch["x"] @ params["w"] + bias)
        assert got["m"] == batch["mask"].sum()
    bias += 1
    same(f(params, batch)["y"], batch["x"] @ params["w"] + bias)
    assert f.cache_info().misses == 1


def test_large_results_and_threads():
    f = jt.jit(lambda x: (np.exp(x), x @ W1), dynamic={"x": {0: "n"}})
    for n in (20_000, 131_000, 3, 200_000):
        x = rows_of(n)
        same(f(x), (np.exp(x), x @ W1))
    assert f.cache_info().misses <= 3


@pytest.mark.parametrize(
    ("dynamic", "error"),
    [("maybe", TypeError), ({"x": {1: "n"}}, ValueError), (3, TypeError)],
)
def test_wrong_options(dynamic, error):
    with pytest.raises(error, match="dynamic"):
        jt.jit(softmax, dynamic=dynamic)
    assert jt.jit(softmax, dynamic=False)(rows_of(3)).shape == (3, 6)


def test_looking_at_a_call_shows_its_program():
    f = jt.jit(softmax, dynamic="auto")
    for n in (3, 4):
        assert f"f32[{n},6]" in str(f.lower(rows_of(n)).graph)
        f(rows_of(n))
    assert "%n0: i64[]" in str(f.lower(rows_of(5)).graph)
    assert "%n0: i64[]" in str(f.lower(rows_of(7)).graph)  # which counts as no call
    assert "f32[3,6]" in str(f.lower(rows_of(3)).graph)
    f(rows_of(5))
    assert f.explain(rows_of(5)).kernels
    assert f.cache_info()[:2] == (0, 3)
    g = jt.jit(lambda x: np.sort(x, axis=0), dynamic={"x": {0: "n"}})
    assert "f32[5,6]" in str(g.lower(rows_of(5)).graph)  # compiled for each size
    h = jt.jit(softmax, dynamic={"x": {0: "n"}})
    assert "%n: i64[]" in str(h.lower(rows_of(5)).graph)
    assert "any length up to 8419" in str(h.explain(rows_of(5)))


def test_ahead_of_time():
    any_rows, weights = jt.ShapeDtype(("batch", 6), np.float32), jt.ShapeDtype((6, 32), np.float32)
    f = jt.jit(lambda x, w: np.tanh(x @ w))
    assert "%batch: i64[]" in str(f.lower(any_rows, weights).graph)
    assert f(rows_of(3), W1).shape == (3, 32)
    assert f.cache_info().misses == 1  # what is only looked at changes nothing
    g = jt.jit(lambda x, w: np.tanh(x @ w))
    g.compile((jt.ShapeDtype((None, 6), np.float32), weights))
    for n in (3, 4, 50):
        same(g(rows_of(n), W1), np.tanh(rows_of(n) @ W1))
    assert g.cache_info()[:2] == (3, 1)
    h = jt.jit(softmax, dynamic={"x": {0: "n"}})
    h.compile((jt.ShapeDtype((8, 6), np.float32),))
    same(h(rows_of(5)), softmax(rows_of(5)))
    assert h.cache_info().misses == 1
    backwards = jt.jit(lambda x: np.sort(x, axis=0))
    for ask in (lambda: backwards.lower(any_rows), lambda: backwards.compile((any_rows,))):
        with pytest.raises(jt.errors.DynamicShapeError, match="any length"):
            ask()
    for ask in (jt.eval_shape, jt.cost):
        with pytest.raises(jt.errors.DynamicShapeError, match="any length"):
            ask(softmax, any_rows)
    with pytest.raises(jt.errors.ArgumentError, match="first axis may have any length"):
        jt.ShapeDtype((6, None))
    for wrong in (None, "float32"):
        with pytest.raises(jt.errors.ArgumentError, match="is no shape"):
            jt.ShapeDtype(wrong)
    assert repr(any_rows) == "ShapeDtype(('batch', 6), float32)"
    assert (
        any_rows == jt.ShapeDtype(("batch", 6), np.float32) != jt.ShapeDtype((None, 6), np.float32)
    )
