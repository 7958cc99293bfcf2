"""The driver's calls on the emulated device: memory, streams, events, modules, graphs."""

import ctypes
import gc
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import gpu
import numpy as np
import pytest
from gpu import emulator_only
from loading import PtxDriver

import jitney as jt
from jitney.codegen.cuda.program import KernelShape
from jitney.runtime import info as info_page
from jitney.runtime.cuda import driver, library, modules
from jitney.runtime.cuda.driver import Context, describe, devices
from jitney.runtime.cuda.emulator.driver import EmulatedLibrary
from jitney.runtime.cuda.emulator.machine import EmulationError
from jitney.runtime.cuda.library import SIGNATURES, DeviceError, DriverLibrary, find_library
from jitney.runtime.cuda.memory import Pool
from jitney.runtime.cuda.transfers import Pinned

ADD = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @add(ptr addrspace(1) %x, i32 %n, i32 %a) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp slt i32 %t, %n
  br i1 %c, label %work, label %end
work:
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %t
  %v = load i32, ptr addrspace(1) %p
  %w = add i32 %v, %a
  store i32 %w, ptr addrspace(1) %p
  br label %end
end:
  ret void
}
"""
ENTRIES = {"add": KernelShape((32, 1, 1))}
THEIRS = 0x70000  # another library's context


def device(memory: int = 4 << 20) -> Context:
    return gpu.poison(Context(describe(gpu.library(memory))[0]))


@pytest.fixture
def context() -> Context:
    return device()


def arguments(address: int, n: int, a: int) -> bytes:
    return struct.pack("<qii", address, n, a)


def put(context: Context, array: np.ndarray, stream: int) -> int:
    address = context.allocate(array.nbytes, stream)
    context.copy_in(address, array.ctypes.data, array.nbytes, stream)
    return address


def get(context: Context, address: int, like: np.ndarray, stream: int) -> np.ndarray:
    out = np.empty_like(like)
    context.copy_out(out.ctypes.data, address, out.nbytes, stream)
    context.synchronize(stream)
    return out


# Devices


def test_the_emulated_device_is_chosen_by_a_setting(monkeypatch):
    with jt.config(cuda="emulate"):
        (info,) = devices()
        assert str(info) == "cuda:0 (emulated, sm_90)" and info.emulated
        assert info.context() is devices()[0].context()
    with jt.config(cuda="off"), pytest.raises(DeviceError, match="switches GPUs off"):
        devices()
    monkeypatch.setenv("JITNEY_CUDA", "emulate")
    assert jt.config.cuda == "emulate" and devices()[0].emulated
    monkeypatch.setenv("JITNEY_CUDA", "yes")
    with pytest.raises(ValueError, match="'on', 'emulate' or 'off', not 'yes'"):
        devices()
    with pytest.raises(ValueError, match="not 'no'"):
        jt.config.cuda = "no"


def test_no_driver_is_a_clear_error(monkeypatch):
    monkeypatch.setattr(library, "library_names", lambda: ["libjitney_has_no_such.so"])
    with pytest.raises(DeviceError, match="there is no NVIDIA driver here"):
        find_library()


def test_a_library_without_the_functions_is_an_old_driver(monkeypatch):
    """The C library has none of them: nothing is bound, and each use says what is missing."""
    monkeypatch.setattr(library, "library_names", lambda: ["libc.so.6"])
    with pytest.raises(DeviceError, match="has no cuInit: install a newer one"):
        find_library()


def test_without_a_gpu_everything_else_works():
    code = (
        "import jitney as jt, numpy as np, sys\n"
        "assert jt.jit(lambda x: x + 1)(np.ones(3)).sum() == 6\n"
        "print('jitney.runtime.cuda.library' in sys.modules)\n"
    )
    env = {**os.environ, "JITNEY_CUDA": "on"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False\n"


@emulator_only
def test_a_device_is_described(context):
    info = context.info
    assert info.arch == "sm_90" and info.capability == (9, 0)
    assert info.memory == 4 << 20 and info.sms == 4 and info.driver == 13000


@emulator_only
def test_a_gpu_that_is_too_old_is_left_out_with_the_reason(monkeypatch):
    """Whichever number it has: the others are there by the driver's numbers, and "cuda" is the first."""
    beside = [
        EmulatedLibrary(8 << 20, capabilities=c) for c in [((9, 0), (7, 0)), ((7, 0), (8, 6))]
    ]
    for emulated, number, arch in zip(beside, (0, 1), ("sm_90", "sm_86"), strict=True):
        driver._survey.cache_clear()
        monkeypatch.setattr(driver, "find_library", lambda emulated=emulated: emulated)
        with jt.config(cuda="on"):
            (info,) = devices()
            assert (info.ordinal, info.arch) == (number, arch)
            assert [str(d) for d in jt.devices()] == ["cpu", f"cuda:{number}"]
            x = jt.device_put(np.arange(3.0))
            assert str(x.device) == f"cuda:{number}"
            assert jt.jit(lambda x: x + 1, device="cuda")(x).device == x.device
            with jt.device("cuda") as chosen:
                assert chosen == x.device and x.to_device("cuda") is x
            with pytest.raises(DeviceError, match=f"(?s)no cuda:{1 - number};.*older than sm_75"):
                jt.device_put(1.0, f"cuda:{1 - number}")
            said = info_page.facts()["cuda"]
            assert f"cuda:{number}" in said
            assert re.search(rf"cuda:{1 - number} \(.*\) is left out: .*this one is sm_70", said)
    with pytest.raises(DeviceError, match="no GPU that can be used: cuda:0 .*sm_60"):
        describe(EmulatedLibrary(1 << 16, capabilities=[(6, 0)]))
    driver._survey.cache_clear()


