"""Our own linker and loader: what LLVM emits, linked into images and loaded without LLVM."""

from __future__ import annotations

import ctypes
import gc
import pickle
import platform
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.program.compile import compile_graph
from jitney.codegen.target import Target
from jitney.ir.passes import optimise, storable
from jitney.runtime.call.call_ir import call_ir
from jitney.runtime.memory.recycling_ir import recycling_ir
from jitney.runtime.native.engine import NativeError, engine_for, host_engine, load_code
from jitney.runtime.native.image import PAGE, Image, load_image, loaded_libraries, symbol_address
from jitney.runtime.native.layout import ndarray_layout
from jitney.runtime.native.linker import Unlinkable, link_elf
from jitney.runtime.native.relocations import MACHINES
from jitney.runtime.threads.pool_ir import pool_ir

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="images are made of ELF objects for x86-64 and AArch64",
)

UNARY = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)

# A constant table, a writable global, a pointer in data, internal and external calls.
EVERYTHING = """
@table = internal constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]
@count = global i64 5
@zero = global [1000 x i64] zeroinitializer, align 64
@where = global ptr @count
@abs_at = global ptr @llabs
declare i64 @llabs(i64)
declare i64 @given(i64)
define internal i64 @inner(i64 %x) noinline { %y = add i64 %x, 1
  ret i64 %y }
define i64 @lookup(i64 %i) { %p = getelementptr i64, ptr @table, i64 %i
  %v = load i64, ptr %p
  %w = call i64 @inner(i64 %v)
  ret i64 %w }
define i64 @bump(i64 %x) { %p = load ptr, ptr @where
  %v = load i64, ptr %p
  %w = add i64 %v, %x
  store i64 %w, ptr @count
  %z = getelementptr i64, ptr @zero, i64 999
  %u = load i64, ptr %z
  %r = add i64 %w, %u
  ret i64 %r }
define i64 @outside(i64 %x) { %a = call i64 @llabs(i64 %x)
  %b = call i64 @given(i64 %a)
  %f = load ptr, ptr @abs_at
  %c = call i64 %f(i64 %b)
  ret i64 %c }
define double @scaled(double %x) { %y = fmul double %x, 0x400921FB54442D18
  ret double %y }
"""
EXPORTS = ("lookup", "bump", "outside", "scaled", "count", "zero")


@pytest.fixture(scope="module")
def image() -> Image:
    code = host_engine().assemble(EVERYTHING)
    assert isinstance(code, Image)
    return code


def use(image: Image) -> None:
    given = UNARY(lambda x: -x - 1)
    address = ctypes.cast(given, ctypes.c_void_p).value
    library = load_code(image, EXPORTS, {"given": address})
    lookup, bump, outside = (UNARY(library.address(n)) for n in ("lookup", "bump", "outside"))
    assert [lookup(i) for i in range(4)] == [11, 21, 31, 41]
    assert [bump(3), bump(4)] == [8, 12]
    assert ctypes.c_int64.from_address(library.address("count")).value == 12
    assert library.address("zero") % 64 == 0
    assert outside(-7) == 8
    scaled = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(library.address("scaled"))
    assert scaled(2.0) == 2.0 * 3.141592653589793


def test_an_image_runs_and_each_load_has_its_own_globals(image: Image) -> None:
    use(image)
    use(image)


def test_an_image_survives_pickling(image: Image) -> None:
    use(pickle.loads(pickle.dumps(image)))


@pytest.mark.skipif(platform.machine() == "aarch64", reason="LLVM's linker ends the process there")
def test_the_image_agrees_with_llvms_own_linker() -> None:
    text = EVERYTHING.replace("declare i64 @given(i64)", "define i64 @given(i64 %x) { ret i64 %x }")
    obj = host_engine().emit_object(text)
    for library in (host_engine().link(obj, EXPORTS), host_engine().link_with_llvm(obj, EXPORTS)):
        assert UNARY(library.address("lookup"))(2) == 31
        assert UNARY(library.address("outside"))(-9) == 9
        assert UNARY(library.address("bump"))(1) == 6


def test_code_is_never_writable_and_executable(image: Image) -> None:
    library = load_image(image, {"given": 1})
    ranges = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, modes = line.split()[:2]
        low, high = (int(end, 16) for end in span.split("-"))
        ranges[low, high] = modes

    def modes(address: int) -> str:
        return next(m for (low, high), m in ranges.items() if low <= address < high)

    assert modes(library.address("lookup"))[:3] == "r-x"
    assert modes(library.address("count"))[:3] == "rw-"
    assert library.address("count") // PAGE != library.address("lookup") // PAGE


def test_code_is_unmapped_when_the_library_dies(image: Image) -> None:
    gc.collect()
    before = loaded_libraries()
    library = load_image(image, {"given": 1})
    assert loaded_libraries() == (before[0] + 1, before[1] + library.nbytes)
    start = library.address("lookup") // PAGE * PAGE
    del library
    gc.collect()
    assert loaded_libraries() == before
    spans = (line.split("-")[0] for line in Path("/proc/self/maps").read_text().splitlines())
    assert start not in [int(low, 16) for low in spans]


