"""`debug_print`, `debug_callback`, `breakpoint` and `disable_jit`: values while compiled code runs."""

from __future__ import annotations

import io
import pdb
import sys
import types
from typing import Any

import numpy as np
import pytest

import jitney as jt


def test_prints_some_times_only(capsys: Any) -> None:
    @jt.jit
    def f(x: Any) -> Any:
        for i in range(300):
            jt.debug_print("{}: {}", i, x, every=100, first_n=5, summarize=4)
            x = x + 1
        return x

    f(np.arange(10))
    f(np.arange(10))
    assert capsys.readouterr().out.splitlines() == [
        "0: [0 1 ... 8 9]",
        "100: [100 101 ... 108 109]",
        "200: [200 201 ... 208 209]",
        "0: [0 1 ... 8 9]",
        "100: [100 101 ... 108 109]",
    ]
    f(np.arange(10.0))  # another program of the same function
    assert capsys.readouterr().out == ""
    f.clear_cache()
    f(np.arange(10.0))
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_prints_into_a_file(capsys: Any) -> None:
    file = io.StringIO()
    jt.jit(lambda x: jt.debug_print("{:.1f}", x, file=file))(2.0)
    jt.debug_print("{:.1f}", 3.0, file=file)
    assert file.getvalue() == "2.0\n3.0\n"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("option", [{"every": 0}, {"first_n": -1}, {"summarize": 1.5}])
def test_options_that_are_no_numbers(option: Any) -> None:
    with pytest.raises(ValueError, match="of jt.debug_print is a number of times, not"):
        jt.debug_print("", **option)


def test_callbacks_in_loops_examples_and_derivatives() -> None:
    seen: list[Any] = []

    def see(*values: Any, name: str = "") -> None:
        seen.append((name, *(np.asarray(v).tolist() for v in values)))

    def f(x: Any) -> Any:
        for i in range(2):
            jt.debug_callback(see, i, x, name="loop")
        jt.vmap(lambda r: jt.debug_callback(see, r))(x)
        return (x * x).sum()

    np.testing.assert_array_equal(jt.jit(jt.grad(f))(np.array([1.0, 2.0])), [2.0, 4.0])
    loop = [("loop", i, [1.0, 2.0]) for i in range(2)]
    assert seen == [*loop, ("", 1.0), ("", 2.0)]
    with pytest.raises(TypeError):
        jt.debug_callback(3)  # type: ignore[arg-type]


def test_what_a_debug_callback_raises_comes_out() -> None:
    def fail(x: Any) -> None:
        raise LookupError(f"{x}")

    with pytest.raises(LookupError, match="3.0"):
        jt.jit(lambda x: jt.debug_callback(fail, x))(3.0)


def type_in(monkeypatch: Any, *lines: str) -> io.StringIO:
    """Have Python's debugger read these lines. Gives what it writes."""
    typed, shown = io.StringIO("".join(f"{line}\n" for line in lines)), io.StringIO()

    def hook() -> None:
        pdb.Pdb(stdin=typed, stdout=shown, readrc=False).set_trace(sys._getframe(1))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    return shown


def stops(x: Any, p: Any) -> Any:
    y = np.sin(x) * 0 + 1
    d = {"y": y, "name": "d"}
    for i in range(300):
        y = y + p
        jt.breakpoint(i == 2)
    return y + len(d)


def test_breakpoint(monkeypatch: Any) -> None:
    shown = type_in(
        monkeypatch, "p y.tolist()", "p float(p), int(i)", "p d['name'], x.shape", "l", "c"
    )
    jt.jit(stops)(np.ones(2), 4.0)
    out = shown.getvalue()
    assert "[13.0, 13.0]" in out and "(4.0, 2)" in out and "('d', (2,))" in out
    assert "stops()" in out and "jt.breakpoint(i == 2)" in out and out.count("(Pdb)") == 5


def test_breakpoint_outside_of_compiled_code(monkeypatch: Any) -> None:
    shown = type_in(monkeypatch, "p z", "c")

    def f(x: Any) -> Any:
        z = x + 1
        jt.breakpoint()
        return z

    assert f(1) == 2
    assert "(Pdb) 2" in shown.getvalue()


def test_breakpoint_asks_the_hook(monkeypatch: Any) -> None:
    found = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: found.append(sys._getframe(1).f_locals["y"]))

    def f(x: Any) -> Any:
        y = x * 3
        jt.breakpoint()
        return y

    jt.jit(f)(2.0)
    assert found == [6.0]


def test_breakpoint_in_a_notebook_without_a_debugger(monkeypatch: Any) -> None:
    """Kernels have debugpy's hook, which does nothing unless an editor is attached."""
    found: list[str] = []

    def debugpy_breakpointhook() -> None:
        found.append("editor")

    monkeypatch.setattr(sys, "breakpointhook", debugpy_breakpointhook)
    monkeypatch.setattr(pdb, "set_trace", lambda: found.append("prompt"))
    for attached in (False, True):
        debugpy = types.SimpleNamespace(is_client_connected=lambda attached=attached: attached)
        monkeypatch.setitem(sys.modules, "debugpy", debugpy)

        def f(x: Any) -> Any:
            jt.breakpoint()
            return x

        jt.jit(f)(2.0)
    assert found == ["prompt", "editor"]


def test_disable_jit() -> None:
    kinds = []

    @jt.jit
    def f(x: Any) -> Any:
        kinds.append(type(x))
        return x + 1

    f(np.ones(2))
    f(np.ones(2))
    kinds.clear()
    with jt.disable_jit():
        for _ in range(2):
            np.testing.assert_array_equal(f(np.ones(2)), [2.0, 2.0])
    assert kinds == [np.ndarray, np.ndarray]
    f(np.ones(2))
    assert all(issubclass(kind, np.ndarray) for kind in kinds[:2])


def test_what_is_compiled_outside_of_functions_too_is_so_without_jit() -> None:
    x, key = np.linspace(-1, 1, 3), jt.random.key(0)
    draw = jt.jit(
        lambda: (
            jt.special.expit(x),
            jt.random.normal(key, (2,)),
            jt.random.default_rng(1).random(),
        )
    )
    expected = draw()
    with jt.disable_jit():
        for given, wanted in zip(draw(), expected, strict=True):
            np.testing.assert_array_equal(given, wanted)


def test_disable_jit_of_methods() -> None:
    class Model:
        n = 0

        @jt.jit
        def step(self, x: Any) -> Any:
            self.n += 1
            return type(x).__name__

    model = Model()
    with jt.disable_jit():
        assert model.step(np.ones(2)) == "ndarray"
    assert model.n == 1
