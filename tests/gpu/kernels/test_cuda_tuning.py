"""Choosing kernels by measuring: the fastest is taken and remembered, and any choice is right."""

from __future__ import annotations

import re
from pathlib import Path

import emulated
import numpy as np
import pytest
from emulated import compiled, run
from gpu import emulator_only
from programs import build, centre_columns, expected, same, sample, softmax

import jitney as jt
from jitney import config
from jitney.codegen.cuda.program import without_outputs
from jitney.codegen.cuda.tuning import Chooser, Fixed
from jitney.codegen.device.compile import compile_device
from jitney.ir.passes import optimise
from jitney.runtime.cache.disk import disk_cache
from jitney.runtime.cuda import tuner
from jitney.runtime.cuda.client import client_of, device_program
from jitney.runtime.cuda.execute import DeviceExecutable
from jitney.runtime.cuda.library import OUT_OF_MEMORY, DeviceError
from jitney.runtime.cuda.memory import context_pool
from jitney.runtime.cuda.tuner import Tuner


class Nth(Chooser):
    """Takes the n-th way of everything, and keeps the trials of all."""

    wants_all = True

    def __init__(self, n: int = 0) -> None:
        self.n = n
        self.families: dict[str, list[str]] = {}
        self.trials = []

    def choose(self, family, what, ways, trial):
        assert len(ways) == len(set(ways)) and what
        self.families.setdefault(family, []).append(next(iter(ways)))
        self.trials += [trial(way) for way in list(ways.values())[:2]]
        return list(ways.values())[self.n % len(ways)]


def dot(b, x, y):
    return b.op("dot", x, y, contract=((len(x.shape) - 1,), (0,)), batch=((), ()))


def dense(b, x, y):
    return b.tanh(dot(b, x, y))


def attend(b, q, k, v):
    y, _ = b.op("attention", q, k, v, scale=0.25, causal=True)
    return y


