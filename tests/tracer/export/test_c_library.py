"""`jt.export(...).save_c` and `jitney export --c`: called by ctypes, and by C programs where `cc` is."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitney as jt

SD = jt.ShapeDtype
RNG = np.random.default_rng(0)
W = RNG.normal(size=(6, 5))
F, S, R = np.asfortranarray(W), np.repeat(W, 9, 1)[:, ::9], W[::-1, ::-1]
B, E = np.broadcast_to(np.array(3.0), 5), np.zeros((0, 2))
CPU = jt.export(lambda x: x, SD(1)).cpus[-1]


def library(tmp_path: Path, name: str, exported: Any, **options: Any) -> Any:
    header, path = exported.save_c(tmp_path, name, **options)
    made = ctypes.CDLL(path)
    getattr(made, f"{name}_error").restype = ctypes.c_char_p
    return made, Path(header).read_text()


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def in_process(f: Any, *args: Any) -> list[np.ndarray]:
    with jt.config(cpu=CPU if CPU.startswith("x86") else "native"):
        return [np.asarray(leaf) for leaf in jt.tree.leaves(jt.jit(f)(*args))]


PROGRAMS = {
    "layer": (lambda x: np.tanh(W @ x), (RNG.normal(size=5),)),
    "gradient": (jt.grad(lambda x: (np.tanh(W @ x) ** 2).sum()), (RNG.normal(size=5),)),
    "large": (lambda x: np.sort(x @ x.T, axis=1).sum(1), (RNG.normal(size=(130, 140)),)),
    "float32": (lambda x: np.exp(x) / np.exp(x).sum(), (RNG.normal(size=1003).astype("f4"),)),
    "complex": (lambda x: x * np.exp(1j * x), (RNG.normal(size=7) + 1j,)),
    "integers": (lambda x: (x // 3, x % 3 == 0), (np.arange(-9, 9, dtype="i2"),)),
    "tree": (lambda p: {"s": p["a"].sum(), "b": [p["b"] * 2]}, ({"a": W, "b": W[0]},)),
    "empty": (lambda x: (x * 2, x.sum()), (np.zeros((0, 3)),)),
    "outside": (lambda x: (F @ x, S @ x, B * x, E.sum() + x, R @ x), (RNG.normal(size=5),)),
    "solve": (lambda a, b: np.linalg.solve(a, b), (W[:5] + 4 * np.eye(5), W[5])),
    "loop": (lambda x: jt.fori_loop(0, 50, lambda i, v: np.sin(v + i), x), (RNG.normal(size=9),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_have_the_bits_of_in_process_ones(tmp_path: Path, name: str) -> None:
    f, args = PROGRAMS[name]
    made, _ = library(tmp_path, "f", jt.export(f, *args, cpus=CPU))
    want = in_process(f, *args)
    got = [np.empty_like(w) for w in want]
    given = jt.tree.leaves(args)
    assert made.f(*map(pointer, (*given, *got))) == 0
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_numbers_are_values_and_their_header_says_so(tmp_path: Path) -> None:
    def f(x: Any, k: Any, n: Any, flag: Any, z: Any) -> Any:
        return x * k + n, z * k

    exported = jt.export(f, SD(3), 2.0, 3, np.bool_(True), np.float32(1), cpus=CPU)
    made, header = library(tmp_path, "numbers", exported)
    assert (
        "int numbers(const double *x, double k, int64_t n, bool flag, float z, double *out_0, "
        "float *out_1);" in header
    )
    x, y, z = np.arange(3.0), np.empty(3), np.empty((), "f4")
    k, n = ctypes.c_double(2.5), ctypes.c_int64(7)
    assert made.numbers(pointer(x), k, n, True, ctypes.c_float(0.5), pointer(y), pointer(z)) == 0
    np.testing.assert_array_equal(y, x * 2.5 + 7)
    assert z == 1.25


def test_arguments_that_are_assigned_to(tmp_path: Path) -> None:
    def step(x: Any, v: Any, dt: Any) -> Any:
        x += v * dt
        v[1:] = v[:-1] * 2
        return (x * x).sum()

    made, header = library(tmp_path, "step", jt.export(step, SD(6), SD(6), 0.1, cpus=CPU))
    assert (
        "x is changed in place." in header and "int step(double *x, double *v, double dt" in header
    )
    x, v, out = np.arange(6.0), np.ones(6), np.empty(())
    want = x.copy(), v.copy()
    result = step(*want, 0.5)
    assert made.step(pointer(x), pointer(v), ctypes.c_double(0.5), pointer(out)) == 0
    np.testing.assert_allclose([*x, *v, out], [*want[0], *want[1], result], rtol=1e-15)


def test_errors_are_numbers_with_words(tmp_path: Path) -> None:
    made, _ = library(tmp_path, "pick", jt.export(lambda x, i: x[i], SD(5), 1, cpus=CPU))
    x, out = np.arange(5.0), np.zeros(())
    assert made.pick(pointer(x), ctypes.c_int64(-2), pointer(out)) == 0 and out == 3.0
    code = made.pick(pointer(x), ctypes.c_int64(9), pointer(out))
    assert code > 0 and b"IndexError: index ? is out of bounds" in made.pick_error(code)
    assert b"test_c_library.py:" in made.pick_error(code)
    assert made.pick_error(0) == b"no error" and made.pick_error(99) == b"unknown error"
    assert made.pick_error(-4) == b"out of memory"


REFUSED = {
    "LAPACK": (lambda x: np.linalg.eigvalsh(x), (SD((3, 3)),), {}, "eigenvalues"),
    "layout": (lambda x: x + 1, (np.ones((3, 4)).T,), {}, "C-contiguous"),
    "name": (lambda x: x + 1, (SD(3),), {"name": "a-b"}, "no name in C"),
    "word": (lambda x: x + 1, (SD(3),), {"name": "while"}, "no name in C"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_c_cannot_call_is_refused(tmp_path: Path, name: str) -> None:
    f, args, options, message = REFUSED[name]
    with pytest.raises(jt.errors.ExportError, match=message):
        jt.export(f, *args).save_c(tmp_path, **{"name": "f", **options})
    assert not list(tmp_path.iterdir())


def energy(x: Any, k: Any) -> Any:
    return 0.5 * k * (x * x).sum()


MAIN = r"""
#include <stdio.h>
#include <time.h>
#include "energy.h"
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}
int main(void) {
    double x[8], gradient[8], e, again;
    for (int i = 0; i < 8; i++) x[i] = 0.1 * i;
    int code = energy(x, 3.0, &e), other = energy_grad(x, 3.0, &again, gradient);
    printf("%d %d %a %a %a %s\n", code, other, e, again, gradient[7], energy_error(code));
    double best = 1e9;
    for (int round = 0; round < 50; round++) {
        double start = now();
        for (int i = 0; i < 10000; i++) energy(x, 3.0, &e);
        double each = (now() - start) / 10000;
        if (each < best) best = each;
    }
    printf("%.1f\n", best);
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_c_program(tmp_path: Path) -> None:
    """By the command: a library with a gradient, linked by cc; in C and in C++ headers."""
    (tmp_path / "springs.py").write_text("def energy(x, k):\n    return 0.5 * k * (x * x).sum()\n")
    command = [sys.executable, "-m", "jitney", "export", "--c", "springs:energy", "f64[8]", "float"]
    command += ["--grad", "0", "--cpu", CPU]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 0 and "libenergy.so" in said.stdout, said.stderr
    (tmp_path / "main.c").write_text(MAIN)
    build = [
        "cc",
        "-O1",
        "-Wall",
        "-Werror",
        "main.c",
        "-L.",
        "-lenergy",
        "-Wl,-rpath,.",
        "-o",
        "main",
    ]
    subprocess.run(build, cwd=tmp_path, check=True)
    out = subprocess.run(
        ["./main"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    first, best = out.splitlines()
    x = 0.1 * np.arange(8)
    value, gradient = in_process(jt.value_and_grad(energy), x, 3.0)
    code, other, e, again, slope, *words = first.split()
    assert (code, other, words) == ("0", "0", ["no", "error"])
    assert float.fromhex(e) == in_process(energy, x, 3.0)[0] and float.fromhex(again) == value
    assert float.fromhex(slope) == gradient[7]
    assert float(best) < 1000, "nanoseconds; 60 on a machine that does nothing else"


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    from jitney.tracer.ahead.export_command import run

    monkeypatch.chdir(tmp_path)
    Path("springs2.py").write_text("def energy(x, k=2.0):\n    return k * (x * x).sum()\n")
    for words, message in (
        (["springs2"], "no module:function"),
        (["springs2:power", "f64[8]"], "has no attribute 'power'"),
        (["springs2:energy", "f65[8]"], "not a type"),
        (["springs2:energy", "f64[8]", "--grad", "0"], "--grad is for --c"),
        (["nowhere:energy"], "No module named 'nowhere'"),
    ):
        assert run(words) == 1
        assert message in capsys.readouterr().err
    assert run(["springs2:energy", "f64[4]", "k=float", "-o", "e.jitney"]) == 0
    assert jt.load_exported("e.jitney")(np.ones(4), 3.0) == 12.0
    assert run(["springs2:energy", "f64[4]", "--c", "--name", "e"]) == 0
    made = sorted(name for name in os.listdir(".") if name != "__pycache__")
    assert made == ["e.h", "e.jitney", "libe.so", "springs2.py"]


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v4", "aarch64"])
def test_libraries_for_other_cpus(tmp_path: Path, cpu: str) -> None:
    """Which need not run here: an ELF shared object for that machine, with these two functions."""
    f = jt.export(lambda x: np.sort(np.exp(x @ x.T)), SD((70, 70)), cpus=cpu)
    _, path = f.save_c(tmp_path, "f")
    data = Path(path).read_bytes()
    kind, machine = struct.unpack_from("<HH", data, 16)
    assert data[:4] == b"\x7fELF" and kind == 3 and machine == (183 if cpu == "aarch64" else 62)
    if shutil.which("readelf"):
        said = subprocess.run(["readelf", "-Wa", path], capture_output=True, text=True)
        assert said.returncode == 0 and not said.stderr
        assert "f_error" in said.stdout and "Library soname: [libf.so]" in said.stdout
