"""Programs on a device: hand-written kernels and steps, run by the emulated driver."""

import ctypes
import gc
import os
import pickle
import subprocess
import threading

import gpu
import numpy as np
import pytest
from gpu import emulator_only
from ptxas import find_ptxas

from jitney.codegen.cuda.program import (
    Buffer,
    Carry,
    Copy,
    DeviceProgram,
    Fill,
    HostCall,
    If,
    KernelShape,
    Launch,
    Ref,
    Scalar,
    Scan,
    Slice,
    While,
)
from jitney.codegen.module import CallbackSite, ErrorSite
from jitney.ir.graph import SourceLine
from jitney.ir.types import TensorType
from jitney.runtime.cuda.conditions import SETTERS, NodeParameters
from jitney.runtime.cuda.driver import Context, describe
from jitney.runtime.cuda.execute import DeviceExecutable
from jitney.runtime.cuda.library import DeviceError
from jitney.runtime.cuda.memory import OutOfMemoryError, context_pool
from jitney.runtime.cuda.transfers import download, upload

P = "ptr addrspace(1)"


F64 = np.dtype(np.float64)


I64 = np.dtype(np.int64)


N = 8


def elementwise(name: str, params: str, body: str) -> str:
    """A kernel of one thread for each element; `%x` of `params` are loaded as `%vx`."""
    return f"""
define ptx_kernel void @{name}({params}) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
{body}
  ret void
}}"""


def at(name: str, type: str = "double") -> str:
    return f"  %p{name} = getelementptr {type}, {P} %{name}, i32 %t\n"


def read(name: str, type: str = "double") -> str:
    return at(name, type) + f"  %v{name} = load {type}, {P} %p{name}\n"


def write(name: str, value: str, type: str = "double") -> str:
    return at(name, type) + f"  store {type} {value}, {P} %p{name}\n"


IR = "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n" + "\n".join(
    [
        elementwise(
            "axpy",
            f"double %a, {P} %x, {P} %y, {P} %o",
            read("x")
            + read("y")
            + "  %m = fmul double %vx, %a\n  %s = fadd double %m, %vy\n"
            + write("o", "%s"),
        ),
        elementwise(  # flag = *n < limit
            "below",
            f"{P} %n, i64 %limit, {P} %flag",
            f"  %v = load i64, {P} %n\n  %c = icmp slt i64 %v, %limit\n  %z = zext i1 %c to i8\n"
            f"  store i8 %z, {P} %flag\n",
        ),
        elementwise(
            "next",
            f"{P} %n, {P} %m",
            f"  %v = load i64, {P} %n\n  %w = add i64 %v, 1\n  store i64 %w, {P} %m\n",
        ),
        elementwise(  # an error site, with one value for its message
            "fail",
            f"{P} %status, i64 %site, {P} %n",
            f"  %v = load i64, {P} %n\n  store i64 %v, {P} %status\n"
            f"  %w = getelementptr i64, {P} %status, i64 7\n  store i64 %site, {P} %w\n",
        ),
        elementwise(  # counts blocks: the last one writes how many came, and puts the counter back
            "ticket",
            f"{P} %counter, {P} %o",
            f"  %old = atomicrmw add {P} %counter, i32 1 monotonic\n"
            "  %last = icmp eq i32 %old, 3\n"
            "  br i1 %last, label %write, label %end\nwrite:\n"
            f"  %n = load i32, {P} %counter\n  %wide = sext i32 %n to i64\n"
            f"  store i64 %wide, {P} %o\n  store i32 0, {P} %counter\n  br label %end\nend:\n",
        ),
    ]
)


KERNELS = {
    "axpy": KernelShape((N, 1, 1)),
    **{name: KernelShape((1, 1, 1)) for name in ("below", "next", "fail", "ticket")},
}


ONE = (1, 1, 1)


def array(shape=(N,), dtype=F64, alignment=8) -> Buffer:
    return Buffer(shape, dtype, (1,) * len(shape), alignment)