CASES = [
    (dense, [(70, 40), (40, 50)]),
    (dot, [(20, 1100), (1100, 24)]),
    (softmax, [(9, 100)]),
    (softmax, [(3, 3000)]),
    (centre_columns, [(300, 40)]),
    (lambda b, x: b.tanh(b.mul(x, x)), [(3000,)]),
    (lambda b, x: b.op("cumsum", x, axis=1, reverse=False), [(300, 8)]),
    (lambda b, x: b.op("cumsum", x, axis=0, reverse=True), [(40, 900)]),
    (attend, [(1, 20, 8)] * 3),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_all_ways_give_the_same(case):
    """But for rounding: sums may be associated otherwise."""
    function, shapes = CASES[case]
    arrays = [sample(shape, "f4", n) for n, shape in enumerate(shapes)]
    graph = optimise(build(function, *arrays))
    want, texts = expected(graph, arrays), set()
    for n in range(2 if function in (attend, dot) else 3):
        chooser = Nth(n)
        program = compile_device(graph, emulated.TARGET, chooser=chooser)
        if program.ir not in texts:
            same(run(program, arrays), want)
        texts.add(program.ir)
    assert len(texts) > 1


def test_tiles_change_no_bit():
    arrays = [sample((70, 40), "f4"), sample((40, 50), "f4", 1)]
    graph = optimise(build(dense, *arrays))
    results = [
        run(compile_device(graph, emulated.TARGET, chooser=Nth(n)), arrays)[0] for n in (0, 1, 5)
    ]
    for found in results[1:]:
        np.testing.assert_array_equal(found, results[0])


def test_without_measuring_the_model_decides():
    """And code is what it was: no trial is made."""
    arrays = [sample((70, 40), "f4"), sample((40, 50), "f4", 1)]
    graph = optimise(build(dense, *arrays))
    plain = compiled(graph, arrays)
    assert compile_device(graph, emulated.TARGET, chooser=Fixed({})).ir == plain.ir
    assert compile_device(graph, emulated.TARGET, chooser=Nth()).ir == plain.ir


@pytest.mark.usefixtures("gpu")
def test_trials_do_the_step():
    """A trial writes what the program writes, over inputs of its own."""
    arrays = [sample((70, 40), "f4"), sample((40, 50), "f4", 1)]
    graph = optimise(build(dense, *arrays))
    chooser = Nth()
    program = compile_device(graph, emulated.TARGET, chooser=chooser)
    assert list(chooser.families) == ["product"]
    client = client_of(jt.devices("cuda")[0])
    context, pool = client.context, context_pool(client.context)
    for trial in (*chooser.trials, without_outputs(program)):
        assert not trial.outputs
        given = [jt.device_put(a, "cuda") for a in arrays]
        rest = [pool.allocate(i.nbytes, client.stream) for i in trial.inputs[2:]]
        executable = DeviceExecutable(trial, context)
        addresses = [*(g.buffer.address for g in given), *(b.address for b in rest)]
        executable.run(addresses, client.stream)
        out = np.empty((70, 50), "f4")
        context.copy_out(out.ctypes.data, rest[0].address, out.nbytes, client.stream)
        context.synchronize(client.stream)
        same([out], expected(graph, arrays))


# The clock.


@pytest.fixture
def clock(gpu, monkeypatch, tmp_path):
    """Sets what kernels are said to cost. Nothing is remembered at the start."""
    monkeypatch.setattr(tuner, "_choices", {})
    monkeypatch.setattr(tuner, "EMULATED_WAYS", 2)
    library = client_of(jt.devices("cuda")[0]).context.cuda
    with config(cache_dir=str(tmp_path)):
        yield lambda cost: monkeypatch.setattr(library, "seconds_of", cost, raising=False)


def few_blocks(kernel, grid, block):
    return 1e-6 * grid[0]


def many_blocks(kernel, grid, block):
    return 1e-6 / grid[0]


def tuned(function=dense, *arrays):
    """A program that was tuned, the tile of its first kernel, and how many ways were measured."""
    client = client_of(jt.devices("cuda")[0])
    arrays = arrays or (sample((70, 40), "f4"), sample((40, 50), "f4", 1))
    chooser = Tuner(client.context, client.stream)
    graph = optimise(build(function, *arrays))
    program = device_program(graph, client.target, chooser=chooser)
    sizes = re.findall(r"tiles of (\d+) x (\d+)", program.reports[0].note)
    return program, [int(n) for n in sizes[0]] if sizes else None, chooser.measured


@emulator_only
def test_the_fastest_is_taken(clock, monkeypatch):
    monkeypatch.setattr(tuner, "EMULATED_WAYS", 3)
    clock(few_blocks)
    _, (m, n), measured = tuned()
    assert measured == tuner.EMULATED_WAYS
    tuner._choices.clear()
    clock(many_blocks)
    with config(cache=False):
        _, (fewer, less), _ = tuned()
    assert fewer * less < m * n


@emulator_only
def test_the_fastest_is_remembered(clock):
    """By this process, and on disk by another one, whatever its clock says."""
    clock(few_blocks)
    program, _, measured = tuned()
    assert measured
    clock(many_blocks)
    again, _, measured = tuned()
    assert not measured and again.ir == program.ir
    tuner._choices.clear()  # as another process begins
    again, _, measured = tuned()
    assert not measured and again.ir == program.ir
    tuner._choices.clear()
    with config(cache=False):
        again, _, measured = tuned()
    assert measured and again.ir != program.ir


@emulator_only
@pytest.mark.parametrize("content", [b"\xff", b"[1]", b'{"way": "no such"}'])
def test_a_damaged_memory_is_measured_anew(clock, content, monkeypatch):
    clock(few_blocks)
    program, _, _ = tuned()
    (entry,) = [p for e in disk_cache().entries() if b'"way"' in (p := Path(e.path)).read_bytes()]
    tuner._choices.clear()
    key = entry.stem
    if content == b"\xff":
        entry.write_bytes(content)  # not even an entry
    else:
        disk_cache().put(key, content)
    again, _, measured = tuned()
    assert measured and again.ir == program.ir
    tuner._choices.clear()
    assert not tuned()[2]


@emulator_only
def test_a_way_that_the_device_refuses_is_none(clock, monkeypatch):
    clock(few_blocks)
    make, seen = DeviceExecutable, []

    def refuse(program, context):
        seen.append(program)
        if len(seen) == 1:
            raise DeviceError("too many registers", 701)
        return make(program, context)

    monkeypatch.setattr(tuner, "DeviceExecutable", refuse)
    with config(cache=False):
        _, _, measured = tuned()
    assert measured == tuner.EMULATED_WAYS - 1


@emulator_only
def test_without_memory_the_model_decides(clock, monkeypatch):
    clock(many_blocks)

    def refuse(program, context):
        raise DeviceError("full", OUT_OF_MEMORY)

    with monkeypatch.context() as patch:
        patch.setattr(tuner, "DeviceExecutable", refuse)
        program, _, measured = tuned()
    assert not measured and not tuner._choices
    graph = optimise(build(dense, sample((70, 40), "f4"), sample((40, 50), "f4", 1)))
    client = client_of(jt.devices("cuda")[0])
    assert device_program(graph, client.target).ir == program.ir
    assert tuned()[2]  # nothing was remembered


@emulator_only
def test_other_errors_are_errors(clock, monkeypatch):
    def fail(program, context):
        raise DeviceError("lost", 700)

    monkeypatch.setattr(tuner, "DeviceExecutable", fail)
    with pytest.raises(DeviceError, match="lost"):
        tuned()


@emulator_only
def test_long_sums_are_cut_as_is_fastest(clock):
    arrays = sample((20, 1100), "f4"), sample((1100, 24), "f4", 1)
    clock(lambda kernel, grid, block: 1e-6)  # fewer kernels are better
    program, _, _ = tuned(dot, *arrays)
    assert len(program.steps) == 1
    assert len(device_program(optimise(build(dot, *arrays)), emulated.TARGET).steps) == 2


@emulator_only
def test_loops_over_what_is_in_memory_are_not_tried(clock):
    """A trial might never end."""
    roots = jt.jit(
        jt.vmap(lambda x: jt.while_loop(lambda y: y * y < x, lambda y: y + 1, x * 0)),
        device="cuda",
        autotune=True,
    )
    np.testing.assert_array_equal(np.asarray(roots(np.arange(20.0) ** 2)), np.arange(20.0))
    assert not tuner._choices


@pytest.mark.usefixtures("gpu")
def test_functions_are_tuned_when_asked(monkeypatch):
    a, b = sample((70, 40), "f4"), sample((40, 50), "f4", 1)

    def f(a, b):
        return np.tanh(a @ b)

    plain = jt.jit(f, device="cuda")
    asked = jt.jit(f, device="cuda", autotune=True)
    with config(cublas="off"):
        assert "measuring" in asked.explain(a, b) and "measuring" not in plain.explain(a, b)
    with config(cublas="off"):  # whose sums may be others
        np.testing.assert_array_equal(np.asarray(asked(a, b)), np.asarray(plain(a, b)))
    monkeypatch.setenv("JITNEY_CUBLAS", "off")
    with config(autotune=True):
        assert "measuring" in plain.explain(a, b)
        assert "measuring" not in jt.jit(f, device="cuda", autotune=False).explain(a, b)
    monkeypatch.setenv("JITNEY_AUTOTUNE", "1")
    assert "measuring" in plain.explain(a, b)
    np.testing.assert_array_equal(jt.jit(f, autotune=True)(a, b), jt.jit(f)(a, b))  # on the CPU
    with pytest.raises(ValueError, match="autotune='yes': choose True, False or None"):
        jt.jit(f, autotune="yes")
    with pytest.raises(TypeError, match="autotune is True or False"):
        config.autotune = "yes"
