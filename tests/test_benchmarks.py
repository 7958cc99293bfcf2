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


def test_inputs_are_the_same_every_time(benchmarks):
    for row in benchmarks.rows.ROWS.values():
        for a, b in zip(row.inputs(quick=True), row.inputs(quick=True), strict=True):
            assert a.dtype == np.float32
            np.testing.assert_array_equal(a, b)


def test_error_sees_what_is_wrong(benchmarks):
    row = benchmarks.rows.ROWS["softmax"]
    inputs = row.inputs(quick=True)
    want = row.reference(inputs)
    right = row.program(*inputs)
    assert right.dtype == np.float32 and row.error(right, want) < row.tolerance
    assert row.error(right[:-1], want) == math.inf
    assert row.error((right, right), want) == math.inf
    off = right.copy()
    off[0, 0] += 0.01
    assert row.error(off, want) > row.tolerance
    off[0, 0] = np.nan
    assert not row.error(off, want) <= row.tolerance


def test_numpy_programs_leave_their_inputs_alone(benchmarks):
    for row in benchmarks.rows.ROWS.values():
        inputs = row.inputs(quick=True)
        kept = [a.copy() for a in inputs]
        row.program(*inputs)
        for a, b in zip(inputs, kept, strict=True):
            np.testing.assert_array_equal(a, b)


def test_seconds_are_readable(benchmarks):
    shown = [benchmarks.report.seconds(s) for s in (2.5, 0.00241, 1.4e-7)]
    assert shown == ["2.5 s", "2.41 ms", "140 ns"]


def test_quick_run_compares_and_checks(tmp_path):
    output = tmp_path / "out.json"
    rows = "call_1,softmax,black_scholes,heat,dense"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "-f", "jitney,numpy", "-r", rows]
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
    assert "x)" in done.stdout


def test_unknown_row_is_refused():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "-r", "nonsense"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 1 and "nonsense" in done.stderr and "softmax" in done.stderr
