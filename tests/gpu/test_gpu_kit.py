"""The GPU kit (benchmarks/gpu) runs without a GPU, and outlives items that do not."""

import importlib
import json
import os
import subprocess
import sys
import time
import zipfile
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


def make_stage(process, folder, monkeypatch, name, text):
    """A stage in a kit of its own."""
    package = folder / "benchmarks" / "gpu"
    package.mkdir(parents=True)
    for file in ("__init__.py", "gpu/__init__.py"):
        (folder / "benchmarks" / file).write_text("")
    source = (ROOT / "benchmarks" / "gpu" / "process.py").read_text()
    (package / "process.py").write_text(source)
    (package / f"{name}.py").write_text(text)
    monkeypatch.setattr(process, "ROOT", folder)


def test_an_item_that_dies_or_hangs_costs_that_item(process, tmp_path, monkeypatch):
    make_stage(process, tmp_path, monkeypatch, "trouble", STAGE)
    saved = []
    found = process.run("trouble", {"word": "given"}, 60, 1.5, lambda r: saved.append(len(r)))
    assert found["good"]["value"] == 1 and found["last"]["value"] == 2
    assert found["bad"]["error"].startswith("ZeroDivisionError") and found["bad"]["traceback"]
    assert "died" in found["deadly"]["error"] and found["deadly"]["lost"]
    assert "took too long" in found["endless"]["error"]
    assert list(found) == ["good", "bad", "deadly", "endless", "last"] and saved[-1] == 5


def test_a_stage_that_cannot_be_imported_is_an_error(process, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "ROOT", tmp_path)
    found = process.run("nothing", {}, 5)
    assert "No module named" in found["the process"]["error"]


SLOW = """
import time

def stage(options, writer):
    time.sleep(options["wait"])
    yield "quick", lambda: {"value": 1}
    time.sleep(options["between"])
    yield "slow", lambda: time.sleep(100)
"""


def test_time_that_is_over_is_no_error(process, tmp_path, monkeypatch):
    """Whether an item is under way or not; but an item that alone takes too long is one."""
    make_stage(process, tmp_path, monkeypatch, "slow", SLOW)

    def run(seconds, item_seconds, before=0.0, between=0.0):
        options = {"between": between, "wait": before}
        return process.run("slow", options, seconds, item_seconds)

    start = time.monotonic()
    found = run(4, 60)
    assert time.monotonic() - start < 10
    assert found["quick"]["value"] == 1 and list(found) == ["quick", "slow"]
    assert "the stage's time was over" in found["slow"]["timeout"] and "error" not in found["slow"]
    found = run(4, 60, between=100)
    assert list(found) == ["quick", process.REST]
    assert "time was over" in found[process.REST]["timeout"] and "error" not in found[process.REST]
    found = run(60, 1.5)
    assert "took too long" in found["slow"]["error"] and "timeout" not in found["slow"]
    found = run(60, 1.5, before=100)
    assert "too long to begin" in found["the process"]["error"]


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
    assert len(stages["tests: kernels/test_cuda_kernels.py"]) >= 2
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


def test_what_is_not_installed_is_said_in_a_sentence(kit, tmp_path, monkeypatch, capsys):
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


@pytest.fixture
def kit(process):
    return importlib.import_module("benchmarks.gpu.__main__")


@pytest.mark.parametrize("how", ["error", "timeout"])
def test_what_follows_does_without_warpgroups_that_fail(
    process, kit, monkeypatch, capsys, tmp_path, how
):
    """Those that fail, or hang; not those that there was no time for."""
    asked = []

    def run(name, options, *rest):
        asked.append((name, options["environment"].get("JITNEY_CUDA_WARPGROUPS")))
        return {"128 x 64, f16": {how: "it took too long"}} if name == "warpgroups" else {}

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(sys, "argv", ["kit", "-s", "first_light,sweeps", "-o", str(tmp_path)])
    assert kit.main() == 0
    without = "0" if how == "error" else None
    assert asked == [("warpgroups", None), ("first_light", without), ("sweeps", without)]
    said = capsys.readouterr().out
    assert ("does without warpgroups" in said) == (how == "error") and "it took too long" in said
    assert ("What failed" in said) == (how == "error")
    assert ("Where time was over" in said) == (how == "timeout")


def test_the_tests_end_in_time_as_a_whole(process, kit, monkeypatch, tmp_path):
    """Not only each file: what there is no time for is said to be so."""
    files = [f"test_{k}.py" for k in range(9)]
    limits = []

    def run(name, options, limit, *rest):
        if name == "checks":
            limits.append(limit)
            time.sleep(min(limit, 0.4))
        return {"a test": {}}

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(kit.checks, "files", lambda quick: files)
    monkeypatch.setattr(kit.checks, "sanitizer", lambda: None)
    monkeypatch.setattr(kit.os, "cpu_count", lambda: 4)
    monkeypatch.setitem(kit.SECONDS, "tests", 1.0)
    monkeypatch.setattr(kit, "FILE_SECONDS", 0.6)
    monkeypatch.setattr(sys, "argv", ["kit", "-s", "tests", "-o", str(tmp_path)])
    start = time.monotonic()
    assert kit.main() == 0
    assert time.monotonic() - start < 2.5
    assert max(limits) == 0.6 and 4 <= len(limits) < 9
    (path,) = tmp_path.glob("*.json")
    found = json.loads(path.read_text())["stages"]
    assert {f"tests: {name}" for name in files} <= set(found)
    late = [records for records in found.values() if process.REST in records]
    assert len(late) == 9 - len(limits)
    assert "time of all tests was over" in late[0][process.REST]["timeout"]