def test_a_gpu_that_the_driver_is_too_old_for_is_left_out(monkeypatch):
    monkeypatch.setattr(EmulatedLibrary, "_cuDriverGetVersion", lambda self, p: old(p))

    def old(place):
        ctypes.c_int.from_address(place).value = 11080

    found, reasons = driver.survey_of(EmulatedLibrary(1 << 16, capabilities=[(8, 0), (12, 0)]))
    assert [info.ordinal for info in found] == [0]
    assert "cuda:1" in reasons[0] and "install a newer driver" in reasons[0]


def test_signatures_are_those_of_the_header():
    """Counts and kinds of all parameters, where NVIDIA's header is installed."""
    header = "/usr/local/cuda/include/cuda.h"
    if not os.path.exists(header):
        header = header.replace("cuda/", "cuda-13.0/", 1)
    if not os.path.exists(header):
        pytest.skip("no cuda.h")
    text = re.sub(r"/\*.*?\*/", "", Path(header).read_text(), flags=re.S)
    renamed = dict(re.findall(r"#define (cu\w+)\s+(?:__CUDA_API_PT[DS][SZ]\()?(cu\w+_v\d)\b", text))
    for name, letters in SIGNATURES.items():
        plain = next((k for k, v in renamed.items() if v == name), name)
        pattern = r"CUresult\s+CUDAAPI\s+%s\s*\(([^;]*?)\);"
        found = re.search(pattern % name, text) or re.search(pattern % plain, text)
        if found is None or (plain == name and name in renamed):
            # An older version than the header's own: its prototype is not there.
            assert name in {"cuEventElapsedTime", "cuGraphInstantiateWithFlags"}, name
            continue
        parameters = [p.strip() for p in found[1].split(",") if p.strip() not in ("", "void")]
        assert len(parameters) == len(letters), (name, parameters)
        handles = "context|module|function|stream|event|graph|graphExec|memoryPool|linkState"
        for parameter, letter in zip(parameters, letters, strict=True):
            points = "*" in parameter or re.match(rf"(const )?CU({handles})\b", parameter)
            assert bool(points) == (letter == "P"), (name, parameter, letter)
            sizes = {"size_t": "Z", "CUdeviceptr": "D", "unsigned long long": "Q"}
            for word, expected in sizes.items():
                if not points and parameter.startswith(word):
                    assert letter == expected, (name, parameter)


def test_the_emulated_driver_has_what_is_called():
    functions = EmulatedLibrary(1 << 16).functions
    missing = set(SIGNATURES) - set(functions)
    assert missing == {"cuGetErrorName"}


# Memory and streams


def test_copies_fills_and_kernels_follow_each_other(context):
    stream = context.create_stream()
    module = context.load_module(ADD, ENTRIES)
    x = np.arange(20, dtype=np.int32)
    address = put(context, x, stream)
    other = context.allocate(x.nbytes, stream)
    context.launch(
        module.function("add"), (1, 1, 1), (32, 1, 1), 0, stream, arguments(address, 20, 5)
    )
    context.copy(other, address, x.nbytes, stream)
    context.fill(other + 8, 2, 4, 0xFFFFFFFF, stream)
    context.fill(other + 16, 2, 2, 7, stream)
    context.fill(other + 20, 4, 1, 1, stream)
    expected = x + 5
    expected[2:4] = -1
    expected[4] = 7 | 7 << 16
    expected[5] = 0x01010101
    assert (get(context, other, x, stream) == expected).all()
    attributes = module.function("add").attributes()
    assert attributes["max_threads"] == 1024 and attributes["shared"] == 0


