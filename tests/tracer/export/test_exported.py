"""`jt.export` and `jt.load_exported`: the same bits without tracing and without LLVM; files that lie."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.ir.blake2 import blake2b
from jitney.runtime.native.host import host_target
from jitney.runtime.portable import levels
from jitney.tracer.export import loaded

SD = jt.ShapeDtype
RNG = np.random.default_rng(0)
W = RNG.normal(size=(6, 5))
Point = namedtuple("Point", "x y")
F, S, R = np.asfortranarray(W), np.repeat(W, 9, 1)[:, ::9], W[::-1, ::-1]
B, E = np.broadcast_to(np.array(3.0), 5), np.zeros((0, 2))
CPU = levels.levels_here()[0] if levels.levels_here() else "native"


class Model:
    def __init__(self) -> None:
        self.w, self.b, self.n = RNG.normal(size=(4, 6)), np.zeros(4), 2

    def __call__(self, x: Any) -> Any:
        return np.tanh(self.w @ x + self.b) * self.n


def assigns(x: Any, y: Any) -> Any:
    x += y
    y[1:] = y[:-1]
    return x.sum()


MODEL = Model()
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "array": (lambda x: np.tanh(W @ x), lambda: (RNG.normal(size=5),)),
    "layouts outside": (lambda x: (F @ x, S @ x, B * x, E.sum() + x, R @ x),
                        lambda: (RNG.normal(size=5),)),
    "model": (lambda x: MODEL(x), lambda: (RNG.normal(size=6),)),
    "gradient": (jt.value_and_grad(lambda x: (W @ x).sum() ** 2), lambda: (RNG.normal(size=5),)),
    "large": (lambda x: np.exp(x).sum(0) * 2, lambda: (RNG.normal(size=(700, 400)),)),
    "products": (lambda x: np.sort(x @ x.T), lambda: (RNG.normal(size=(200, 210)),)),
    "float32": (lambda x: x / x.sum(), lambda: (RNG.random(777, "f4"),)),
    "complex": (lambda x: np.fft.fft(x) * x, lambda: (RNG.normal(size=12) + 1j,)),
    "bool": (lambda x: (x > 0) & (x < 1), lambda: (RNG.normal(size=33),)),
    "bfloat16": (lambda x: x * 2 + 1, lambda: (np.arange(9).astype(jt.bfloat16),)),
    "numbers": (lambda x, a, n, z: x * a + n * z, lambda: (W, 2.5, 3, np.float32(7))),
    "scalar result": (lambda x: (x.sum(), x.argmax()), lambda: (W,)),
    "dicts": (lambda p: {"b": p["w"] * 2, "a": [p["v"][0], None, 3, "text", float("nan")]},
              lambda: ({"w": W, "v": (W[0].copy(),)},)),
    "namedtuple": (lambda p: Point(p.y * 2, p.x), lambda: (Point(W, W + 1),)),
    "argument": (lambda x, y: (y, x + y, y), lambda: (W, W * 2)),
    "assigned": (assigns, lambda: (np.arange(7.0), np.arange(7.0) ** 2)),
    "empty": (lambda x: (x * 2, x.sum(), x.T), lambda: (np.zeros((0, 3)),)),
    "0-d": (lambda x: np.sin(x), lambda: (np.array(0.5),)),
    "strided": (lambda x: x[::2].sum(1), lambda: (np.asfortranarray(W),)),
    "view": (lambda x: x.T, lambda: (W,)),
    "lapack": (lambda x: np.linalg.eigvalsh(x @ x.T), lambda: (W,)),
    "loop": (lambda x: jt.while_loop(lambda v: v.sum() < 100, lambda v: v * 1.5, x), lambda: (abs(W),)),
    "random": (lambda key, x: jt.random.normal(key, (5,)) + x, lambda: (jt.random.key(3), W[0])),
}  # fmt: skip


def exported(tmp_path: Path, f: Any, *args: Any, cpus: Any = CPU, **kwargs: Any) -> Any:
    path = tmp_path / "f.jitney"
    jt.export(f, *args, cpus=cpus, **kwargs).save(path)
    return jt.load_exported(path)


def same(got: Any, want: Any) -> None:
    assert jt.tree.structure(got) == jt.tree.structure(want)
    for g, w in zip(jt.tree.leaves(got), jt.tree.leaves(want), strict=True):
        assert type(g) is type(w)
        assert getattr(g, "dtype", None) == getattr(w, "dtype", None)
        assert np.shape(g) == np.shape(w)
        assert np.asarray(g).tobytes() == np.asarray(w).tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_are_those_of_a_call_in_the_process_that_exports(
    tmp_path: Path, name: str
) -> None:
    f, make = PROGRAMS[name]
    args = make()
    again = jt.tree.map(lambda a: a.copy(order="K") if isinstance(a, np.ndarray) else a, args)
    function = exported(tmp_path, f, *args)
    assert function.cpu == CPU and function.name == getattr(f, "__name__", "")
    with jt.config(cpu=CPU if CPU.startswith("x86") else "native"):
        want = jt.jit(f)(*args)
    got = function(*again)
    if name == "namedtuple":
        assert got._fields == want._fields and type(got).__name__ == "Point"
        got, want = tuple(got), tuple(want)
    same(got, want)
    same(again, args)


def test_what_is_outside_is_as_it_was(tmp_path: Path) -> None:
    w, k = np.ones(3), {"k": 2.0}
    function = exported(tmp_path, lambda x: x * w * k["k"], SD(3))
    w[:], k["k"] = 5, 7.0
    np.testing.assert_array_equal(function(np.ones(3)), np.full(3, 2.0))


def test_arguments_by_name_and_what_is_compiled_in(tmp_path: Path) -> None:
    def f(x: Any, power: Any = 2, *, mode: str, flag: bool = False) -> Any:
        return x**power if mode == "up" else x / power

    function = exported(
        tmp_path, jt.jit(f, static_argnames=("power", "mode")), SD(3), mode="up", power=3
    )
    x = np.arange(3.0)
    np.testing.assert_array_equal(function(x, 3, mode="up"), x**3)
    np.testing.assert_array_equal(function(mode="up", power=3, x=x), x**3)
    for args, kwargs, message in (
        ((x, 3), {"mode": "down"}, "mode is 'up', which was compiled in, not 'down'"),
        ((x, 3.0), {"mode": "up"}, r"power is 3, which was compiled in, not 3.0"),
        ((x, 3), {}, r"takes by name \['mode'\], not \[\]"),
        ((x,), {"mode": "up"}, r"takes 2 arguments \(x, power\); 1 were given"),
        ((x, 3), {"mode": "up", "flag": True}, "takes by name"),
    ):
        with pytest.raises(TypeError, match=message):
            function(*args, **kwargs)


def test_leaves_in_another_order_than_the_arguments(tmp_path: Path) -> None:
    one, two = np.ones(2), np.full(2, 2.0)
    names = exported(tmp_path, lambda *, b, a: b * 10 + a, b=SD(2), a=SD(2))
    np.testing.assert_array_equal(names(b=one, a=two), np.full(2, 12.0))
    np.testing.assert_array_equal(names(a=two, b=one), np.full(2, 12.0))
    both = {"b": SD(2), "a": SD(2)}
    dicts = exported(tmp_path, lambda y, d: y * 100 + d["b"] * 10 + d["a"], SD(2), both)
    np.testing.assert_array_equal(dicts(two, {"b": one, "a": two}), np.full(2, 212.0))
    # In which order a dict is, and what is in **kwargs, the function can see.
    first = exported(tmp_path, lambda d: next(iter(d.values())) + 0, both)
    np.testing.assert_array_equal(first({"b": one, "a": two}), one)
    with pytest.raises(TypeError, match=r"d had its keys in the order \['b', 'a'\]"):
        first({"a": one, "b": two})
    first = exported(tmp_path, lambda **d: next(iter(d.values())) + 0, b=SD(2), a=SD(2))
    np.testing.assert_array_equal(first(b=one, a=two), one)
    with pytest.raises(TypeError, match=r"kwargs had its keys in the order \['b', 'a'\]"):
        first(a=one, b=two)


def test_what_is_compiled_in_is_compared(tmp_path: Path) -> None:
    f = jt.jit(lambda x, n: x * n, static_argnames="n")
    for static, others in ((True, (False, 1)), (2, (3, 2.0)), (0.0, (-0.0, 1.0)), (np.nan, (0.0,))):
        function = exported(tmp_path, f, SD(2), static)
        np.testing.assert_array_equal(function(np.ones(2), static), np.ones(2) * static)
        for other in others:
            with pytest.raises(TypeError, match="which was compiled in"):
                function(np.ones(2), other)


def test_arrays_that_are_more_than_their_numbers(tmp_path: Path) -> None:
    function = exported(tmp_path, lambda x: x + 1, SD(3))
    for value in (np.ma.masked_array(np.ones(3), mask=True), np.ones(3).view(np.recarray)):
        with pytest.raises(TypeError, match="x has to be .* not a (MaskedArray|recarray)"):
            function(value)

    def double(x: Any) -> None:
        x *= 2

    class Made:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.ones(3)

    with pytest.raises(TypeError, match="x is assigned to, and is a Made"):
        exported(tmp_path, double, SD(3))(Made())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones(4), r"x has to be f64\[3\], as it was exported, not f64\[4\]"),
        (np.ones(3, "f4"), r"not f32\[3\]"),
        (np.ones((3, 1)), r"not f64\[3, 1\]"),
        (np.array(["a"] * 3), "not an array of <U1"),
        ([1.0, 2.0, 3.0], "not list"),
        (None, "not NoneType"),
        (np.float64(3), r"not f64\[\] of NumPy's"),
    ],
)
def test_arguments_that_do_not_fit(tmp_path: Path, value: Any, message: str) -> None:
    function = exported(tmp_path, lambda x: x + 1, SD(3))
    with pytest.raises(TypeError, match=message):
        function(value)


def test_numbers_that_do_not_fit(tmp_path: Path) -> None:
    function = exported(tmp_path, lambda a, n, z: a * n + z, 1.0, 1, np.float32(1))
    assert function.signature == "(a: float, n: int, z: np.float32)"
    for args, message in (
        ((1, 1, np.float32(1)), "a has to be float, as it was exported, not int"),
        ((1.0, True, np.float32(1)), "n has to be int, as it was exported, not bool"),
        ((1.0, 1 << 70, np.float32(1)), "n is 1180591620717411303424, which has no room in int64"),
        ((1.0, 1, 1.0), "z has to be np.float32, as it was exported, not float"),
    ):
        with pytest.raises(TypeError, match=message):
            function(*args)
    assert function(2.0, 3, np.float32(1)) == 7.0


def test_layouts_and_memory(tmp_path: Path) -> None:
    function = exported(tmp_path, lambda x: x * 2, SD((4, 6)))
    x = np.arange(24.0).reshape(4, 6)
    wide = np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2]
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    frozen = x.copy()
    frozen.flags.writeable = False
    for given in (wide, np.asfortranarray(x), odd, frozen, x.astype(">f8"), x[::-1][::-1]):
        np.testing.assert_array_equal(function(given), x * 2)
    function = exported(tmp_path, assigns, SD(7), SD(7))
    y = np.ones(7)
    wide = np.zeros(14)[::2]
    assert function(wide, y) == 7.0 and (wide == 1).all()
    frozen = np.ones(7)
    frozen.flags.writeable = False
    for args, message in (((y, y), "shares memory"), ((frozen, y), "read-only")):
        with pytest.raises(ValueError, match=message):
            function(*args)


def test_errors_have_the_line(tmp_path: Path) -> None:
    function = exported(tmp_path, lambda x, i: x[i], SD(5), 1)
    with pytest.raises(
        IndexError, match="index 9 is out of bounds for axis 0 with size 5"
    ) as caught:
        function(np.ones(5), 9)
    assert "test_exported.py:" in caught.value.__notes__[0]


def refused() -> dict[str, tuple[Any, tuple[Any, ...], str]]:
    class Thing:
        w = np.ones(3)

    counter = {"n": 0}

    def counts(x: Any) -> Any:
        counter["n"] += 1
        return x

    def grows(x: Any) -> Any:
        return [v for v in x if v > 0]

    return {
        "object": (lambda m, x: m.w * x, (Thing(), SD(3)), "takes `m`, which is no array"),
        "function": (lambda f, x: f(x), (np.sin, SD(3)), "takes `f`"),
        "effects": (counts, (SD(3),), "changes what is outside"),
        "Python": (lambda x: jt.pure_callback(lambda v: v, SD(3), x), (SD(3),), "calls Python"),
        "random": (lambda x: x + np.random.rand(3), (SD(3),), "uses rand"),
        "result": (lambda x: {1.5: x}, (SD(3),), "returns a dict"),
        "growing": (grows, (SD(3),), "returns what is no array|is no array in memory"),
        "watched": (jt.jit(lambda x: np.log(x), check="nan"), (SD(3),), "watched"),
        "interpreted": (jt.jit(lambda x: x, backend="interpreter"), (SD(3),), "interpreted"),
    }


@pytest.mark.parametrize("name", refused())
def test_what_cannot_leave_the_process_is_refused(name: str) -> None:
    f, args, message = refused()[name]
    with pytest.raises(jt.errors.ExportError, match=message):
        jt.export(f, *args)


def test_other_errors(tmp_path: Path) -> None:
    with pytest.raises(jt.errors.ArgumentError, match="cannot be exported for 'mmx'"):
        jt.export(lambda x: x, SD(3), cpus="mmx")
    with pytest.raises(jt.errors.ArgumentError, match="cpus is empty"):
        jt.export(lambda x: x, SD(3), cpus=[])
    with pytest.raises(FileNotFoundError):
        jt.load_exported(tmp_path / "nothing")
    with pytest.raises(OSError):
        jt.export(lambda x: x, SD(3)).save(tmp_path / "no folder" / "f.jitney")
    assert not list(tmp_path.iterdir())


# CPUs


def test_levels_are_what_llvm_says() -> None:
    if "x86_64" not in host_target().triple:
        pytest.skip("no CPU of x86-64")
    for level in levels.X86:
        wanted = levels.target_for(level).features.split(",")
        assert (level in levels.levels_here()) == all(host_target().has(f[1:]) for f in wanted)


def test_the_highest_level_that_runs_is_taken(tmp_path: Path, monkeypatch: Any) -> None:
    here = levels.levels_here()
    if not here or not here[0].startswith("x86"):
        pytest.skip("no CPU of x86-64")
    path = tmp_path / "f.jitney"
    made = jt.export(lambda x: np.exp(x).sum(), SD(100), cpus=[*levels.X86, "aarch64"])
    made.save(path)
    x = RNG.normal(size=100)
    assert jt.load_exported(path).cpu == here[0]
    assert jt.load_exported(path).cpus == (*levels.X86, "aarch64")
    for level in here:
        with jt.config(cpu=level):
            function = jt.load_exported(path)
            assert function.cpu == level
            assert function(x) == jt.jit(lambda x: np.exp(x).sum())(x)
    monkeypatch.setattr(loaded, "levels_here", lambda: ("aarch64",))
    wanted = "'x86-64-v4', 'x86-64-v3', 'x86-64-v2', and this CPU runs 'aarch64' and below"
    jt.export(lambda x: x, SD(3)).save(path)
    with pytest.raises(jt.errors.ExportError, match=wanted):
        jt.load_exported(path)
    monkeypatch.setattr(loaded, "levels_here", lambda: ())
    with pytest.raises(jt.errors.ExportError, match="this is none of the CPUs"):
        jt.load_exported(path)


def test_native_code_runs_on_cpus_like_this_one(tmp_path: Path, monkeypatch: Any) -> None:
    function = exported(tmp_path, lambda x: np.exp(x).sum(), SD(100), cpus="native")
    x = RNG.normal(size=100)
    assert function.cpu == "native" and function(x) == jt.jit(lambda x: np.exp(x).sum())(x)
    monkeypatch.setattr(loaded, "identity", lambda: "another")
    with pytest.raises(jt.errors.ExportError, match="has code for 'native', and this CPU runs"):
        jt.load_exported(tmp_path / "f.jitney")


# Without LLVM

ALONE = """
import sys
class Away:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "llvmlite":
            raise ImportError("llvmlite is kept away")
