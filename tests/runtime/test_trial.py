"""Platforms that nobody has tried: a child that crashes, a loader that refuses, a wrong result."""

import sys
from pathlib import Path

import pytest
import warm

from jitney.demo import trial as functions
from jitney.runtime import trial

REFUSING = """
from jitney.runtime.native import engine

def refuse(*_):
    raise engine.LoadError("the system does not let memory become executable")

engine.load_image = refuse
"""
RUN = "import sys\nfrom jitney.demo import trial\nsys.exit(trial.main())"
FEW = RUN.replace("\nsys.exit", "\ntrial.TRIALS = trial.TRIALS[:1]\nsys.exit")


def test_all_is_right_here() -> None:
    assert trial._failure("native") == ""
    assert len(functions.TRIALS) > 10


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions.jt, "jit", lambda f: lambda *args: f(*args) * 1.001)
    assert functions.wrong() == "elements and sums"


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("import os; os.abort()", "called native, a trial ended with signal 6"),
        (
            "print('wrong results: sorts'); raise SystemExit(1)",
            "called native, a trial ended with status 1 (wrong results: sorts)",
        ),
        ("print('not it')", "called native, a trial ended with status 0 (not it)"),
        ("import time; time.sleep(60)", "a dozen small functions were not done within 0.3 s"),
    ],
)
def test_what_goes_wrong_is_told(monkeypatch: pytest.MonkeyPatch, code: str, failure: str) -> None:
    monkeypatch.setattr(trial, "CHILD", ["-c", code])
    if "time" in code:
        monkeypatch.setattr(trial, "SECONDS", 0.3)
    assert trial._failure("native") == failure


def test_without_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert trial._failure("native").startswith("no child process can be started")


def process(tmp_path: Path, child: str, code: str) -> list[str]:
    """The lines that `code` prints on a platform which nobody tried, where trials run `child`."""
    before = f"""
import platform, warnings
platform.machine = lambda: "sparc64"
warnings.simplefilter("always")
warnings.showwarning = lambda message, *_: print("warning:", message)
from jitney.runtime import trial
trial.CHILD = ["-c", {child!r}]
import numpy as np, jitney as jt
Function = jt.tracer.jit.function.JitFunction
"""
    return warm.run(before + code, JITNEY_CACHE_DIR=str(tmp_path)).splitlines()


def test_calls_are_native_where_that_works(tmp_path: Path) -> None:
    code = "f = jt.jit(lambda x: x + 1); print(*f(np.ones(2)), type(f) is Function)"
    assert process(tmp_path, FEW, code) == ["2.0 2.0 False"]
    assert process(tmp_path, "raise Exception", code) == ["2.0 2.0 False"]  # that is known


def test_calls_go_through_python_where_native_ones_crash(tmp_path: Path) -> None:
    child = f"import os\nif os.environ['JITNEY_NATIVE_CALLS'] == '1': os.abort()\n{FEW}"
    code = """
for k in range(2):
    f = jt.jit(lambda x, k=k: x + k)
    print(*f(np.ones(2)), type(f) is Function)
"""
    warning, *lines = process(tmp_path, child, code)
    assert "calls of compiled functions go through Python" in warning and "signal 6" in warning
    assert lines == ["1.0 1.0 True", "2.0 2.0 True"]


def test_functions_run_as_they_were_written_where_nothing_can_be_loaded(tmp_path: Path) -> None:
    code = f"""{REFUSING}
@jt.jit
def f(x):
    return np.sin(x * 2)

print(*f(np.ones(2)) == np.sin(2), type(f) is Function)
print(np.allclose(jt.grad(lambda x: f(x).sum())(np.ones(2)), 2 * np.cos(2)))
print(np.allclose(jt.vmap(f)(np.ones((3, 2))), np.sin(2)))
print(jt.while_loop(lambda k: k < 9, lambda k: k + 2, 0), jt.fori_loop(0, 4, lambda i, s: s + i, 0))
print(*jt.scan(lambda s, x: (s + x, s), 0.0, np.arange(3.0))[1])
"""
    warning, *lines = process(tmp_path, REFUSING + FEW, code)
    assert "jitted functions run as they were written" in warning
    assert "does not let memory become executable" in warning
    assert lines == ["True True True", "True", "True", "10 6", "0.0 0.0 1.0"]