@emulator_only
def test_nothing_happens_before_it_is_waited_for(context):
    """Pinned memory is read when the stream comes to it, other memory at the call."""
    stream = context.create_stream()
    address = context.allocate(4, stream)
    pinned = Pinned(context, 4)
    pinned.array((1,), np.dtype(np.int32))[:] = 1
    context.copy_in(address, pinned.address, 4, stream)
    pinned.array((1,), np.dtype(np.int32))[:] = 2
    assert get(context, address, np.zeros(1, np.int32), stream) == 2
    ordinary = np.array([3], np.int32)
    context.copy_in(address, ordinary.ctypes.data, 4, stream)
    ordinary[:] = 4
    assert not context.is_idle(stream)
    assert get(context, address, ordinary, stream) == 3
    assert context.is_idle(stream)


@emulator_only
def test_a_stream_waits_for_an_event_of_another(context):
    first, second = context.create_stream(), context.create_stream()
    address = context.allocate(4, first)
    out = np.zeros(1, np.int32)
    context.synchronize(first)
    context.fill(address, 1, 4, 5, first)
    assert get(context, address, out, second) == -1  # it did not wait: poison
    event = context.create_event()
    context.record_event(event, first)
    context.fill(address, 1, 4, 6, first)
    context.record_event(event, first)
    context.wait_event(second, event)
    context.fill(address, 1, 4, 7, first)
    assert get(context, address, out, second) == 6
    assert context.has_happened(event)
    context.synchronize_event(event)
    context.destroy_event(event)


@emulator_only
def test_time_between_events(context):
    stream = context.create_stream()
    start, end = context.create_event(timing=True), context.create_event(timing=True)
    context.record_event(start, stream)
    context.record_event(end, stream)
    with pytest.raises(DeviceError, match="NOT_READY"):
        context.elapsed(start, end)
    context.synchronize(stream)
    assert 0 <= context.elapsed(start, end) < 5


@emulator_only
def test_memory_that_is_not_allocated_is_refused(context):
    stream = context.create_stream()
    address = context.allocate(100, stream)
    x = np.zeros(200, np.uint8)
    with pytest.raises(DeviceError, match="not in what is allocated"):
        context.copy_in(address, x.ctypes.data, 101, stream)
    context.copy(address, address + 50, 50, stream)
    context.copy(address, address + 49, 50, stream)
    with pytest.raises(DeviceError, match="overlap"):
        context.synchronize(stream)
    context.free(address, stream)
    with pytest.raises(DeviceError, match="not in what is allocated"):
        get(context, address, x[:4], stream)
    with pytest.raises(DeviceError, match="not in what is allocated"):
        context.free(address, stream)


@emulator_only
def test_freed_memory_is_poison_and_a_kernel_that_uses_it_fails(context):
    stream = context.create_stream()
    module = context.load_module(ADD, ENTRIES)
    address = context.allocate(80, stream)
    context.free(address, stream)
    context.launch(
        module.function("add"), (1, 1, 1), (32, 1, 1), 0, stream, arguments(address, 20, 5)
    )
    with pytest.raises(DeviceError, match="out of bounds") as caught:
        context.synchronize(stream)
    assert isinstance(caught.value.__cause__, EmulationError)
    assert "kernel add, block (0, 0, 0), thread 0" in str(caught.value)


@emulator_only
def test_bad_launches_are_refused(context):
    stream = context.create_stream()
    function = context.load_module(ADD, ENTRIES).function("add")
    for grid, block, shared in (
        ((0, 1, 1), (32, 1, 1), 0),
        ((1, 1 << 16, 1), (32, 1, 1), 0),
        ((1, 1, 1), (1025, 1, 1), 0),
        ((1, 1, 1), (1, 1, 128), 0),
        ((1, 1, 1), (32, 1, 1), 49 << 10),
    ):
        with pytest.raises(DeviceError, match="INVALID_VALUE"):
            context.launch(function, grid, block, shared, stream, b"")
    large = context.load_module(ADD, {"add": KernelShape((32, 1, 1), 100 << 10)}).function("add")
    x = np.zeros(4, np.int32)
    address = put(context, x, stream)
    context.launch(large, (1, 1, 1), (32, 1, 1), 100 << 10, stream, arguments(address, 4, 1))
    assert (get(context, address, x, stream) == 1).all()
    with pytest.raises(DeviceError, match="no kernel sub"):
        context.load_module(ADD, {"sub": KernelShape((1, 1, 1))})
    with pytest.raises(DeviceError, match="227|shared"):
        context.load_module(ADD, {"add": KernelShape((32, 1, 1), 228 << 10)})