sys.meta_path.insert(0, Away())
import numpy as np
import jitney as jt
f = jt.load_exported(sys.argv[1])
data = np.load(sys.argv[2])
got = f({"x": data["x"], "w": [data["w"]]}, 2.0)
assert (got["y"] == data["y"]).all() and got["s"] == (data["s"], 3), got
f({"x": data["x"], "w": [data["w"]]}, 2.0)
assert "llvmlite.binding" not in sys.modules
bad = [m for m in sys.modules if m.startswith(("jitney.codegen.lowering", "jitney.ir.passes",
    "jitney.tracer.core.tracing", "jitney.tracer.jit", "jitney.tracer.autograph"))]
assert not bad, bad
from jitney.runtime.threads.pool import pool_stats
print(pool_stats().forks + pool_stats().inline, f.cpu)
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_process_without_llvmlite(tmp_path: Path, threads: str) -> None:
    def f(p: Any, k: float) -> Any:
        h = np.tanh(p["w"][0] @ p["x"]) * k
        return {"y": h, "s": (h.sum(), 3)}

    x, w = RNG.normal(size=(300, 400)), RNG.normal(size=(200, 300))
    jt.export(f, {"x": x, "w": [w]}, 2.0).save(tmp_path / "f.jitney")
    with jt.config(cpu=CPU if CPU.startswith("x86") else "native"):
        want = jt.jit(f)({"x": x, "w": [w]}, 2.0)
    np.savez(tmp_path / "data.npz", x=x, w=w, y=want["y"], s=want["s"][0])
    command = [sys.executable, "-c", ALONE, str(tmp_path / "f.jitney"), str(tmp_path / "data.npz")]
    environment = {**os.environ, "JITNEY_CACHE_DIR": str(tmp_path / "empty")}
    environment |= {"JITNEY_NUM_THREADS": threads}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == CPU


