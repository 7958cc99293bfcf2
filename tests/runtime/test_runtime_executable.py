"""Calls of native code: guards, layouts, errors, scratch, threads, on hand-written LLVM text."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitney.codegen.loop_ir.index import contiguous_strides
from jitney.codegen.module import ErrorSite, NativeModule
from jitney.ir.build import Builder
from jitney.ir.graph import Graph, SourceLine
from jitney.ir.record import replace
from jitney.ir.types import DTYPE_NAMES, F32, F64, I64, TensorType
from jitney.runtime import compile as compiling
from jitney.runtime.call.callable import is_native
from jitney.runtime.executable import Executable, error_of, prepare
from jitney.runtime.native.host import host_target

LOAD = """
define internal ptr @argument(ptr %args, i64 %k) alwaysinline {
  %at = getelementptr ptr, ptr %args, i64 %k
  %p = load ptr, ptr %at
  ret ptr %p
}
"""


def copier(type: TensorType, strides: tuple[int, ...]) -> NativeModule:
    """Copies its input, read with `strides`, element by element."""
    bits = 8 * type.dtype.itemsize
    lines = [LOAD, "define i32 @entry(ptr %args) {"]
    lines.append("  %x = call ptr @argument(ptr %args, i64 0)")
    lines.append("  %y = call ptr @argument(ptr %args, i64 1)")
    for k, index in enumerate(np.ndindex(type.shape)):
        offset = sum(i * s for i, s in zip(index, strides, strict=True))
        lines.append(f"  %p{k} = getelementptr i{bits}, ptr %x, i64 {offset}")
        lines.append(f"  %v{k} = load i{bits}, ptr %p{k}")
        lines.append(f"  %q{k} = getelementptr i{bits}, ptr %y, i64 {k}")
        lines.append(f"  store i{bits} %v{k}, ptr %q{k}")
    lines.append("  ret i32 0\n}\n")
    return NativeModule("\n".join(lines), "entry", [type], [strides], [type])


ADD_TEXT = (
    LOAD
    + """
define i32 @entry(ptr %args) {
entry:
  %x = call ptr @argument(ptr %args, i64 0)
  %y = call ptr @argument(ptr %args, i64 1)
  %o = call ptr @argument(ptr %args, i64 2)
  %s = call ptr @argument(ptr %args, i64 3)
  br label %fill
fill:                                             ; x + y into the arena, then from there to o
  %i = phi i64 [ 0, %entry ], [ %i1, %fill ]
  %px = getelementptr double, ptr %x, i64 %i
  %py = getelementptr double, ptr %y, i64 %i
  %ps = getelementptr double, ptr %s, i64 %i
  %vx = load double, ptr %px
  %vy = load double, ptr %py
  %sum = fadd double %vx, %vy
  store double %sum, ptr %ps
  %i1 = add i64 %i, 1
  %d1 = icmp slt i64 %i1, 100
  br i1 %d1, label %fill, label %read
read:
  %j = phi i64 [ 0, %fill ], [ %j1, %read ]
  %pt = getelementptr double, ptr %s, i64 %j
  %po = getelementptr double, ptr %o, i64 %j
  %vt = load double, ptr %pt
  store double %vt, ptr %po
  %j1 = add i64 %j, 1
  %d2 = icmp slt i64 %j1, 100
  br i1 %d2, label %read, label %done
done:
  ret i32 0
}
"""
)
V100 = TensorType((100,), F64)


def adder(**fields: Any) -> NativeModule:
    module = NativeModule(ADD_TEXT, "entry", [V100, V100], [(1,), (1,)], [V100], arena_bytes=800)
    return replace(module, **fields)


@pytest.fixture(params=["native", "portable"])
def portable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run a test through call programs, and through NumPy's Python interface."""
    if request.param == "portable":
        monkeypatch.setenv("JITNEY_NATIVE_CALLS", "0")
    return bool(request.param == "portable")