@emulator_only
def test_graphs_replay_what_was_captured(context):
    stream = context.create_stream()
    module = context.load_module(ADD, ENTRIES)
    x = np.zeros(8, np.int32)
    address = put(context, x, stream)
    context.synchronize(stream)
    context.begin_capture(stream)
    for _ in range(2):
        context.launch(
            module.function("add"), (1, 1, 1), (32, 1, 1), 0, stream, arguments(address, 8, 1)
        )
    graph = context.end_capture(stream)
    assert (get(context, address, x, stream) == 0).all()
    for _ in range(3):
        context.launch_graph(graph, stream)
    assert (get(context, address, x, stream) == 6).all()
    context.destroy_graph(graph)
    with pytest.raises(DeviceError):
        context.launch_graph(graph, stream)
    context.begin_capture(stream)
    with pytest.raises(DeviceError, match="captured"):
        context.synchronize(stream)
    context.abandon_capture(stream)
    context.synchronize(stream)


def test_a_forked_process_is_told():
    context = device()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            context.create_stream()
            os.write(writer, b"made")
        except DeviceError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"cannot be used after fork" in os.read(reader, 1000)


def test_a_context_stays_current_where_it_is_held():
    wrapped, calls = recording(EmulatedLibrary(1 << 20))
    context, other = Context(describe(wrapped)[0]), device()
    made = calls.count("cuCtxPushCurrent_v2")

    def asked() -> int:
        context.memory()
        return calls.count("cuCtxPushCurrent_v2") - made

    assert (asked(), asked()) == (1, 2)
    with context:
        assert (asked(), asked()) == (3, 3)
        with context:
            assert asked() == 3
        assert asked() == 3
        other.memory()  # such as an array of another device that dies now
        assert (asked(), asked()) == (3, 3)
        with context.let_go():
            assert asked() == 4
        assert asked() == 5
    assert asked() == 6
    assert calls.count("cuCtxPopCurrent_v2") == calls.count("cuCtxPushCurrent_v2")


def test_the_context_that_was_current_is_so_again():
    """After each method, errors, a buffer that dies anywhere; and what we call back finds its own."""
    emulated = EmulatedLibrary(1 << 20)
    context = Context(describe(emulated)[0])
    assert emulated.contexts == []
    emulated.known_contexts.add(THEIRS)
    emulated.cuCtxPushCurrent_v2(THEIRS)
    stream = context.create_stream()
    buffer = Pool(context).allocate(1 << 10, stream)
    with pytest.raises(DeviceError):
        context.free(buffer.address + 1 << 20, stream)
    with pytest.raises(DeviceError, match="OUT_OF_MEMORY"):
        context.allocate(1 << 30, stream)
    module = context.load_module(ADD, ENTRIES)
    context.launch(module.function("add"), (1, 1, 1), (32, 1, 1), 0, stream, arguments(0, 1, 1))
    with pytest.raises(DeviceError):  # a null pointer
        context.synchronize(stream)
    assert emulated.contexts == [THEIRS]
    with context:
        assert emulated.contexts == [THEIRS, context.handle]
        with context.let_go():
            assert emulated.contexts == [THEIRS]
            with context, context:
                assert emulated.contexts == [THEIRS, context.handle]
        assert emulated.contexts == [THEIRS, context.handle]
    cycle = [buffer, Pinned(context, 1 << 10), module, context.create_event()]
    cycle.append(cycle)
    del buffer, module, cycle
    gc.collect()
    assert emulated.contexts == [THEIRS]


def test_without_a_current_context_the_driver_refuses():
    emulated = EmulatedLibrary(1 << 20)
    with pytest.raises(DeviceError, match="INVALID_CONTEXT"):
        emulated.cuMemAlloc_v2(None, 64)
    with pytest.raises(DeviceError, match="INVALID_CONTEXT"):
        emulated.cuCtxPushCurrent_v2(THEIRS)
    with pytest.raises(DeviceError, match="INVALID_CONTEXT"):
        emulated.cuCtxPopCurrent_v2(None)