# Files that lie


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    size = struct.unpack_from("<Q", data, 16)[0]
    return json.loads(data[64 : 64 + size]), data[64 + size :]


def joined(header: Any, rest: bytes) -> bytes:
    """A file with this header, and a checksum that is right."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    begin = struct.pack("<8sIIQQ", b"jitney\x00E", 1, 0, len(text), 64 + len(text) + len(rest))
    hashed = blake2b(begin + bytes(32) + text + rest, digest_size=32).digest()
    return begin + hashed + text + rest


@pytest.fixture(scope="module")
def file() -> bytes:
    made = jt.export(assigns, SD(7), SD(7), cpus=CPU)
    fails = jt.export(lambda x, i: (x[i], {"a": x}, 3), W, 2, cpus=CPU)
    assert made.data[:8] == fails.data[:8]
    return fails.data


def refuses(tmp_path: Path, data: bytes, message: str | None = None) -> None:
    path = tmp_path / "lies.jitney"
    path.write_bytes(data)
    with pytest.raises(jt.errors.ExportError, match=message):
        jt.load_exported(path)


def test_damaged_files(tmp_path: Path, file: bytes) -> None:
    refuses(tmp_path, b"", "is no file that jt.export")
    refuses(tmp_path, b"\x7fELF" + file[4:], "is no file that jt.export")
    refuses(tmp_path, file[:8] + struct.pack("<I", 2) + file[12:], "version 2 of the format")
    refuses(tmp_path, file + b"\0", "bytes of")
    for n in (9, 63, 64, 100, len(file) // 2, len(file) - 1):
        refuses(tmp_path, file[:n])
    for at in range(0, len(file), 97):
        changed = bytearray(file)
        changed[at] ^= 0x40
        refuses(tmp_path, bytes(changed))


def test_headers_that_are_no_headers(tmp_path: Path, file: bytes) -> None:
    header, rest = parts(file)
    assert joined(header, rest)[64:] != b"" and jt.load_exported(_written(tmp_path, header, rest))
    for text in (b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b"1" * 5000):
        refuses(tmp_path, joined(text, rest), "damaged")


def _written(tmp_path: Path, header: Any, rest: bytes) -> Path:
    path = tmp_path / "changed.jitney"
    path.write_bytes(joined(header, rest))
    return path


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(p for key, item in inner for p in places(item, (*path, key)))]


STRANGE = [
    None,
    -1,
    0,
    1 << 62,
    1 << 200,
    1.5,
    True,
    "x",
    "f64[99999999999]",
    "f64[-3]",
    "",
    [],
    {},
    [[]],
    ["leaf", 0],
]


def test_no_value_of_a_header_breaks_the_reader(
    tmp_path: Path, file: bytes, all_cases: bool
) -> None:
    """Each value in turn is another: an ExportError, or a function, which is not called."""
    header, rest = parts(file)
    path = tmp_path / "changed.jitney"
    loads = 0
    cases = [(place, value) for place in places(header)[1:] for value in STRANGE]
    for place, value in cases[:: 1 if all_cases else 5]:
        changed = json.loads(json.dumps(header))
        holder = changed
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = value
        path.write_bytes(joined(changed, rest))
        try:
            jt.load_exported(path)
            loads += 1
        except jt.errors.ExportError:
            pass
    assert loads < len(cases) / 2


def test_tables_that_point_elsewhere(tmp_path: Path, file: bytes) -> None:
    header, rest = parts(file)
    pieces = header["pieces"]
    image = header["programs"][0]["image"]
    for name, row in (("own", [0, 0]), ("own", [1 << 40, 0]), ("own", [image["sizes"][0], 1 << 50]),
                      ("outer", [image["sizes"][0], 99, 0]), ("outer", [-8, 0, 0]),
                      ("outer", [image["sizes"][0] + 1, 0, 0])):  # fmt: skip
        changed = json.loads(json.dumps(header))
        changed["pieces"].append([len(rest), 8 * len(row)])
        changed["programs"][0]["image"][name] = len(pieces)
        refuses(tmp_path, joined(changed, rest + struct.pack(f"<{len(row)}q", *row)), "damaged")


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (("imports",), ["jitney_loop:os:system:d->d"], "which exported functions may not have"),
        (("imports",), ["jitney_callback"], "which exported functions may not have"),
        (("errors",), [["KeyError", "{0.__class__}", ["f64"], None]], "message with other values"),
        (("errors",), [["SystemExit", "x", [], None]], "of no kind that there is"),
        (("results",), [["output", 7, False, False]] * 3, "has no such array"),
        (("mutated",), [7], "has no such array|assigns"),
        (("inputs",), ["f32[6,5]", "i64[]"], "other arguments"),
        (("image", "imports"), ["jitney_random:f"], "may not have"),
        (("image", "exports"), [["jitney_entry", 1 << 40]], "not from 0"),
        (("image", "sizes"), [4096 * 1000, 0], "do not fit the code"),
    ],
)
def test_programs_that_want_what_they_may_not(
    tmp_path: Path, file: bytes, where: tuple[str, ...], value: Any, message: str
) -> None:
    header, rest = parts(file)
    holder = header["programs"][0]
    for key in where[:-1]:
        holder = holder[key]
    holder[where[-1]] = value
    refuses(tmp_path, joined(header, rest), message)