def test_missing_symbols_are_an_error(image: Image) -> None:
    with pytest.raises(NativeError, match="no symbol given"):
        load_code(image, EXPORTS)
    with pytest.raises(NativeError, match="not \\['nowhere'\\]"):
        load_code(image, ["nowhere"], {"given": 1})


def test_symbols_of_the_process_are_found() -> None:
    assert symbol_address("memcpy") and symbol_address("sin") and symbol_address("Py_IncRef")
    assert symbol_address("jitney_has_no_such_symbol") is None


@pytest.mark.parametrize(
    "text",
    [
        "@x = thread_local global i64 1 define i64 @f() { %v = load i64, ptr @x ret i64 %v }",
        "@llvm.global_ctors = appending global [1 x {i32, ptr, ptr}] "
        "[{i32, ptr, ptr} {i32 1, ptr @f, ptr null}] define void @f() { ret void }",
    ],
    ids=["thread-local", "constructor"],
)
def test_what_the_linker_does_not_know_is_left_to_llvm(text: str) -> None:
    assert isinstance(host_engine().assemble(text.replace(" define", "\ndefine")), bytes)


def test_damaged_objects_are_refused_and_never_crash() -> None:
    obj = host_engine().emit_object(EVERYTHING)
    for wrong in (b"", b"\x7fELF", obj[:100], obj[: len(obj) // 2], b"\0" * 5000):
        with pytest.raises(Unlinkable):
            link_elf(wrong)
    other = bytearray(obj)
    other[18:20] = struct.pack("<H", 243)  # RISC-V
    with pytest.raises(Unlinkable, match="no relocatable object for x86-64 or AArch64"):
        link_elf(bytes(other))
    x86, arm = 62, 183  # the other machine's, with relocations that it does not have
    other[18:20] = struct.pack("<H", arm if platform.machine() == "x86_64" else x86)
    with pytest.raises(Unlinkable, match="relocations"):
        link_elf(bytes(other))


def test_the_fields_of_aarch64_are_where_the_manual_has_them() -> None:
    """Each instruction of an image, from an offset, aims at another."""
    machine = MACHINES[183]
    known = [  # where, aim, type; before and after
        (0x0, 0x5008, 275, 0x90000000, 0xB0000020),  # adrp x0, 5 pages on
        (0x5004, 0x1000, 275, 0x90000001, 0x90FFFFE1),  # adrp x1, 4 pages back
        (0x8, 0x5008, 277, 0x91000000, 0x91002000),  # add x0, x0, #8
        (0xC, 0x5008, 278, 0x39400000, 0x39402000),  # ldrb w0, [x0, #8]
        (0x10, 0x5008, 284, 0x79400000, 0x79401000),  # ldrh w0, [x0, #8]
        (0x14, 0x5008, 285, 0xB9400000, 0xB9400800),  # ldr w0, [x0, #8]
        (0x18, 0x5008, 286, 0xF9400000, 0xF9400400),  # ldr x0, [x0, #8]
        (0x1C, 0x5010, 299, 0x3DC00000, 0x3DC00400),  # ldr q0, [x0, #16]
        (0x20, 0x5008, 312, 0xF9400000, 0xF9400400),  # ldr x0, [x0, #8]
        (0x24, 0x28, 283, 0x94000000, 0x94000001),  # bl 4 on
        (0x28, 0x20, 282, 0x14000000, 0x17FFFFFE),  # b 8 back
        (0x2C, 0x20, 261, 0, 0xFFFFFFF4),  # a word: 12 back
    ]
    where, aim, kinds, before, after = np.array(known).T
    content = np.zeros(0x6000, np.uint8)
    words = content.view("<u4")
    words[where // 4] = before
    machine.settle(content, where, aim, kinds)
    assert [hex(word) for word in words[where // 4]] == [hex(word) for word in after]
    jump = np.frombuffer(machine.stub(0x2000, 0x5018), "<u4")  # adrp, ldr and br of x16
    assert [hex(word) for word in jump] == ["0xf0000010", "0xf9400e10", "0xd61f0200"]
    for far in (1 << 28, 0x5009):
        with pytest.raises(Unlinkable):
            machine.settle(content, where[6:7], np.array([far]), kinds[6:7])


def test_what_we_emit_for_aarch64_our_linker_takes() -> None:
    """LLVM's ends the process there: each object goes through ours, or is refused."""
    target = Target("aarch64-unknown-linux-gnu", "generic", "", 128)
    engine, layout = engine_for(target), ndarray_layout()
    assert layout is not None
    graph = jt.jit(lambda x: np.exp(np.sort(x @ x.T)) + np.linalg.inv(x).sum()).trace(np.eye(40))
    texts = [call_ir(layout, 16, None), recycling_ir(), pool_ir(target)]
    texts.append(compile_graph(optimise(storable(graph)), target).text)
    for text in texts:
        for quick in (False, True):
            image = engine.assemble(text, quick)
            assert isinstance(image, Image) and image.exports and not image.code_size % 65536