# A library of one's own: what the driver is asked, in which order


def recording(library_: EmulatedLibrary) -> tuple[DriverLibrary, list[str]]:
    calls: list[str] = []

    def recorded(name, function):
        def call(*given):
            calls.append(name)
            return function(*given)

        return library.function_type(name)(call)

    functions = {name: recorded(name, f) for name, f in library_.functions.items()}
    wrapped = DriverLibrary(functions, "recording")
    wrapped.emulated = True
    return wrapped, calls


def test_what_the_driver_is_asked():
    wrapped, calls = recording(EmulatedLibrary(1 << 20))
    context = Context(describe(wrapped)[0])
    assert calls.count("cuDevicePrimaryCtxRetain") == 1
    assert "cuMemPoolSetAttribute" in calls
    stream = context.create_stream()
    calls.clear()
    address = context.allocate(64, stream)
    context.fill(address, 16, 4, 0, stream)
    context.synchronize(stream)
    context.free(address, stream)
    assert [name for name in calls if not name.startswith("cuCtx")] == [
        "cuMemAllocAsync", "cuMemsetD32Async", "cuStreamSynchronize", "cuMemFreeAsync",
    ]  # fmt: skip


def test_errors_have_names():
    wrapped, _ = recording(EmulatedLibrary(1 << 20))
    with pytest.raises(DeviceError, match="cuDeviceGet: error 101") as caught:
        wrapped.cuDeviceGet(None, 3)
    assert caught.value.code == 101
    assert "OUT_OF_MEMORY" in str(wrapped.error("cuMemAlloc_v2", 2))


def test_the_driver_is_given_ptx_which_is_kept_on_disk(tmp_path, monkeypatch):
    """A second process does without LLVM; what the driver makes of it, the driver keeps itself."""
    made = []
    real_assemble = modules.assemble
    monkeypatch.setattr(modules, "assemble", lambda *a: made.append(a) or real_assemble(*a))
    with jt.config(cache=True, cache_dir=str(tmp_path)):
        texts = []
        for _ in range(2):
            real = PtxDriver()
            context = Context(describe(real)[0])
            assert not context.info.emulated
            module = context.load_module(ADD, ENTRIES)
            assert module.log == "an advisory"
            texts += real.texts
            assert real.texts == [context.ptx(ADD)]
        assert texts[0] == texts[1] and ".entry add" in texts[0] and len(made) == 1
        assert ".target sm_90" in texts[0] and ".version 9.0" in texts[0]
        with pytest.raises(DeviceError, match="(?s)INVALID_PTX: line 3: refused.*an advisory"):
            context.load_module(ADD.replace("@add", "@bad"), {"bad": KernelShape((32, 1, 1))})


@emulator_only
def test_what_a_driver_refuses_to_load(context):
    for ir, why in {
        ADD.replace("%x, i32 %t", "%x, i32 %u"): "INVALID_PTX: .*undefined value",
        ADD + "@s = internal addrspace(3) global [50000 x i8] undef\n": "too much shared data",
    }.items():
        with pytest.raises(DeviceError, match=f"(?s){why}"):
            context.load_module(ir, ENTRIES)


@emulator_only
def test_shared_memory_of_both_kinds_counts(context):
    """Static and dynamic together pass 48 KiB: more has to be asked for, and is."""
    shared = "@s = internal addrspace(3) global [20000 x i8] undef, align 16\n"
    shared += "@d = external addrspace(3) global [0 x i8], align 16\n"
    module = context.load_module(shared + ADD, {"add": KernelShape((32, 1, 1), 40_000)})
    stream = context.create_stream()
    address = put(context, np.zeros(32, np.int32), stream)
    where = (module.function("add"), (1, 1, 1), (32, 1, 1))
    context.launch(*where, 40_000, stream, arguments(address, 32, 1))
    assert get(context, address, np.zeros(32, np.int32), stream).sum() == 32
    with pytest.raises(DeviceError, match="not asked for"):
        context.launch(*where, 40_001, stream, arguments(address, 32, 1))
    with pytest.raises(DeviceError, match="too many"):
        context.load_module(shared + ADD, {"add": KernelShape((32, 1, 1), (227 << 10) - 19_999)})
