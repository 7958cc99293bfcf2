"""Engine, object cache, layout, memory: each on small hand-written LLVM text."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from jitney.codegen.target import Target
from jitney.ir.record import replace
from jitney.runtime.memory import arrays as memory
from jitney.runtime.memory.recycling import Recycler, default_limit, recycler
from jitney.runtime.native import engine, layout
from jitney.runtime.native.engine import NativeError, engine_for, host_engine
from jitney.runtime.native.host import detected_vector_bits, host_target

ADD = "define i32 @add(i32 %x) {{\n  %y = add i32 %x, {n}\n  ret i32 %y\n}}\n"
UNARY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)


def python(code: str, **environment: str) -> str:
    """Run code in a child process; its output."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=40,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ------------------------------------------------------------------------------------------ engine


def test_text_becomes_code() -> None:
    library = host_engine().load(ADD.format(n=5), ["add"])
    assert UNARY(library.address("add"))(37) == 42
    assert library.nbytes > 0
    assert "add" in host_engine().asm(ADD.format(n=5))


def test_libraries_with_the_same_symbols_do_not_meet() -> None:
    libraries = [host_engine().load(ADD.format(n=n), ["add"]) for n in range(8)]
    assert [UNARY(library.address("add"))(100) for library in libraries] == list(range(100, 108))
    assert len({library.address("add") for library in libraries}) == 8


def test_imported_symbols_and_libm() -> None:
    text = """
declare i32 @callback(i32)
declare double @cbrt(double)
define i32 @go(i32 %x) {
  %y = call i32 @callback(i32 %x)
  %c = call double @cbrt(double 27.0)
  %k = fptosi double %c to i32
  %z = add i32 %y, %k
  ret i32 %z
}
"""
    callback = UNARY(lambda x: 10 * x)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address
    library = host_engine().load(text, ["go"], {"callback": address})
    assert UNARY(library.address("go"))(4) == 43


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("this is no module", "expected top-level entity"),
        ("define i32 @f() {\n  ret i64 0\n}", "doesn't match function result type"),
        ("define void @f() {\n  br label %x\nx:\n  %y = add i32 %z, 1\n  %z = add i32 %y, 1\n"
         "  ret void\n}", "does not dominate"),
    ],
)  # fmt: skip
def test_a_broken_module_is_an_exception(text: str, message: str) -> None:
    for use in (host_engine().verify, host_engine().emit_object, host_engine().asm):
        with pytest.raises(NativeError, match=message):
            use(text)


def test_a_missing_symbol_is_an_exception() -> None:
    text = "declare void @jitney_nowhere()\n"
    text += "define void @f() {\n  call void @jitney_nowhere()\n  ret void\n}"
    with pytest.raises(NativeError, match="cannot link"):
        host_engine().load(text, ["f"])


def test_code_is_unloaded_with_its_library() -> None:
    def mapped() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0])

    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    # 256 KiB of constants each: 400 libraries that stay would be 100 MiB.
    body = "@big = internal constant [65536 x i32] [" + ", ".join(["i32 7"] * 65536) + "]\n"
    body += "define i32 @f(i32 %i) {\n  %p = getelementptr i32, ptr @big, i32 %i\n"
    body += "  %v = load i32, ptr %p\n  ret i32 %v\n}\n"
    obj = host_engine().emit_object(body)
    for k in range(450):
        library = host_engine().link(obj, ["f"])
        assert UNARY(library.address("f"))(k) == 7
        if k == 49:
            start = mapped()
    del library
    gc.collect()
    assert (mapped() - start) * os.sysconf("SC_PAGE_SIZE") < 40 << 20


def test_compiling_from_many_threads() -> None:
    failures: list[BaseException] = []

    def work(k: int) -> None:
        try:
            for n in range(10):
                library = host_engine().load(ADD.format(n=100 * k + n), ["add"])
                assert UNARY(library.address("add"))(1) == 100 * k + n + 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_host_target() -> None:
    target = host_target()
    assert target.vector_bits == detected_vector_bits(target.triple, target.features)
    assert target.lanes(4) * 32 == target.vector_bits
    assert target.key() == replace(target).key()
    assert target.key() != replace(target, cpu="other").key()


@pytest.mark.parametrize(
    ("triple", "features", "bits"),
    [
        ("x86_64-pc-linux-gnu", "+sse2,+sse4.2", 128),
        ("x86_64-pc-linux-gnu", "+avx,+avx2,+fma,-avx512f", 256),
        ("x86_64-pc-linux-gnu", "+avx2,+fma,+avx512f,+avx512vl,+avx512dq,+avx512bw", 512),
        ("x86_64-pc-linux-gnu", "+avx2,+fma,+avx512f,-avx512vl", 256),
        ("aarch64-unknown-linux-gnu", "+neon,+sve", 128),
    ],
)
def test_vector_width(triple: str, features: str, bits: int) -> None:
    assert detected_vector_bits(triple, features) == bits


