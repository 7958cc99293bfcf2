"""Checked code: planted faults of every kind are caught; right programs pass, and give the same."""

import re
import threading

import numpy as np
import pytest
from loop_programs import everything, instance, mixed, rows
from programs import PATTERNS, build, compiled, expected, fits, same, sample

import jitney as jt
from jitney.codegen.cpu import units
from jitney.codegen.kernels.matmul import lower_contraction
from jitney.codegen.llvm.accesses import AccessEmitter
from jitney.codegen.llvm.text import TextEmitter
from jitney.codegen.module import CallbackSite, NativeModule
from jitney.codegen.program import compile as codegen
from jitney.codegen.program.entry import EntryEmitter
from jitney.codegen.schedule import rowblocks
from jitney.ir.types import I64, TensorType
from jitney.runtime.compile import clear_memory_cache
from jitney.runtime.executable import Executable
from jitney.runtime.sanitizer.report import SanitizerError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 50))


@pytest.fixture(autouse=True)
def checked():
    with jt.config(sanitize=True, cache=False, verify=False):
        clear_memory_cache()
        yield
    clear_memory_cache()


def fault(f, *args) -> str:
    """What checked code says of `f`; the process goes on."""
    with pytest.raises(SanitizerError, match="bug in jitney, please report") as error:
        jt.jit(f)(*args)
    return str(error.value)


def network(x, w, b, v):
    return np.maximum(np.maximum(x @ w + b, 0) @ v, 0)


NETWORK = [RNG.normal(size=s) for s in ((256, 64), (64, 512), 512, (512, 512))]


# Planted in the code generator.


def test_an_index_that_is_off_by_one(monkeypatch):
    locate = AccessEmitter.locate

    def shifted(self, array, index):
        base, flat = locate(self, array, index)
        return base, flat + int(array.kind == "output")

    monkeypatch.setattr(AccessEmitter, "locate", shifted)
    text = fault(lambda x: np.exp(x) + 1, X)
    assert "output 0, float64[60, 50]" in text and "out of bounds" in text
    assert "writes 64 bytes" in text or "writes" in text
    assert "test_sanitizer.py" in text and "exp_add" in text


def test_a_tail_that_writes_whole_vectors(monkeypatch):
    store = TextEmitter.store_elements

    def unmasked(self, dtype, value, place, *, mask=None):
        store(self, dtype, value, place)

    monkeypatch.setattr(TextEmitter, "store_elements", unmasked)
    assert "out of bounds of output 0" in fault(lambda x: x * 2, X[0, :5].copy())


def test_arrays_that_overlap(monkeypatch):
    plan = codegen.plan

    def crowded(program):
        size = plan(program)
        for step in program.steps:
            for array in (a for arrays in rowblocks.touched(step) for a in arrays):
                array.offset = 0 if array.kind == "temp" else array.offset
        return size

    monkeypatch.setattr(codegen, "plan", crowded)
    text = fault(lambda x, y: (x @ y) @ (y @ x), X[:50], X[:50].T.copy().T)
    assert "written as temporary" in text


def test_an_arena_that_is_too_small(monkeypatch):
    plan = codegen.plan
    monkeypatch.setattr(codegen, "plan", lambda program: plan(program) - 64)
    assert "out of bounds of temporary" in fault(lambda x: (x @ x.T) @ x, X)


def test_a_local_array_that_others_read(monkeypatch):
    keep = rowblocks._keep_local

    def greedy(step, uses, kept):
        own = type(uses)(a for arrays in rowblocks.touched(step) for a in arrays)
        keep(step, own, ())

    monkeypatch.setattr(rowblocks, "_keep_local", greedy)
    text = fault(jt.grad(lambda *a: network(*a).sum(), (1, 2, 3)), *NETWORK)
    assert "nobody has written" in text or "written as" in text


def test_units_that_read_each_others_rows(monkeypatch):
    function = units.function

    def late(*args):
        text = function(*args)
        following = re.search(r"(%\w+) = add nsw i64 %u", text)[1]
        head, mark, second = text.rpartition(" = mul nsw i64 ")
        return head + mark + re.sub(r"^%[\w.]+", following, second)

    monkeypatch.setattr(units, "function", late)
    monkeypatch.setattr(rowblocks, "LOCAL_BYTES", 0)
    text = fault(network, *NETWORK)
    assert "of temporary" in text


def test_a_step_that_was_forgotten(monkeypatch):
    flush = EntryEmitter.flush

    def forgetful(self):
        del self.calls[:1]
        flush(self)

    monkeypatch.setattr(EntryEmitter, "flush", forgetful)
    text = fault(lambda x, y: np.tanh(x @ y) @ x, X, X.T.copy())
    assert "nobody has written" in text and "float64" in text
    assert "unwritten of output 0" in fault(lambda x: x + 1, X)


