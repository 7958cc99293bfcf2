"""The benchmarks measure what they say: answers are checked, and a wrong one is seen."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitney

ROOT = Path(jitney.__file__).resolve().parent


@pytest.fixture(scope="module")
def benchmarks():
    sys.path.insert(0, str(ROOT))
    try:
        import benchmarks.report
        import benchmarks.rows

        yield benchmarks
    finally:
        sys.path.remove(str(ROOT))


def flat(inputs):
    from benchmarks.rows import as_list

    return [a for part in inputs for a in as_list(part)]


def test_inputs_are_the_same_every_time(benchmarks):
    for row in benchmarks.rows.ROWS.values():
        for a, b in zip(flat(row.inputs(True)), flat(row.inputs(True)), strict=True):
            assert a.dtype.kind != "f" or a.dtype == row.dtype
            np.testing.assert_array_equal(a, b)


def test_error_sees_what_is_wrong(benchmarks):
    row = benchmarks.rows.ROWS["softmax"]
    inputs = row.inputs(True)
    want = row.reference(inputs)
    right = row.program(*inputs)
    assert right.dtype == np.float32 and row.error(right, want) < 1
    assert row.error(right[:-1], want) == math.inf
    assert row.error((right, right), want) == math.inf
    off = right.copy()
    off[0, 0] += 0.01
    assert row.error(off, want) > 1
    off[0, 0] = np.nan
    assert not row.error(off, want) <= 1
    exact = benchmarks.rows.ROWS["argmax"]
    want = exact.reference(exact.inputs(True))
    assert exact.error(want[0], want) == 0 and exact.error(want[0] + 1, want) == math.inf


def test_numpy_programs_leave_their_inputs_alone_and_agree(benchmarks):
    for row in benchmarks.rows.ROWS.values():
        inputs = row.inputs(True)
        kept = [a.copy() for a in flat(inputs)]
        assert row.error(row.program(*inputs), row.reference(inputs)) < 1, row.name
        for a, b in zip(flat(inputs), kept, strict=True):
            np.testing.assert_array_equal(a, b)


def test_jitney_agrees_on_every_row(benchmarks):
    from benchmarks.frameworks import use_jitney

    assert set(use_jitney.ROWS) == {row.implementation for row in benchmarks.rows.ROWS.values()}
    for row in benchmarks.rows.ROWS.values():
        inputs = row.inputs(True)
        function, arguments = use_jitney.prepare(row, inputs)
        assert row.error(function(*arguments), row.reference(inputs)) < 1, row.name


def test_seconds_are_readable(benchmarks):
    shown = [benchmarks.report.seconds(s) for s in (2.5, 0.00241, 1.4e-7)]
    assert shown == ["2.5 s", "2.41 ms", "140 ns"]


def test_the_bounds_of_the_machine_bound(benchmarks):
    from benchmarks import machine

    limits = {
        "bandwidth": {"read": {"1000": 8.0, "268435456": 2.0}},
        "flops": {"float32": 10.0},
    }
    assert machine.least_seconds(limits, 16.0, 1000, None, "float32") == 2
    assert machine.least_seconds(limits, 16.0, 1e6, 100.0, "float32") == 10
    assert machine.least_seconds(limits, None, 0, None, "float32") is None


def test_the_machine_is_measured(benchmarks, monkeypatch):
    from benchmarks import machine

    monkeypatch.setattr(machine, "SIZES", (1 << 19,))
    found = machine.measure(1)
    assert found["bandwidth"]["read"][1 << 19] > 1e8 and found["flops"]["float64"] > 1e8


def test_a_run_compares_and_checks(tmp_path):
    output = tmp_path / "out" / "result.json"
    rows = "call_1,softmax,black_scholes_f64,heat,dense"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--check", "-f", "jitney,numpy", "-r", rows]
        + ["-o", str(output)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(output.read_text())["rows"]
    assert list(found) == rows.split(",")
    for cells in found.values():
        assert cells["jitney"]["median"] > 0 and cells["numpy"]["median"] > 0
    assert "Geometric mean" in done.stdout


def test_loading_has_all_rows(benchmarks):
    from benchmarks import loading

    found = loading.measure([loading.jitney], 200, 1)
    assert len(found) == 7 and all(cells["jitney"] > 0 for cells in found.values())


def test_latency_of_a_fresh_process(benchmarks, monkeypatch):
    from benchmarks import latency

    monkeypatch.setattr(latency, "CASES", ("affine",))
    found = latency.compare(["jitney"], repeats=1)["jitney"]["cases"]
    assert all(case["first"] > 0 and case["cached"] > 0 for case in found.values()), found


def test_pages_show_the_kept_results(benchmarks):
    """The table of docs/reference/speed.md and the README's picture are made of the newest results."""
    results = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    if not results:
        pytest.skip("no results are kept")
    run = json.loads(results[-1].read_text())
    page = (ROOT / "docs" / "reference" / "speed.md").read_text()
    section = benchmarks.report.page_section(run)
    assert benchmarks.report.with_section(page, section) == page
    from benchmarks import picture

    assert picture.PICTURE.read_text() == picture.drawn(run)