def test_everything_is_done_in_pieces_that_end_in_time(kit, monkeypatch):
    """Under nine minutes each, whatever happens; every row in one of them."""
    from benchmarks.gpu.rows import ROWS

    monkeypatch.setattr(sys, "argv", ["kit"])
    options = kit.parse()
    options.rows = list(ROWS)
    planned = kit.pieces(options)
    rows = [
        row for piece in planned for part in piece if part.stage == "speed" for row in part.rows
    ]
    assert sorted(rows) == sorted(ROWS)
    assert {part.stage for piece in planned for part in piece} == set(kit.STAGES)
    assert kit.PIECE_SECONDS <= 8.5 * 60  # and the seconds that a process takes to end
    for piece in planned:
        stages = [part.stage for part in piece]
        seconds = sum(kit.SECONDS[s] for s in stages)
        seconds += kit.SECONDS["warpgroups"] * ("first_light" in stages)
        assert seconds <= kit.PIECE_SECONDS


def test_pieces_add_to_one_file(process, kit, monkeypatch, tmp_path):
    machine = {"device": {"name": "A GPU", "arch": "sm_90", "driver": 13000}, "machine": {}}
    asked = []

    def run(name, options, *rest):
        asked.append(
            (name, options["environment"].get("JITNEY_CUDA_WARPGROUPS"), options.get("rows"))
        )
        if name == "warpgroups":
            return {"a tile": {"error": "wrong"}}
        wanted = options["rows"] or []
        return {**(machine if name == "first_light" else {}), **{row: {} for row in wanted}}

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(kit, "GROUP", 1)
    for piece in ("1", "2", "3"):
        arguments = ["-s", "first_light,speed", "-r", "call_1,axpb", "--piece", piece]
        monkeypatch.setattr(sys, "argv", ["kit", *arguments, "-o", str(tmp_path)])
        assert kit.main() == 0
    (path,) = tmp_path.glob("*.json")
    assert path.name.endswith("-a-gpu.json")
    stages = json.loads(path.read_text())["stages"]
    assert list(stages["speed"]) == ["call_1", "axpb"]
    assert set(stages["first_light"]) == {"device", "machine", "call_1", "axpb"}
    assert [a for a in asked if a[0] == "speed"] == [
        ("speed", "0", ["call_1"]),
        ("speed", "0", ["axpb"]),
    ]
    monkeypatch.setattr(sys, "argv", ["kit", *arguments[:-1], "4", "-o", str(tmp_path)])
    assert kit.main() == 1


@emulator_only
def test_a_framework_that_does_not_start_has_failed(process, gpu, monkeypatch):
    """What is not installed is missing; jitney that raises is an error of every row."""
    from benchmarks.gpu import peers, speed

    class Broken:
        def __init__(self):
            raise RuntimeError("no context can be made")

    class Absent:
        def __init__(self):
            raise ImportError("it sees no GPU")

    monkeypatch.setattr(peers, "KINDS", {"jitney": Broken, "torch": Absent, "jax": Broken})
    options = {"small": True, "frameworks": ["jitney", "torch", "jax"], "row_seconds": 0.01}
    bench = speed.Bench(options)
    assert list(bench.missing) == ["torch"] and list(bench.broken) == ["jitney", "jax"]
    assert bench.ceilings()["error"] == "RuntimeError: no context can be made"
    found = bench.row("call_1")
    assert found["error"] == "jitney: RuntimeError: no context can be made"
    assert "error" in found["cells"]["jax"]
    monkeypatch.setattr(peers, "KINDS", {"jitney": peers.Jitney, "jax": Broken})
    bench = speed.Bench({**options, "frameworks": ["jitney", "jax"]})
    assert "error" not in bench.row("call_1") and "error" not in bench.ceilings()


def test_wheels_beside_the_kit_are_unpacked(process, monkeypatch, tmp_path):
    from benchmarks.gpu import wheels

    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "jitney_has_no_such-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("jitney_has_no_such.py", "value = 7")
    monkeypatch.setattr(wheels, "WHEELS", folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "before")
    assert wheels.unpack(tmp_path / "there") == ["jitney_has_no_such-1.0-py3-none-any.whl"]
    assert importlib.import_module("jitney_has_no_such").value == 7
    assert os.environ["PYTHONPATH"].split(os.pathsep) == ["before", str(tmp_path / "there")]


@emulator_only
def test_modules_are_timed_as_they_are_loaded(process):
    """What the driver is given, once, and what its assembler says."""
    from loading import PtxDriver

    from benchmarks.gpu import first_light
    from jitney.codegen.cuda.program import KernelShape
    from jitney.runtime.cuda.driver import Context, describe

    driver = PtxDriver()
    context = Context(describe(driver)[0])
    text = "define ptx_kernel void @k() {\n  ret void\n}\n"
    module, found = first_light.measured(None, context, text, {"k": KernelShape((32, 1, 1))})
    assert len(driver.texts) == 1 and module.function("k").handle
    assert found["log"] == "an advisory" and found["ptx_jit_ms"] > 0
    assert set(found["kernels"]["k"]) >= {"registers", "local", "shared", "threads"}