def test_an_operand_that_is_packed_too_short(monkeypatch):
    packed = lower_contraction._packed_panels

    def short(low, side, panel):
        view = packed(low, side, panel)
        view.array.shape = (*view.array.shape[:-1], view.array.shape[-1] - 8)
        return view

    monkeypatch.setattr(lower_contraction, "_packed_panels", short)
    assert "out of bounds of temporary" in fault(lambda x, y: x @ y.T, X, X)


# Planted in the text.


def run(body: str, *arrays: np.ndarray, entry: str = "", scratch: int = 0, callbacks=()) -> list:
    """Run a module: `body`, which has the pointers %x of an input and %y of an output of 8 words."""
    types = [TensorType(a.shape, a.dtype) for a in arrays]
    text = f"""
declare ptr @jitney_san_array(ptr, i64, i64, i64, i64)
declare void @jitney_parallel_for(ptr, ptr, i64, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @jitney_callback(i64, ptr)
@table = private constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]
{entry}
define i32 @entry(ptr %args) {{
  %x_raw = load ptr, ptr %args, align 8
  %y_at = getelementptr ptr, ptr %args, i64 1
  %y_raw = load ptr, ptr %y_at, align 8
  %x = call ptr @jitney_san_array(ptr %x_raw, i64 0, i64 64, i64 1, i64 1)
  %y = call ptr @jitney_san_array(ptr %y_raw, i64 0, i64 64, i64 2, i64 0)
{body}
  ret i32 0
}}
"""
    module = NativeModule(
        text,
        "entry",
        types,
        [(1,)] * len(types),
        [TensorType((8,), I64)],
        scratch,
        imports={"jitney_parallel_for"},
        arrays=["the arena", "input 0", "output 0"],
        callbacks=list(callbacks),
    )
    return Executable(module).run(list(arrays))


WORDS = np.arange(8)
TEXTS = {
    "beyond": ("%p = getelementptr i64, ptr %x, i64 8\n %v = load i64, ptr %p", "at byte 64 of 64"),
    "before": ("%p = getelementptr i64, ptr %y, i64 -1\n store i64 1, ptr %p", "at byte -8 of 64"),
    "unwritten": ("%v = load i64, ptr %y", "nobody has written, of output 0"),
    "across": ("%p = getelementptr i8, ptr %x, i64 60\n %v = load i64, ptr %p", "out of bounds"),
    "null": ("%v = load i64, ptr null", "the address 0"),
    "wild": ("%p = inttoptr i64 72057594037927936000 to ptr\n store i8 1, ptr %p", "the address 0x"),
    "constant": ("store i64 1, ptr @table", "of a constant, the constant @table"),
    "table": ("%p = getelementptr i64, ptr @table, i64 4\n %v = load i64, ptr %p", "@table of entry"),
    "stack": ("%s = alloca [3 x i32]\n %v = load i32, ptr %s", "the array %s on the stack of entry"),
    "freed": (
        "%m = call ptr @malloc(i64 8)\n store i64 1, ptr %m\n call void @free(ptr %m)\n"
        " %v = load i64, ptr %m",
        "of a tape",
    ),
    "copied": ("call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 65, i1 false)", "reads 65 bytes"),
    "filled": ("call void @llvm.memset.p0.i64(ptr %y, i8 0, i64 65, i1 false)", "writes 65 bytes"),
    "lanes": (
        "%p = getelementptr i64, ptr %x, i64 6\n %v = call <4 x i64> @llvm.masked.load.v4i64.p0(ptr"
        " align 8 %p, <4 x i1> <i1 true, i1 true, i1 false, i1 true>, <4 x i64> zeroinitializer)",
        "at byte 72 of 64",
    ),
    "gathered": (
        "%p = getelementptr i64, ptr %x, <2 x i64> <i64 7, i64 9>\n %v = call <2 x i64>"
        " @llvm.masked.gather.v2i64.v2p0(<2 x ptr> align 8 %p, <2 x i1> splat (i1 true), <2 x i64>"
        " zeroinitializer)",
        "at byte 72 of 64",
    ),
    "compressed": (
        "%p = getelementptr i64, ptr %y, i64 6\n call void @llvm.masked.compressstore.v4i64(<4 x i64>"
        " zeroinitializer, ptr %p, <4 x i1> <i1 true, i1 false, i1 true, i1 true>)",
        "writes 24 bytes at byte 48 of 64",
    ),
    "callback": (
        "%c = alloca [2 x ptr]\n store ptr %x, ptr %c\n %d = getelementptr ptr, ptr %c, i64 1\n"
        " store ptr %y, ptr %d\n %v = call i32 @jitney_callback(i64 0, ptr %c)",
        "reads 72 bytes",
    ),
}  # fmt: skip
UNITS = """
define internal void @unit(ptr %p, i64 %lo, i64 %hi) {{
  %a = getelementptr i64, ptr %p, i64 {write}
  %b = getelementptr i64, ptr %p, i64 {read}
  store i64 %lo, ptr %a
  %v = load i64, ptr %b
  ret void
}}
"""


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name):
    text, message = TEXTS[name]
    nine = TensorType((9,), I64)
    site = CallbackSite(lambda x: (x,), (nine,), (nine,))
    with pytest.raises(SanitizerError) as error:
        run(text, WORDS, callbacks=[site] if name == "callback" else ())
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("write", "read", "message"),
    [
        ("0", "%lo", "which another unit of the same loop touches, of output 0"),  # write, write
        ("%lo", "0", "which another unit"),  # read what another wrote
        ("%hi", "%lo", "nobody has written"),
        ("%lo", "%lo", ""),
    ],
)
def test_units(write, read, message):
    entry = UNITS.format(write=write, read=read)
    body = "call void @jitney_parallel_for(ptr @unit, ptr %y, i64 4, i64 1)"
    if not message:
        assert run(body, WORDS, entry=entry)[0][:4].tolist() == [0, 1, 2, 3]
        return
    with pytest.raises(SanitizerError, match=message):
        run(body, WORDS, entry=entry)