def test_run(portable: bool) -> None:
    add = Executable(adder())
    assert is_native(add) != portable
    x, y = np.arange(100.0), np.ones(100)
    for arrays in ([x, y], (x, y)):
        (out,) = add.run(arrays)
        assert (out == x + y).all() and out.flags.owndata and out.flags.c_contiguous
    first, second = add.run([x, y])[0], add.run([x, y])[0]
    assert not np.shares_memory(first, second)
    assert (add.run([x, x])[0] == 2 * x).all()
    assert "fadd" in add.llvm and "add" in add.asm()
    assert add.nbytes > 0 and add.timings["link"] > 0 and add.module.arena_bytes == 800
    assert "f64[100]" in repr(add)


@pytest.mark.parametrize("work", [None, 10, 10**9])
def test_with_and_without_the_gil(work: int | None) -> None:
    x = np.arange(100.0)
    assert (Executable(adder(work=work)).run([x, x])[0] == 2 * x).all()


class Sub(np.ndarray):
    pass


def test_inputs_of_other_layouts_are_brought_into_the_declared_one(portable: bool) -> None:
    add = Executable(adder())
    x, y = np.arange(100.0), np.ones(100)
    raw = np.zeros(801, np.uint8)
    misaligned = raw[1:].view(np.float64)
    misaligned[:] = x
    read_only = x.copy()
    read_only.setflags(write=False)
    described = x.astype(np.dtype(np.float64, metadata={"unit": "m"}))
    for other in (x[::-1][::-1], np.repeat(x, 3)[::3], x[::-1].copy()[::-1], misaligned,
                  x.astype(">f8"), x.view(Sub), read_only, described):  # fmt: skip
        (out,) = add.run([other, y])
        assert (out == x + y).all() and type(out) is np.ndarray
        (out,) = add.run([y, other])
        assert (out == x + y).all()


@pytest.mark.parametrize(
    "arrays",
    [
        [],
        [np.ones(100)],
        [np.ones(100)] * 3,
        [np.ones(99), np.ones(100)],
        [np.ones((100, 1)), np.ones(100)],
        [np.ones(100, np.float32), np.ones(100)],
        [np.ones(100), np.ones(100, np.int64)],
        [np.ones(100), None],
        [np.ones(100), [1.0] * 99],
        ["text", np.ones(100)],
    ],
)
def test_wrong_arrays_are_a_type_error(portable: bool, arrays: list[Any]) -> None:
    with pytest.raises(TypeError, match=r"takes 2 arrays|expected an array f64\[100\]"):
        Executable(adder()).run(arrays)


def test_integers_with_two_names() -> None:
    type = TensorType((3,), np.dtype(np.longlong))
    copy = Executable(copier(type, (1,)))
    for name in (np.int64, np.longlong, np.int_):
        (out,) = copy.run([np.array([1, 2, 3], name)])
        assert (out == [1, 2, 3]).all() and out.dtype is DTYPE_NAMES["i64"]


@pytest.mark.parametrize("name", list(DTYPE_NAMES))
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (3, 0, 2), (1, 4, 1)])
def test_every_dtype_and_shape(name: str, shape: tuple[int, ...]) -> None:
    type = TensorType(shape, DTYPE_NAMES[name])
    copy = Executable(copier(type, contiguous_strides(shape)))
    x = np.arange(type.size).reshape(shape).astype(type.dtype)
    for given_array in (x, np.array(x, order="F"), x[...]):
        (out,) = copy.run([given_array])
        assert out.dtype is type.dtype and out.shape == shape and (out == x).all()


