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