def program(steps, inputs=(), outputs=(), **more) -> DeviceProgram:
    made = DeviceProgram(IR, KERNELS, tuple(steps), list(inputs), list(outputs), **more)
    return pickle.loads(pickle.dumps(made)) if not made.callbacks else made


def axpy(a, x, y, o) -> Launch:
    return Launch("axpy", ONE, (Scalar("f64", a), x, y, o))


def inp(k, offset=0):
    return Ref("input", k, offset)


def out(k, offset=0):
    return Ref("output", k, offset)


def arena(offset):
    return Ref("arena", 0, offset)


class Device:
    """An executable with its inputs and outputs as arrays."""

    def __init__(self, made: DeviceProgram, memory=8 << 20, decides="device", **options) -> None:
        self.library = gpu.library(memory)
        if decides == "host":
            del self.library.functions["cuGraphAddNode_v2"]
        self.context = gpu.poison(Context(describe(self.library)[0]))
        self.pool = context_pool(self.context)
        self.stream = self.context.create_stream()
        self.executable = DeviceExecutable(made, self.context, **options)

    def __call__(self, *arrays, stream=None):
        stream = stream or self.stream
        inputs = [upload(self.pool, a, stream) for a in arrays]
        run = self.executable.run([b.address for b in inputs], stream)
        results = []
        for buffer, output in zip(run.outputs, self.executable.program.outputs, strict=True):
            result = np.empty(output.shape, output.dtype)
            download(self.context, buffer.address, result, stream)
            results.append(result)
        run.wait()
        return results


