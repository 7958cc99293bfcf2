"""Our own linker and loader: what LLVM emits, linked into images and loaded without LLVM."""

from __future__ import annotations

import ctypes
import gc
import pickle
import platform
import struct
import sys
from pathlib import Path

import pytest

from jitney.runtime.engine import NativeError, host_engine, load_code
from jitney.runtime.image import PAGE, Image, load_image, loaded_libraries, symbol_address
from jitney.runtime.linker import Unlinkable, link_elf

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="images are made of ELF objects for x86-64",
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
    other[18:20] = struct.pack("<H", 183)  # AArch64
    with pytest.raises(Unlinkable, match="x86-64"):
        link_elf(bytes(other))