def test_assembly_for_another_machine() -> None:
    target = Target("aarch64-unknown-linux-gnu", "generic", "+neon", 128)
    assert "ret" in engine_for(target).asm(ADD.format(n=1))
    with pytest.raises(NativeError, match="no-such-machine"):
        engine_for(Target("no-such-machine", "", "", 128))


def test_target_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="not 100"):
        replace(host_target(), vector_bits=100)


def test_importing_the_package_imports_no_llvm() -> None:
    code = "import sys, jitney, jitney.runtime\nprint('llvmlite' in sys.modules)"
    assert python(code).strip() == "False"


# ------------------------------------------------------------------------------- layout and memory


def test_layout_is_recognised_here() -> None:
    found = layout.ndarray_layout()
    assert found is not None  # CPython with the GIL and NumPy's ABI 2
    array = np.arange(6.0).reshape(2, 3)[:, ::-1]
    assert ctypes.c_ssize_t.from_address(id(array) + found.data).value == array.ctypes.data


def test_a_foreign_layout_is_noticed() -> None:
    real = layout.ndarray_layout()
    assert real is not None
    # Fields swapped in pairs: what is read stays readable, and wrong.
    swaps = [("ob_type", "descr"), ("data", "dims"), ("ndim", "flags"), ("dims", "strides")]
    for first, second in swaps:
        offsets = {first: getattr(real, second), second: getattr(real, first)}
        assert not layout._agrees(replace(real, **offsets), np.ones((3, 4)))


def test_ints_and_lists_are_recognised_here() -> None:
    ints, items = layout.int_layout(), layout.list_items()
    assert ints is not None and items is not None
    most = 1 << sys.int_info.bits_per_digit
    for n in (0, 1, -1, 300, -300, most - 1, 1 - most):
        assert layout._short(ints, n) == n
    for n in (most, -most, 1 << 70):
        assert layout._short(ints, n) is None
    other = replace(ints, tagged=not ints.tagged)
    assert [layout._short(other, n) for n in (0, 1, -1)] != [0, 1, -1]
    found = ctypes.c_void_p.from_address(id(array := [1.5]) + items).value
    assert ctypes.c_void_p.from_address(found or 0).value == id(array[0])


def test_scratch_is_aligned_and_found_again() -> None:
    block = memory.take_scratch(1000)
    assert block.address % 64 == 0 and block.nbytes >= 1000
    inner = memory.take_scratch(10)
    assert inner is not block
    ctypes.memset(block.address, 1, block.nbytes)
    ctypes.memset(inner.address, 2, inner.nbytes)
    assert ctypes.string_at(block.address, block.nbytes) == b"\1" * block.nbytes
    memory.give_scratch(inner)
    memory.give_scratch(block)
    assert memory.take_scratch(10) is block or block.nbytes == inner.nbytes
    others: list[memory.Scratch] = []
    thread = threading.Thread(target=lambda: others.append(memory.take_scratch(10)))
    thread.start()
    thread.join()
    assert others[0] is not block and others[0] is not inner


def test_a_very_big_scratch_block_is_not_kept() -> None:
    block = memory.take_scratch(100 << 20)
    memory.give_scratch(block)
    again = memory.take_scratch(16)
    assert again is not block
    memory.give_scratch(again)


needs_recycling = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="recycling is written for Linux"
)
F32 = np.dtype(np.float32)


@needs_recycling
def test_big_arrays_are_recycled() -> None:
    pool = recycler()
    assert pool.enabled, pool.reason
    pool.trim()
    first = memory.empty((1 << 20,), F32)
    assert first.flags.owndata and first.flags.c_contiguous and first.flags.writeable
    assert first.ctypes.data % (2 << 20) == 0
    address = first.ctypes.data
    first[:] = 1
    view = first[10:]
    del first
    gc.collect()
    second = memory.empty((1 << 20,), F32)  # the view keeps the first block alive
    assert second.ctypes.data != address and (view == 1).all()
    del view
    third = memory.empty((1 << 20,), F32)
    assert third.ctypes.data == address
    kept = pool.stats().kept
    del second, third
    assert pool.stats().kept == kept + (8 << 20)
    pool.trim()
    assert pool.stats().kept == 0


@needs_recycling
def test_small_arrays_take_no_large_blocks() -> None:
    pool = recycler()
    pool.trim()
    large = memory.empty((4 << 20,), F32)
    address = large.ctypes.data
    del large
    small = memory.empty((1 << 19,), F32)
    again = memory.empty((4 << 20,), F32)
    assert small.ctypes.data != address and again.ctypes.data == address


@needs_recycling
def test_only_our_arrays_come_from_the_pool() -> None:
    from numpy._core import multiarray

    ours = memory.empty((1 << 20,), F32)
    assert multiarray.get_handler_name(ours) == "jitney"
    assert multiarray.get_handler_name(ours * 2) != "jitney"
    assert multiarray.get_handler_name(memory.empty((10,), F32)) != "jitney"
    assert multiarray.get_handler_name() != "jitney"


