"""Light reductions over rows: a few rows are walked together, and no row's result depends on it."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt
from jitney.runtime.native.host import host_target
from jitney.runtime.threads import pool

RESULTS = {
    "sum": lambda x, v: x.sum(axis=1, dtype=x.dtype),
    "max": lambda x, v: x.max(axis=1),
    "product": lambda x, v: x @ v,
    "rows": lambda x, v: (x * x[::-1]).sum(axis=1, dtype=x.dtype),
    "any": lambda x, v: (x > v).any(axis=1),
    "two": lambda x, v: (x.min(axis=1), x.max(axis=1)),
    "after": lambda x, v: x / x.sum(axis=1, dtype=x.dtype, keepdims=True),
    "running sum": lambda x, v: x.cumsum(axis=1, dtype=x.dtype),
    "running least": lambda x, v: np.minimum.accumulate(x * v, axis=1),
    "running two": lambda x, v: (x.cumsum(1, dtype=x.dtype), np.cumprod(x / 300, 1, dtype=x.dtype)),
    "root": lambda x, v: np.sqrt((x * x).sum(axis=1, dtype=x.dtype)) + v[0],
}


def bits(f, *arrays) -> list[bytes]:
    got = f(*arrays)
    return [a.tobytes() for a in (got if isinstance(got, tuple) else (got,))]


def data(rows: int, columns: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(rows)
    x, v = random.integers(-40, 90, (rows, columns)), random.integers(-9, 9, columns)
    return (x + 200).astype(dtype), v.astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("name", RESULTS)
def test_as_numpy_and_for_any_number_of_threads(name, dtype):
    if dtype == "i4" and name in ("after", "root", "running two"):
        pytest.skip("of floats only")
    f = RESULTS[name]
    x, v = data(407, 1003, dtype)
    compiled = jt.jit(f)
    before = pool.get_threads()
    try:
        found = []
        for threads in (1, 2, 3):
            pool.set_threads(threads)
            found.append(bits(compiled, x, v))
    finally:
        pool.set_threads(before)
    assert found[0] == found[1] == found[2]
    got, want = compiled(x, v), f(x, v)
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("rows", [1, 2, 3, 15, 16, 17, 18, 19, 260])
def test_a_row_is_summed_as_if_it_were_alone(rows):
    random = np.random.default_rng(rows)
    x = random.standard_normal((rows, 20_000), dtype=np.float32)
    f = jt.jit(lambda x: x.sum(axis=1))
    reference = jt.jit(lambda x: x.sum(axis=1))
    same = np.repeat(x[:1], 64, axis=0)  # 64 equal rows: all places in a group
    assert len(set(f(same).tolist())) == 1
    shuffled = random.permutation(rows)
    np.testing.assert_array_equal(f(x)[shuffled], reference(np.ascontiguousarray(x[shuffled])))


def test_strides_and_values_beyond_numbers():
    x, v = data(301, 2048, "f4")
    x[5, 7], x[6, 9], x[7, 2047] = np.nan, np.inf, -np.inf
    for view in (x[::-1], x[1::3, 5:1500], x[:, ::-1], np.broadcast_to(x[5], (300, 2048))):
        w = v[: view.shape[1]]
        for name in ("sum", "max", "product", "rows"):
            got, want = jt.jit(RESULTS[name])(view, w), RESULTS[name](view, w)
            np.testing.assert_allclose(got, want, rtol=2e-4)


def test_several_outer_axes():
    x = np.random.default_rng(0).standard_normal((7, 37, 3, 500))[:, 1:, ::2]
    got = jt.jit(lambda x: x.sum(axis=3).transpose(1, 0, 2))(x)
    np.testing.assert_allclose(got, x.sum(axis=3).transpose(1, 0, 2), atol=1e-11)


@pytest.mark.parametrize("cpu", ["native", "avx2"])  # the latter fetches ahead on any machine
def test_the_last_nest_of_a_row_fetches_the_next_row(cpu):
    def softmax(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    x = np.random.default_rng(0).normal(size=(300, 1003)).astype("f4")
    with jt.config(cpu=cpu):
        f = jt.jit(softmax)
        assert ("prefetch" in f.lower(x).llvm()) == (cpu == "avx2" or host_target().fetches_ahead)
        assert "prefetch" not in f.lower(x[:16]).llvm()
        for part in (x, x[::-1], x[:, ::-1], x.T.copy().T):
            np.testing.assert_allclose(f(part), softmax(part), rtol=2e-5)


def test_several_sums_of_much_work_leave_registers_to_the_work():
    def forces(x, mass):
        d = x[None] - x[:, None]
        squares = (d * d).sum(axis=2) + 1e-2
        return (d * (mass / (squares * np.sqrt(squares)))[..., None]).sum(axis=1)

    random = np.random.default_rng(0)
    x, mass = random.normal(size=(300, 3)).astype("f4"), random.random(300).astype("f4")
    f = jt.jit(forces)
    lanes = 2 * host_target().lanes(4)
    notes = [k.note for k in f.lower(x, mass).executable.module.kernels]
    assert any(f"{lanes} lanes over the inner loop" in note for note in notes), notes
    np.testing.assert_allclose(f(x, mass), forces(x, mass), rtol=1e-3, atol=1e-3)
