"""Compiled functions and modules in other processes: cloudpickle, multiprocessing, joblib, dask."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitney as jt

cloudpickle = pytest.importorskip("cloudpickle")
SCALE = 3.0


@jt.jit
def by_name(x: Any) -> Any:
    return np.sin(x).sum() * SCALE


@jt.custom_vjp
def doubled(x: Any) -> Any:
    return 2 * x


doubled.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct,))


def branching(x: Any) -> Any:
    """Autograph needs its source, which cloudpickle does not send."""
    total = 0.0
    for value in x:
        if value > 1:
            total += value
    return total


WEIGHTS = np.arange(3.0)
COMM = jt.distributed.init("alone")
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "name": by_name,
    "closure": jt.jit(lambda x, w=WEIGHTS: x * w),
    "grad": jt.jit(jt.grad(lambda x: (x**2).sum())),
    "eager grad": jt.grad(lambda x: (x**2).sum()),
    "value and grad": jt.value_and_grad(jt.jit(lambda x: np.exp(x).sum())),
    "vmap": jt.jit(jt.vmap(lambda x: x / jt.psum(x, "i"), axis_name="i")),
    "jvp": lambda x: jt.jvp(jt.jit(np.sin), (x,), (x,))[1],
    "hessian": jt.hessian(lambda x: (x**3).sum()),
    "custom": jt.jit(lambda x: jt.grad(lambda x: doubled(x).sum())(x)),
    "checkpoint": jt.jit(jt.checkpoint(lambda x: np.cos(x))),
    "loops": jt.jit(lambda x: jt.fori_loop(0, 3, lambda k, c: c * x, x)),
    "communicator": jt.jit(lambda x: COMM.all_reduce(x)),
    "branches": jt.jit(lambda x: branching(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_pickled(name: str) -> None:
    function, x = FUNCTIONS[name], np.array([1.0, 2.0, 3.0])
    before = cloudpickle.loads(cloudpickle.dumps(function))  # never called
    want = function(x)
    after = cloudpickle.loads(cloudpickle.dumps(function))
    for other in (before, after):
        for a, b in zip(jt.tree.leaves(other(x)), jt.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(a, b)
    if name == "name":
        assert pickle.loads(pickle.dumps(by_name)) is by_name


def test_modules_and_optimisers_are_pickled() -> None:
    model = jt.nn.Sequential(jt.nn.Linear(3, 4, rng=np.random.default_rng(0)), jt.nn.BatchNorm(4))
    x = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    model(x)
    step = jt.jit(lambda model, x: model(x).sum())
    other, again = pickle.loads(pickle.dumps(model)), cloudpickle.loads(cloudpickle.dumps(step))
    np.testing.assert_array_equal(again(other, x), step(model, x))


def test_a_part_of_a_job_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="means nothing in another process"):
        pickle.dumps(jt.distributed.Communicator("world/1", COMM.members))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_pools_of_processes(start: str) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip("not here")
    xs = [np.ones(3), np.arange(4.0)]
    want = [by_name(x) for x in xs]
    with multiprocessing.get_context(start).Pool(1) as pool:
        assert pool.map(by_name, xs) == want
        other = pool.apply(cloudpickle.loads, (cloudpickle.dumps(FUNCTIONS["name"]),))
    assert other is by_name


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(backend: str) -> None:
    joblib = pytest.importorskip("joblib")
    f = FUNCTIONS["closure"]
    tasks = (joblib.delayed(f)(np.full(3, i)) for i in range(3))
    for i, got in enumerate(joblib.Parallel(n_jobs=2, backend=backend)(tasks)):
        np.testing.assert_array_equal(got, i * WEIGHTS)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask(scheduler: str) -> None:
    array = pytest.importorskip("dask.array")
    x = np.arange(24.0).reshape(6, 4)
    blocks = array.from_array(x, chunks=(2, 4)).map_blocks(
        jt.jit(lambda b: np.exp(b / 10) - b.mean()), dtype=x.dtype
    )
    got = blocks.compute(scheduler=scheduler, num_workers=2)
    np.testing.assert_allclose(got, np.exp(x / 10) - x.reshape(3, 8).mean(1).repeat(2)[:, None])


MAIN = """
import sys, cloudpickle, numpy as np, jitney as jt

def helper(x):
    total = 0.0
    for v in x:
        if v > 1:
            total += v
    return total

@jt.jit
def f(x):
    return helper(x) if x.sum() > 3 else -1.0

open(sys.argv[1], "wb").write(cloudpickle.dumps([f, jt.jit(lambda x: helper(x) if x[0] > 0 else 0.0)]))
"""


@pytest.mark.parametrize("moved", [False, True])
def test_programs_send_what_they_define_with_its_source(moved: bool, tmp_path: Path) -> None:
    """Where the file is not, or has changed, too."""
    program, data = tmp_path / "program.py", tmp_path / "data"
    program.write_text(MAIN)
    subprocess.run([sys.executable, program, data], check=True)
    if moved:
        program.write_text("# another one\n" * 40)
    f, g = pickle.loads(data.read_bytes())
    x = np.arange(4.0)
    assert (f(x), f(x / 4), g(x + 1)) == (5.0, -1.0, 9.0)
    with pytest.raises(ValueError, match=r"program.*:7: the truth value"):
        f(np.ones((2, 2)))