ERROR = ErrorSite("index", "index {} is bad", SourceLine("model.py", 7, "f"), values=("i64",))
CHAIN = program(
    [
        axpy(2.0, inp(0), inp(1), arena(0)),
        axpy(-1.0, arena(0), Ref("constant", 0), arena(256)),
        Copy(out(1), arena(256), 4 * N),
        Fill(out(1, 4 * N), 2 * N // 2, 4, 0),
        axpy(1.0, arena(256), arena(0), out(0)),
    ],
    [array(), array()],
    [array(), array()],
    arena_bytes=512,
    constants=[np.arange(N, dtype=F64)],
)


@pytest.mark.parametrize("graphs", [False, True], ids=["launches", "graphs"])
def test_a_chain_of_kernels(graphs):
    device = Device(CHAIN, graphs=graphs)
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, y = rng.standard_normal((2, N))
        first, second = device(x, y)
        half = np.arange(N) - (2 * x + y)
        assert (first == half + (2 * x + y)).all()
        assert (second[: N // 2] == half[: N // 2]).all() and (second[N // 2 :] == 0).all()
    assert bool(device.executable._graphs) == graphs
    assert device.library.launches == 15


def test_a_graph_is_made_for_addresses_that_come_again():
    device = Device(CHAIN)
    x, y = np.ones((2, N))
    graphs = device.executable._graphs
    kept = []
    for _ in range(12):  # new addresses each time
        kept.append([upload(device.pool, v, device.stream) for v in (x, y)])
        kept.append(device.executable.run([b.address for b in kept[-1]], device.stream))
    assert not graphs
    device.context.synchronize(device.stream)
    kept.clear()
    for _ in range(6):
        device(x, y)
    launches = device.library.launches
    assert 0 < len(graphs) <= 2
    device.executable.release_memory()
    assert not graphs and launches == 3 * 18
    assert (device(x, y)[0] == np.arange(N)).all()


def test_a_failure_while_a_graph_is_captured_leaves_the_stream_usable():
    device = Device(CHAIN)
    x, y = np.ones((2, N))
    device(x, y)
    good = device.executable._run_table
    device.executable._run_table = lambda *_: 719
    with pytest.raises(DeviceError, match="a launch: CUDA_ERROR_LAUNCH_FAILED"):
        device(x, y)
    device.executable._run_table = good
    assert (device(x, y)[0] == np.arange(N)).all()


WHO_DECIDES = pytest.mark.parametrize("decides", ["device", "host"])


def test_what_happens_while_a_graph_is_captured_is_no_part_of_it():
    """Memory of the same stream dies, and another thread uses the stream."""
    device = Device(CHAIN)
    x, y = np.ones((2, N))
    device(x, y)
    doomed = [upload(device.pool, x, device.stream)]
    begin = device.context.begin_capture

    def interrupted(stream):
        begin(stream)
        doomed.clear()
        out = np.empty(N)
        buffer = upload(device.pool, 7 * x, device.stream)
        download(device.context, buffer.address, out, device.stream)
        assert (out == 7).all()

    device.context.begin_capture = interrupted
    for _ in range(4):
        assert (device(x, y)[0] == np.arange(N)).all()
    assert device.executable._graphs and not doomed


@WHO_DECIDES
@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
def test_a_branch_is_chosen(index, decides):
    ways = tuple((Fill(out(0), 2 * N, 4, k), axpy(1.0, inp(1), inp(1), arena(0))) for k in range(3))
    made = program(
        [If(inp(0), ways)], [array((1,), np.dtype(np.int32), 4), array()], [array(dtype=I64)],
        arena_bytes=64,
    )  # fmt: skip
    device = Device(made, decides=decides)
    for _ in range(2):
        (result,) = device(np.array([index], np.int32), np.ones(N))
        assert (result.view(np.int32) == min(max(index, 0), 2)).all()
    assert bool(device.executable._graphs) == (decides == "device")


def countdown(limit: int, errors=()) -> DeviceProgram:
    """n from input 0 up to the limit, and x that is doubled each time; both are carried."""
    n, m, x, z = (Ref("slot", k) for k in range(4))
    loop = While(
        (Launch("below", ONE, (n, Scalar("i64", limit), arena(0))),),
        arena(0),
        (
            Launch("next", ONE, (n, m)),
            axpy(1.0, x, x, z),
            *(Launch("fail", ONE, (Ref("status"), Scalar("i64", 1), n)) for _ in errors),
        ),
        (Carry(0, 1, out(0), arena(256), 8), Carry(2, 3, out(1), arena(512), 8 * N)),
    )
    return program(
        [Copy(out(0), inp(0), 8), Copy(out(1), inp(1), 8 * N), loop],
        [array((), I64), array()],
        [array((), I64), array()],
        arena_bytes=1024,
        slots=4,
        errors=list(errors),
    )


@WHO_DECIDES
@pytest.mark.parametrize("start", [10, 9, 6, 3, 0])
def test_a_loop_until_a_condition(start, decides):
    """Odd and even numbers of trips: what was carried ends where it began."""
    device = Device(countdown(10), decides=decides)
    for _ in range(2):
        n, x = device(np.array(start), np.arange(N, dtype=F64))
        assert n == max(start, 10) and (x == np.arange(N) * 2.0 ** (10 - start)).all()
    assert bool(device.executable._graphs) == (decides == "device")


def test_a_loop_on_the_device_waits_for_nothing():
    device = Device(countdown(1000))
    inputs = [upload(device.pool, a, device.stream) for a in (np.array(0), np.zeros(N))]
    waits = []
    device.context.synchronize = lambda stream: waits.append(stream)
    run = device.executable.run([b.address for b in inputs], device.stream)
    assert not waits and device.library.launches == 0  # nothing has begun
    del device.context.synchronize
    n = np.empty((), I64)
    download(device.context, run.outputs[0].address, n, device.stream)
    assert n == 1000 and device.library.launches == 3001


@WHO_DECIDES
def test_decisions_inside_of_decisions(decides):
    """while n < 4: n += 1; x = x * 2 (n odd) or x + the sum of three rows; then a loop of no trips."""
    n, m, x, z = (Ref("slot", k) for k in range(4))
    row, c, d = (Ref("slot", k) for k in (4, 5, 6))
    rows = Scan(
        3,
        False,
        (axpy(1.0, row, c, d),),
        (Carry(5, 6, z, arena(512), 8 * N),),
        (Slice(4, inp(2), 8 * N),),
    )
    inner = While(
        (Launch("below", ONE, (m, Scalar("i64", 0), arena(8))),),
        arena(8),
        (Fill(z, 2 * N, 4, 0),),
        (),
    )
    body = (
        Launch("next", ONE, (n, m)),
        axpy(1.0, Ref("constant", 0), x, z),
        Copy(arena(16), m, 4),
        If(arena(16), ((), (axpy(1.0, x, x, z),), (rows,), (axpy(1.0, x, x, z), inner), (rows,))),
    )
    loop = While(
        (Launch("below", ONE, (n, Scalar("i64", 4), arena(0))),),
        arena(0),
        body,
        (Carry(0, 1, out(0), arena(256), 8), Carry(2, 3, out(1), arena(768), 8 * N)),
    )
    made = program(
        [Copy(out(0), inp(0), 8), Copy(out(1), inp(1), 8 * N), loop],
        [array((), I64), array(), array((3, N))],
        [array((), I64), array()],
        arena_bytes=1024,
        slots=7,
        constants=[np.zeros(N)],
        errors=[ERROR],
    )
    device = Device(made, decides=decides)
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, more = rng.standard_normal(N), rng.standard_normal((3, N))
        n, got = device(np.array(0), x, more)
        for k in range(1, 5):
            for row in more if k % 2 == 0 else [x]:
                x = row + x
        assert n == 4 and (got == x).all()
    assert bool(device.executable._graphs) == (decides == "device")


def test_a_driver_that_refuses_conditional_nodes():
    device = Device(countdown(10))

    def refuse(*given):
        raise DeviceError("cuGraphAddNode_v2: not supported", 801)

    device.library.cuGraphAddNode_v2 = refuse
    with pytest.warns(RuntimeWarning, match="loops wait for the host.*not supported"):
        n, _ = device(np.array(3), np.ones(N))
    assert n == 10
    assert device(np.array(4), np.ones(N))[0] == 10


def test_the_kernels_that_set_conditions_are_assembled():
    if find_ptxas() is None:
        pytest.skip("no ptxas is installed")
    command = [find_ptxas(), "-c", "-arch=sm_80", "-", "-o", os.devnull]
    done = subprocess.run(command, input=SETTERS, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ctypes.sizeof(NodeParameters) == 256  # CUgraphNodeParams
    assert NodeParameters.handle.offset == 16 and NodeParameters.reserved2.offset == 248


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 4, 5])
def test_a_scan(length, reverse):
    """c <- c + x[i]; y[i] <- c"""
    c, d, x, y = (Ref("slot", k) for k in range(4))
    step = 8 * N
    scan = Scan(
        length,
        reverse,
        (axpy(1.0, x, c, d), Copy(y, d, step)),
        (Carry(0, 1, out(0), arena(0), step),),
        (Slice(2, inp(1), step), Slice(3, out(1), step)),
    )
    made = program(
        [Copy(out(0), inp(0), step), scan],
        [array(), array((length, N))],
        [array(), array((length, N))],
        arena_bytes=step,
        slots=4,
    )
    device = Device(made)
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, c = rng.standard_normal((length, N)), rng.standard_normal(N)
        last, sums = device(c, x)
        for i in reversed(range(length)) if reverse else range(length):
            c = c + x[i]
            assert (sums[i] == c).all()
        assert (last == c).all()
    assert bool(device.executable._graphs) == (length > 0)


def test_an_error_of_a_kernel_is_raised_when_the_run_is_waited_for():
    made = program(
        [Launch("fail", ONE, (Ref("status"), inp(0, 8), inp(0)))],
        [array((2,), I64)],
        errors=[ERROR],
    )
    made.kernels["fail"] = KernelShape(ONE)
    made.steps = (Launch("fail", ONE, (Ref("status"), Scalar("i64", 1), inp(0))),)
    device = Device(made)
    with pytest.raises(IndexError, match=r"index 42 is bad\nat model.py:7, in f"):
        device(np.array([42, 0]))
    made.steps = (Copy(Ref("status"), inp(0), 8),)
    assert Device(made)(np.array([42, 0])) == []


@WHO_DECIDES
def test_a_loop_ends_after_an_error(decides):
    device = Device(countdown(10**9, [ERROR]), decides=decides)
    with pytest.raises(IndexError, match="index 5 is bad"):
        device(np.array(5), np.ones(N))


def test_counters_are_zero_in_each_run():
    made = program(
        [Launch("ticket", (4, 1, 1), (Ref("counters", 0, 4), out(0)))],
        [],
        [array((), I64)],
        counter_words=2,
    )
    device = Device(made)
    for _ in range(3):
        assert device()[0] == 4


@emulator_only
def test_scratch_memory_is_poison_in_each_run():
    made = program(
        [Copy(out(0), arena(0), 8), Fill(arena(0), 2, 4, 0)], [], [array((), F64)], arena_bytes=8
    )
    device = Device(made)
    for _ in range(2):
        assert np.isnan(device()[0])


def test_the_host_is_called():
    seen = []

    def function(x, n):
        seen.append((x.copy(), n.item()))
        if n == 13:
            raise KeyError("thirteen")
        return x[::-1] * 2, n + 1

    types = (TensorType((N,), F64), TensorType((), I64))
    made = program(
        [
            axpy(1.0, inp(0), inp(0), arena(0)),
            HostCall(0, (arena(0), inp(1)), (arena(64), out(1))),
            axpy(1.0, arena(64), inp(0), out(0)),
        ],
        [array(), array((), I64)],
        [array(), array((), I64)],
        arena_bytes=128,
        callbacks=[CallbackSite(function, types, types)],
        errors=[ERROR],
    )
    device = Device(made)
    x = np.arange(N, dtype=F64)
    first, second = device(x, np.array(4))
    assert (first == 4 * x[::-1] + x).all() and second == 5
    assert (seen[0][0] == 2 * x).all() and seen[0][1] == 4
    with pytest.raises(KeyError, match="thirteen"):
        device(x, np.array(13))
    made.steps = (Launch("fail", ONE, (Ref("status"), Scalar("i64", 1), inp(1))), made.steps[1])
    count = len(seen)
    with pytest.raises(IndexError, match="index 9"):
        Device(made)(x, np.array(9))
    assert len(seen) == count  # it is not called with garbage


def test_inputs_are_checked():
    device = Device(CHAIN)
    buffer = device.pool.allocate(16 * N, device.stream)
    with pytest.raises(TypeError, match="2 inputs are needed, 1 were given"):
        device.executable.run([buffer.address], device.stream)
    with pytest.raises(ValueError, match="input 1 at .* is not aligned"):
        device.executable.run([buffer.address, buffer.address + 4], device.stream)


def test_memory_runs_out():
    shape = (1 << 16,)
    made = program([Fill(out(0), 1 << 17, 4, 0)], [], [array(shape)], arena_bytes=1 << 18)
    device = Device(made, memory=1 << 20)
    first = device.executable.run([], device.stream)
    with pytest.raises(OutOfMemoryError, match=r"no 512.0 KiB left for float64\[65536\]"):
        device.executable.run([], device.stream)
    del first
    gc.collect()
    for _ in range(3):
        assert (device()[0] == 0).all()
    # Scratch memory is given back for an array that needs it.
    large = device.pool.allocate(900 << 10, device.stream)
    assert device.pool.live() == [large]


def test_streams_and_threads_do_not_meet():
    device = Device(CHAIN)
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        stream = device.context.create_stream() if seed % 2 else device.stream
        try:
            for _ in range(6):
                x, y = rng.standard_normal((2, N))
                first, _ = device(x, y, stream=stream)
                assert (first == (np.arange(N) - (2 * x + y)) + (2 * x + y)).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_an_executable_lets_its_memory_go():
    device = Device(CHAIN)
    device(*np.ones((2, N)))
    assert len(device.pool.live()) == 2  # scratch memory and a constant
    device.executable = None
    gc.collect()
    device.context.synchronize(device.stream)
    assert device.pool.live() == []
