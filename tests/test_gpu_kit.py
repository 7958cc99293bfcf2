"""The GPU kit (benchmarks/gpu) runs without a GPU, and outlives items that do not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import jitney

ROOT = Path(jitney.__file__).resolve().parent


@pytest.fixture
def process():
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.gpu import process

        yield process
    finally:
        sys.path.remove(str(ROOT))


STAGE = """
import os, time

def stage(options, writer):
    assert options["word"] == "given"
    yield "good", lambda: {"value": 1}
    yield "bad", lambda: 1 // 0
    yield "deadly", lambda: os.abort()
    yield "endless", lambda: time.sleep(100)
    yield "last", lambda: {"value": 2}
"""


def test_an_item_that_dies_or_hangs_costs_that_item(process, tmp_path, monkeypatch):
    package = tmp_path / "benchmarks" / "gpu"
    package.mkdir(parents=True)
    for name in ("__init__.py", "gpu/__init__.py"):
        (tmp_path / "benchmarks" / name).write_text("")
    source = (ROOT / "benchmarks" / "gpu" / "process.py").read_text()
    (package / "process.py").write_text(source)
    (package / "trouble.py").write_text(STAGE)
    monkeypatch.setattr(process, "ROOT", tmp_path)
    saved = []
    found = process.run("trouble", {"word": "given"}, 60, 1.5, lambda r: saved.append(len(r)))
    assert found["good"]["value"] == 1 and found["last"]["value"] == 2
    assert found["bad"]["error"].startswith("ZeroDivisionError") and found["bad"]["traceback"]
    assert "died" in found["deadly"]["error"] and found["deadly"]["lost"]
    assert "took too long" in found["endless"]["error"]
    assert list(found) == ["good", "bad", "deadly", "endless", "last"] and saved[-1] == 5


def test_the_time_of_a_stage_is_limited(process, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "ROOT", tmp_path)
    found = process.run("nothing", {}, 5)
    assert "No module named" in found["the process"]["error"]


def test_the_kit_runs_on_the_emulated_device(tmp_path):
    command = [sys.executable, "-m", "benchmarks.gpu", "--emulate", "-r", "call_1"]
    done = subprocess.run(
        [*command, "-s", "first_light,tests,speed", "-o", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.glob("*.json")
    run = json.loads(path.read_text())
    stages = run["stages"]
    assert stages["first_light"]["device"]["emulated"] and run["commit"]
    assert len(stages["first_light"]["call_1"]["modules"]) == 1
    assert len(stages["tests: test_cuda_kernels.py"]) >= 2
    cell = stages["speed"]["call_1"]["cells"]["jitney"]
    assert cell["error_of_tolerated"] <= 1 and cell["median"] > 0 and cell["device"] > 0
    errors = [r for found in stages.values() for r in found.values() if "error" in r]
    assert not errors
    written = path.with_suffix(".md").read_text()
    assert "| call_1" in written and "What failed" not in written


def test_without_a_gpu_it_says_so_and_stops(tmp_path):
    command = [sys.executable, "-m", "benchmarks.gpu", "--quick", "-r", "call_1", "-o"]
    code = "import jitney.runtime.cuda.driver as d; d.devices()"
    if not subprocess.run([sys.executable, "-c", code], capture_output=True).returncode:
        pytest.skip("there is a GPU")
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and "no NVIDIA driver here" in done.stdout
    (path,) = tmp_path.glob("*.json")
    assert list(json.loads(path.read_text())["stages"]) == ["first_light"]


def test_the_table_shows_what_a_run_found(process):
    from benchmarks.gpu import report

    cells = {"jitney": {"median": 1e-3, "device": 9e-4}, "torch": {"median": 2e-3}}
    row = {"dtype": "float32", "traffic": 1.8e9, "flops": None, "cells": cells}
    failing = {"error": "AssertionError: no", "lost": True}
    log = {"log": "========= ERROR SUMMARY: 3 errors\n"}
    run = {
        "title": "A GPU",
        "commit": "abc",
        "date": "2026-01-01",
        "seconds": {},
        "stages": {
            "tests: memcheck": {"test_a": {}, "test_b": failing, "the log": log},
            "sweeps": {
                "exp float32": {"different": 2, "ulp": 1.0, "at": [0.5], "error": "2 differ"}
            },
            "speed": {"ceilings": {"copy_bytes_per_second": 4e12}, "axpb": row},
        },
    }
    text = report.markdown(run)
    speed = next(line for line in text.splitlines() if line.startswith("| axpb"))
    assert "2.00x" in speed and "50%" in speed and "| 900 us |" in speed
    assert "memcheck: ERROR SUMMARY: 3 errors" in text
    assert "- AssertionError: no: 1 items, first `tests: memcheck test_b`" in text
    assert "4000 GB/s" in text and "| exp float32" in text
