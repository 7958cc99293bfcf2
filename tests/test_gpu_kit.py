"""The GPU kit (benchmarks/gpu) runs without a GPU, and outlives items that do not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gpu import emulator_only

import jitney
from jitney.runtime.cuda import tuner

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
    assert set(stages["speed"]["call_1"]["cells"]) == {"jitney"}
    errors = [r for found in stages.values() for r in found.values() if "error" in r]
    assert not errors
    written = path.with_suffix(".md").read_text()
    assert "| call_1" in written and "What failed" not in written


@emulator_only
def test_products_are_done_in_several_ways(process, gpu, monkeypatch):
    from benchmarks.gpu import speed

    monkeypatch.setattr(tuner, "EMULATED_WAYS", 2)
    names = ["jitney", "jitney_cublas", "jitney_tuned"]
    bench = speed.Bench({"small": True, "frameworks": names, "row_seconds": 0.01})
    found = bench.row("matmul_4096")
    assert not bench.missing and "error" not in found
    assert list(found["cells"]) == names
    assert all(c["error_of_tolerated"] <= 1 and c["median"] > 0 for c in found["cells"].values())
    found = bench.row("call_1")
    assert list(found["cells"]) == ["jitney"]


def test_without_a_gpu_it_says_so_and_stops(tmp_path):
    command = [sys.executable, "-m", "benchmarks.gpu", "--quick", "-r", "call_1", "-o"]
    code = "import jitney.runtime.cuda.driver as d; d.devices()"
    if not subprocess.run([sys.executable, "-c", code], capture_output=True).returncode:
        pytest.skip("there is a GPU")
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and "no NVIDIA driver here" in done.stdout
    (path,) = tmp_path.glob("*.json")
    assert list(json.loads(path.read_text())["stages"]) == ["first_light"]


def test_what_is_not_installed_is_said_in_a_sentence(process, tmp_path, monkeypatch, capsys):
    import importlib

    kit = importlib.import_module("benchmarks.gpu.__main__")
    lacking = {"optree"}
    monkeypatch.setattr(kit, "find_spec", lambda name: None if name in lacking else name)
    monkeypatch.setattr(sys, "argv", ["gpu", "--emulate", "-s", "tests", "-o", str(tmp_path)])
    assert kit.main() == 1
    assert (
        "does not start here: first_light needs optree: pip install optree"
        in capsys.readouterr().out
    )
    lacking = {"hypothesis"}
    assert kit.main() == 0
    said = capsys.readouterr().out
    assert "left out: tests needs hypothesis: pip install hypothesis" in said
    (path,) = tmp_path.glob("*.md")
    assert "needs hypothesis" in path.read_text()


def test_the_table_shows_what_a_run_found(process):
    from benchmarks.gpu import report

    cells = {"jitney": {"median": 1e-3, "device": 9e-4}, "torch": {"median": 2e-3}}
    cells["jitney_cublas"] = {"median": 5e-4}
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
    assert " 500 us |" in speed  # by cuBLASLt: shown, and no peer
    assert "memcheck: ERROR SUMMARY: 3 errors" in text
    assert "- AssertionError: no: 1 items, first `tests: memcheck test_b`" in text
    assert "4000 GB/s" in text and "| exp float32" in text


def test_what_follows_does_without_warpgroups_that_fail(process, monkeypatch, capsys, tmp_path):
    from benchmarks.gpu import __main__ as kit

    asked = []

    def run(name, options, *rest):
        asked.append((name, options["environment"].get("JITNEY_CUDA_WARPGROUPS")))
        return {"128 x 64, f16": {"error": "it took too long"}} if name == "warpgroups" else {}

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(sys, "argv", ["kit", "-s", "first_light,sweeps", "-o", str(tmp_path)])
    assert kit.main() == 0
    assert asked == [("warpgroups", None), ("first_light", "0"), ("sweeps", "0")]
    said = capsys.readouterr().out
    assert "does without warpgroups" in said and "it took too long" in said