@settings(max_examples=20)
@given(st.data())
def test_declared_strides(data: st.DataObject) -> None:
    """Any view can be declared, and any array of that shape can be passed to it."""
    rank = data.draw(st.integers(0, 3))
    base = np.arange(6**rank, dtype=np.int64).reshape((6,) * rank)
    view = base.transpose(data.draw(st.permutations(range(rank))))
    index = []
    for _ in range(rank):
        start, stop = data.draw(st.integers(0, 6)), data.draw(st.integers(0, 6))
        index.append(slice(start, stop, data.draw(st.sampled_from([1, 2, 5])))
                     if start <= stop
                     else slice(start - 1 if start else 0, stop or None, -1))  # fmt: skip
    view = view[(*index, ...)]
    strides = tuple(s // 8 for s in view.strides)
    type = TensorType(view.shape, I64)
    copy = Executable(copier(type, strides))
    other = np.asarray(np.random.default_rng(0).integers(0, 100, view.shape))
    for array in (view, other, np.array(other, order="F"), other.astype(">i8")):
        (out,) = copy.run([array])
        assert (out == array).all()
        fitting = prepare(array, type, strides)
        assert (fitting == array).all() and prepare(fitting, type, strides) is fitting
    assert prepare(view, type, strides) is view


def test_broadcast_strides() -> None:
    type = TensorType((3, 4), F32)
    row = np.arange(4, dtype=np.float32)
    view = np.broadcast_to(row, (3, 4))
    copy = Executable(copier(type, (0, 1)))
    assert (copy.run([view])[0] == view).all()
    with pytest.raises(ValueError, match="cannot take the strides"):
        copy.run([np.array(view)])
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(5, dtype=np.float32), 3)
    overlapping = Executable(copier(TensorType((3, 3), F32), (1, 1)))
    assert (overlapping.run([windows])[0] == windows).all()
    with pytest.raises(ValueError, match="cannot take the strides"):
        prepare(np.ones((3, 3), np.float32), TensorType((3, 3), F32), (1, 1))


# ------------------------------------------------------------------------------------------ errors

FAIL_TEXT = (
    LOAD
    + """
define i32 @entry(ptr %args) {
  %x = call ptr @argument(ptr %args, i64 0)
  %status = call ptr @argument(ptr %args, i64 2)
  %code64 = load i64, ptr %x
  %first_at = getelementptr i64, ptr %x, i64 1
  %first = load i64, ptr %first_at
  %second_at = getelementptr i64, ptr %x, i64 2
  %second = load i64, ptr %second_at
  store i64 %first, ptr %status
  %status1 = getelementptr i64, ptr %status, i64 1
  store i64 %second, ptr %status1
  %code = trunc i64 %code64 to i32
  ret i32 %code
}
"""
)
HERE = SourceLine("model.py", 12, "step")


def failing() -> Executable:
    return Executable(
        NativeModule(
            FAIL_TEXT,
            "entry",
            [TensorType((3,), I64)],
            [(1,)],
            [],
            errors=[
                ErrorSite("index", "index {0} is out of bounds for axis of size {1}", HERE),
                ErrorSite("assert", "loss is negative {not a field}", SourceLine("a.py", 3)),
                ErrorSite("value", "too large: {} > {:.3f}", None, ("i64", "f64")),
            ],
        )
    )


def test_errors_of_native_code(portable: bool) -> None:
    fail = failing()
    assert fail.run([np.array([0, 1, 2])]) == []
    with pytest.raises(IndexError) as caught:
        fail.run([np.array([1, -7, 5])])
    assert str(caught.value) == "index -7 is out of bounds for axis of size 5"
    assert caught.value.__notes__ == ["at model.py:12, in step"]
    with pytest.raises(AssertionError) as raised:
        fail.run([np.array([2, 0, 0])])
    assert str(raised.value) == "loss is negative {not a field}"
    assert raised.value.__notes__ == ["at a.py:3"]
    half = np.array([0.5]).view(np.int64)[0]
    with pytest.raises(ValueError, match=r"^too large: 3 > 0.500$"):
        fail.run([np.array([3, 3, half])])
    for code in (4, -3):
        with pytest.raises(RuntimeError, match="no error site"):
            fail.run([np.array([code, 0, 0])])
    with pytest.raises(IndexError):  # after the arguments were prepared
        fail.run([np.array([5, -7, 1])[::-1]])


@pytest.mark.parametrize(
    ("name", "value"),
    [("f32", -1.5), ("f64", 1e300), ("i8", -3), ("u8", 200), ("u64", 2**64 - 1), ("bool", True)],
)
def test_values_in_messages(name: str, value: Any) -> None:
    word = np.zeros(8, np.uint8)
    bits = np.array([value], DTYPE_NAMES[name]).view(np.uint8)
    word[: bits.size] = bits
    status = [int(word.view(np.int64)[0])] + [0] * 7
    error = error_of(ErrorSite("value", "got {}", None, (name,)), status)
    assert str(error) == f"got {value}"