def test_a_unit_that_writes_what_another_has_read():
    entry = UNITS.format(write="%lo", read="7").replace("i64 %lo, ptr %a", "i64 %lo, ptr %b", 1)
    body = "call void @jitney_parallel_for(ptr @unit, ptr %y, i64 4, i64 1)"
    with pytest.raises(SanitizerError, match="another unit"):
        run(body, WORDS, entry=entry)


# Right programs.


def test_results_are_the_same():
    def step(x, y):
        for _ in range(3):
            x = np.where(x > 0, np.sort(x, axis=1), np.cumsum(x, axis=0))
            x = x / np.abs(x).max()
        return x @ y, np.linalg.eigh(x[:8, :8] @ x[:8, :8].T)[0], np.fft.fft(y)[:3]

    for got, want in zip(jt.jit(step)(X, X.T.copy()), step(X, X.T.copy()), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_tapes_callbacks_and_nested_calls():
    inner = jt.jit(lambda x: x * 2)

    def collatz(x):
        def body(state):
            k, x = state
            return k + 1, jt.py_func(inner, jt.ShapeDtype((4,), np.float64), np.sin(x))

        return jt.while_loop(lambda s: s[0] < 5, body, (0, x))[1].sum()

    x = RNG.normal(size=4)
    assert np.isfinite(jt.jit(collatz)(x))

    def power(x):
        return jt.while_loop(lambda s: s[0] < x[0], lambda s: (s[0] + 1, s[1] * x), (0.0, x))[
            1
        ].sum()

    np.testing.assert_allclose(jt.jit(jt.grad(power))(x + 5), jt.grad(power)(x + 5))


def test_many_threads():
    f = jt.jit(lambda x: np.tanh(x @ x.T).sum(axis=0))
    want = np.tanh(X @ X.T).sum(axis=0)
    got: list = []
    workers = [threading.Thread(target=lambda: got.append(f(X))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(got) == 4 and all(np.allclose(g, want) for g in got)


def test_the_setting_is_part_of_the_key():
    def f(x):
        return x + 1

    with jt.config(sanitize=False):
        plain = jt.jit(f)
        plain(X)
    same = jt.jit(f)
    same(X)
    assert "jitney_san" in same.lower(X).llvm()
    with jt.config(sanitize=False):
        assert "jitney_san" not in plain.lower(X).llvm()
    with pytest.raises(TypeError, match="sanitize is True or False"):
        jt.config.sanitize = 1


def test_an_error_leaves_no_trace():
    with pytest.raises(SanitizerError):
        run(TEXTS["beyond"][0], WORDS)
    body = "call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 64, i1 false)"
    assert run(body, WORDS)[0].tolist() == WORDS.tolist()


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.__name__)
def test_patterns(pattern):
    for shape in [(67,), (37, 65), (130, 9)]:
        if fits(pattern, shape):
            x = sample(shape, "f8")
            graph = build(pattern, x)
            same(compiled(graph, [x]).run([x]), expected(graph, [x]))


@pytest.mark.parametrize("program", [mixed, rows, everything], ids=lambda p: p.__name__)
def test_loop_programs(program):
    graph, arrays = instance(program, 7)
    same(compiled(graph).run(arrays), expected(graph, arrays))