@needs_recycling
def test_resize_in_place() -> None:
    for sizes in ([1 << 21, 1 << 20, 100, 1 << 22, 1, 300_000, 0, 5], [3, 1 << 23, 1 << 18]):
        array = memory.empty((1 << 20,), F32)
        array[:] = np.arange(1 << 20)
        known = 1 << 20
        for n in sizes:
            array.resize((n,))
            known = min(known, n)
            assert (array[:known] == np.arange(known)).all()
            assert (array[known:] == 0).all()  # NumPy clears what it adds
            known = 0 if known < n else known
            array[:] = np.arange(n)
            known = n


@needs_recycling
def test_the_pool_stays_within_its_limit() -> None:
    code = """
import numpy as np
from jitney.runtime.memory.recycling import recycler
from jitney.runtime.memory import arrays as memory
pool = recycler(); assert pool.enabled, pool.reason
f32 = np.dtype(np.float32)
for k in range(75):                       # more sizes than slots, more bytes than the limit
    keep = [memory.empty(((k + 1) << 16,), f32) for _ in range(5)]
    for a in keep: a[::4096] = k
    assert all((a[::4096] == k).all() for a in keep)
    del keep, a
    assert pool.stats().kept <= 16 << 20, pool.stats()
huge = memory.empty((1 << 24,), f32); huge[-1] = 1; del huge
assert pool.stats().kept <= 16 << 20
print(pool.stats().reused > 0)
"""
    assert python(code, JITNEY_RECYCLE_MB="16").strip() == "True"
    assert python("from jitney.runtime.memory.recycling import recycler; print(recycler().reason)",
                  JITNEY_RECYCLE_MB="0").strip() == "JITNEY_RECYCLE_MB=0"  # fmt: skip


@needs_recycling
def test_memory_that_cannot_be_had_is_a_memory_error() -> None:
    for shape in ((1 << 60,), (1 << 44,)):
        with pytest.raises((MemoryError, ValueError)):
            memory.empty(shape, F32)
    assert memory.empty((1 << 20,), F32).size == 1 << 20


@needs_recycling
def test_recycling_from_many_threads_and_after_fork() -> None:
    code = """
import os, threading, numpy as np, numpy.random
from jitney.runtime.memory import arrays as memory
f32 = np.dtype(np.float32); bad = []
def work(seed):
    rng = np.random.default_rng(seed); mine = []
    for k in range(400):
        if mine and rng.random() < 0.5:
            array, tag = mine.pop(int(rng.integers(len(mine))))
            if not (array[::997] == tag).all(): bad.append(seed)
        else:
            array = memory.empty((int(rng.integers(1 << 18, 1 << 20)),), f32)
            tag = seed * 1000 + k; array[::997] = tag; mine.append((array, tag))
    if not all((a[::997] == t).all() for a, t in mine): bad.append(seed)
def all_threads():
    threads = [threading.Thread(target=work, args=(s,)) for s in range(5)]
    [t.start() for t in threads]
    for _ in range(5):
        child = os.fork()
        if child == 0:
            x = memory.empty((1 << 19,), f32); x[:] = 1; del x
            work(9); os._exit(1 if bad else 0)
        if os.waitpid(child, 0)[1] != 0: bad.append('child')
    [t.join() for t in threads]
all_threads(); print(bad)
"""
    assert python(code).strip() == "[]"


def test_recycle_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITNEY_RECYCLE_MB", "3")
    assert default_limit() == 3 << 20
    monkeypatch.setenv("JITNEY_RECYCLE_MB", "-3")
    with pytest.raises(ValueError, match="JITNEY_RECYCLE_MB"):
        default_limit()
    monkeypatch.delenv("JITNEY_RECYCLE_MB")
    assert 0 < default_limit() <= 1 << 30
    assert Recycler(0).reason


def test_jumps_keep_clear_of_boundaries_where_those_are_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tests = "\n".join(
        f"at{k}:\n  %c{k} = icmp eq i64 %x, {3 * k}\n  br i1 %c{k}, label %out, label %at{k + 1}"
        for k in range(60)
    )
    text = (
        f"define i64 @f(i64 %x, ptr %p) {{\n  br label %at0\n{tests}\nat60:\n"
        "  store i64 %x, ptr %p\n  ret i64 1\nout:\n  ret i64 0\n}\n"
    )
    skylake = engine_for(Target("x86_64-unknown-linux-gnu", "skylake", "", 128))
    clear = skylake.emit_object(text)
    monkeypatch.setattr(engine, "SLOW_JUMPS", frozenset[str]())
    assert len(skylake.emit_object(text)) < len(clear)
    monkeypatch.undo()
    assert skylake.emit_object(text) == clear