# ----------------------------------------------------------------------------- memory and lifetime


def test_nothing_leaks() -> None:
    add, fail = Executable(adder()), failing()
    x, swapped = np.arange(100.0), np.arange(100.0).astype(">f8")
    code = np.array([1, 0, 0])
    watched = [None, x, x.dtype, swapped, code, (x, x)]

    def use(n: int) -> list[int]:
        for _ in range(n):
            add.run([x, x])
            add.run([swapped, x])
            with pytest.raises(IndexError):
                fail.run([code])
        gc.collect()
        return [sys.getrefcount(obj) for obj in watched]

    before = use(10)
    after = use(300)
    assert all(abs(a - b) < 60 for a, b in zip(before, after, strict=True)), (before, after)


def test_an_executable_is_freed() -> None:
    import weakref

    add = Executable(adder())
    library = weakref.ref(add._library)
    add.run([np.ones(100), np.ones(100)])
    del add
    gc.collect()
    assert library() is None


def test_concurrent_calls() -> None:
    add = Executable(adder())
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(1500):
            x, y = rng.normal(size=100), rng.normal(size=100)
            if not (add.run([x, y])[0] == x + y).all():
                wrong.append(seed)

    np.random.default_rng(0)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_big_outputs_own_recycled_memory() -> None:
    big = TensorType((1 << 19,), F64)
    text = "define i32 @entry(ptr %args) {\n  ret i32 0\n}\n"
    nothing = Executable(NativeModule(text, "entry", [], [], [big, V100]))
    large, small = nothing.run([])
    assert large.shape == big.shape and large.flags.owndata and small.flags.owndata
    large[:] = 1
    address = large.ctypes.data
    del large
    if sys.platform.startswith("linux"):
        assert nothing.run([])[0].ctypes.data == address


def test_code_for_another_machine_is_not_run() -> None:
    host = host_target()
    with pytest.raises(ValueError, match="cannot run on this machine"):
        Executable(adder(), replace(host, features=host.features + ",+warp-drive"))
    with pytest.raises(ValueError, match="cannot run on this machine"):
        Executable(adder(), replace(host, triple="riscv64-unknown-linux-gnu"))
    x = np.arange(100.0)
    generic = replace(host, cpu="generic", features="", vector_bits=128)
    assert (Executable(adder(), generic).run([x, x])[0] == 2 * x).all()


# ------------------------------------------------------------------------------------ compile, keys


def graph_of(
    value: float = 1.0, line: int = 1, name: str = "y", op: str = "add", shape: int = 4
) -> Graph:
    graph = Graph("f")
    x = graph.add_param(TensorType((shape,), F64), name)
    b = Builder(graph, SourceLine("m.py", line))
    graph.outputs = [b.op(op, x, b.full_like(x, value))]
    return graph


def test_graph_key() -> None:
    key = compiling.graph_key(graph_of())
    assert key == compiling.graph_key(graph_of()) == compiling.graph_key(graph_of(name="other"))
    different = [
        graph_of(value=2.0),
        graph_of(value=-1.0),
        graph_of(line=2),
        graph_of(op="sub"),
        graph_of(shape=5),
    ]
    assert len({key, *map(compiling.graph_key, different)}) == 6
    zeros = [compiling.graph_key(graph_of(value=v)) for v in (0.0, -0.0)]
    assert zeros[0] != zeros[1]


def test_compile_and_remember() -> None:
    x = np.arange(4.0)
    compiled = compiling.compile(graph_of())
    assert (compiled.run([x])[0] == x + 1).all()
    assert compiling.compile(graph_of(name="z")) is compiled
    assert compiling.compile(graph_of(), compiling.CompileOptions(fastmath=True)) is not compiled
    strided = compiling.compile(graph_of(), input_strides=[(-2,)])
    assert strided is not compiled
    assert (strided.run([np.arange(8.0)[::-2]])[0] == np.arange(8.0)[::-2] + 1).all()
    assert {"optimise", "codegen", "native"} <= set(compiled.timings)
    compiling.clear_memory_cache()
    assert compiling.compile(graph_of()) is not compiled
    assert (compiled.run([x])[0] == x + 1).all()