def test_unknown_row_is_refused():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "-r", "nonsense"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 1 and "nonsense" in done.stderr and "softmax" in done.stderr


def test_kernels_of_loops_answer_as_python_does(benchmarks):
    from benchmarks.kernels import KERNELS

    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS) >= 40
    for kernel in KERNELS[::7]:
        args = kernel.make(np.random.default_rng(0), kernel.sizes[0])
        mine, theirs = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in "ab")
        compiled = jitney.jit(kernel.function, autograph=True, static_argnums=kernel.static)
        found, wanted = compiled(*mine), kernel.function(*theirs)
        for a, b in zip((found, *mine), (wanted, *theirs), strict=True):
            if b is not None:
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=kernel.name)


def test_programs_with_containers_give_what_python_gives(benchmarks):
    from benchmarks.containers import PROGRAMS, copied, same

    assert not same((1, 2), (1, 3))
    for function, make in PROGRAMS:
        args = make(np.random.default_rng(1))
        assert same(jitney.jit(function)(*copied(args)), function(*copied(args))), function.__name__


def test_training_steps_agree_and_wrong_losses_have_no_time(benchmarks):
    from benchmarks.training.__main__ import judge, ratios
    from benchmarks.training.columns import load, prepare
    from benchmarks.training.steps import STEPS

    for name in [name for name in STEPS if name != "adam_256"]:
        cells = {column: prepare(load(column), name, True)[0] for column in ("jitney", "by hand")}
        judge(cells)
        assert not any("reason" in cell for cell in cells.values()), cells
    cells["numpy"] = dict(cells["jitney"])
    cells["torch"] = {"losses": [1.01 * loss for loss in cells["jitney"]["losses"]]}
    cells["jax"] = {"losses": cells["jitney"]["losses"][::-1]}
    judge(cells)
    assert [column for column, cell in cells.items() if "reason" in cell] == ["torch", "jax"]
    times = {"jitney": 2.0, "by hand": 1.6, "jax": 3.0}
    assert ratios({k: {"least": t} for k, t in times.items()}) == (1.5, 1.25)


def test_problems_are_solved_as_exactly_as_they_say(benchmarks):
    from benchmarks.solving import use_jitney
    from benchmarks.solving.problems import TOLERANCE, problems

    found = problems()
    assert found.keys() == use_jitney.FORMS.keys() and len(found) >= 10
    for name in ("cg", "fit", "linear_grad"):
        problem = found[name]
        answer = use_jitney.ready(name, problem.inputs, TOLERANCE)()
        assert problem.error(answer) < problem.allowed, name
        assert problem.error(answer * 1.001) > problem.allowed, name
        assert problem.error(answer[:-1]) == math.inf


def test_a_second_process_trains_sooner(benchmarks, tmp_path, monkeypatch):
    from benchmarks.training import second_process

    monkeypatch.setattr(second_process, "RUNS", 1)
    first, second = second_process.measure("gru", str(tmp_path))
    assert 0 < second < first
