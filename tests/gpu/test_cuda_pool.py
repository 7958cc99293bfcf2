"""Memory of a device: buffers that free themselves, their pool, and arrays that come and go."""

import gc

import numpy as np
import pytest
from gpu import emulator_only
from test_cuda_driver import device, get, put

from jitney.runtime.cuda import memory, transfers
from jitney.runtime.cuda.driver import Context, describe
from jitney.runtime.cuda.emulator.driver import EmulatedLibrary
from jitney.runtime.cuda.library import DeviceError
from jitney.runtime.cuda.memory import OutOfMemoryError, Pool, context_pool, size_text
from jitney.runtime.cuda.transfers import Pinned, begin_download, download, upload

# The pool


def test_buffers_free_themselves():
    context = device(1 << 20)
    pool = context_pool(context)
    assert context_pool(context) is pool
    stream = context.create_stream()
    before = context.memory()
    for _ in range(20):
        buffer = pool.allocate(700_000, stream, "x")
        assert pool.live() == [buffer]
        del buffer
    context.synchronize(stream)
    assert context.memory() == before and pool.live() == []


def test_out_of_memory_names_the_largest_buffers():
    context = device(1 << 20)
    pool = Pool(context)
    stream = context.create_stream()
    held = [pool.allocate(100_000 + k, stream, f"array {k}") for k in range(8)]
    with pytest.raises(OutOfMemoryError) as caught:
        pool.allocate(400_000, stream, "f64[50000]")
    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, DeviceError)
    message = str(caught.value)
    assert message.startswith("cuda:0 (emulated, sm_90) has no 390.6 KiB left for f64[50000]")
    assert "8 live arrays" in message and "1.0 MiB are free" in message
    assert [line.split()[-1] for line in message.splitlines()[1:6]] == ["7", "6", "5", "4", "3"]
    assert message.endswith("and 3 more")
    held.clear()
    pool.allocate(400_000, stream)


def test_what_nobody_needs_is_given_back_first():
    context = device(1 << 20)
    pool = Pool(context)
    stream = context.create_stream()

    class Holder:
        def release_memory(self):
            self.buffer = None

    holder = Holder()
    holder.buffer = pool.allocate(500_000, stream)
    pool.reclaimable(holder)
    circle = [pool.allocate(300_000, stream)]
    circle.append(circle)
    del circle
    buffer = pool.allocate(900_000, stream)
    assert holder.buffer is None and pool.live() == [buffer]


def test_a_driver_without_a_pool_gets_free_lists():
    emulated = EmulatedLibrary(1 << 20)
    for name in ("cuMemAllocAsync", "cuMemFreeAsync"):
        del emulated.functions[name]
        delattr(emulated, name)
    context = Context(describe(emulated)[0])
    assert not context.stream_ordered
    pool = Pool(context)
    stream, other = context.create_stream(), context.create_stream()
    first = pool.allocate(10_000, stream)
    address = first.address
    del first
    assert pool.allocate(9_900, other).address != address
    assert pool.allocate(9_900, stream).address == address
    kept = [pool.allocate(200_000, stream) for _ in range(4)]
    kept.clear()
    pool.allocate(900_000, stream)
    with pytest.raises(OutOfMemoryError):
        pool.allocate(2 << 20, stream)
    with pytest.raises(DeviceError, match="has no cuMemAllocAsync"):
        emulated.cuMemAllocAsync(None, 1, 0)


def test_small_buffers_come_and_go_without_the_driver(monkeypatch):
    """Up to a total, and until memory runs out."""
    context = device(4 << 20)
    monkeypatch.setattr(context.info, "emulated", False, raising=False)
    pool = Pool(context)
    stream, other = context.create_stream(), context.create_stream()
    first = pool.allocate(1000, stream)
    address = first.address
    del first
    assert pool.allocate(1000, other).address != address
    held = pool.allocate(900, stream)
    assert held.address == address and pool.live() == [held]
    large = pool.allocate((1 << 20) + 1, stream)
    free = context.memory()[0]
    del large
    context.synchronize(stream)
    assert context.memory()[0] > free
    monkeypatch.setattr(memory, "_KEPT", 4096)
    several = [pool.allocate(2000, stream) for _ in range(4)]
    several.clear()
    assert len(pool._homes[stream, 2000].addresses) == 2
    pool.allocate((4 << 20) - 2048, stream)  # there is no other room for it
    assert not any(home.addresses for home in pool._homes.values())


def test_a_buffer_that_another_stream_uses_is_freed_after_that():
    context = device()
    pool = Pool(context)
    first, second = context.create_stream(), context.create_stream()
    x = np.arange(100, dtype=np.int32)
    buffer = upload(pool, x, first)
    event = context.create_event()
    context.record_event(event, first)
    context.wait_event(second, event)
    out = pool.allocate(x.nbytes, second)
    context.copy(out.address, buffer.address, x.nbytes, second)
    buffer.used_on(second)
    del buffer
    context.synchronize(first)
    assert (get(context, out.address, x, second) == x).all()


def test_sizes_are_said_in_words():
    words = {0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 3 << 20: "3.0 MiB", 5 << 30: "5.0 GiB"}
    assert {n: size_text(n) for n in words} == words


# Transfers


@pytest.mark.parametrize("count", [0, 1, 1000, 16_384, 100_000, 260_001])
def test_arrays_go_in_and_out(count, monkeypatch):
    monkeypatch.setattr(transfers, "BLOCK_BYTES", 1 << 18)
    context = device(16 << 20)
    pool = Pool(context)
    stream = context.create_stream()
    x = np.random.default_rng(0).standard_normal(count)
    given = x.copy()
    buffer = upload(pool, given, stream)
    given[:] = 0  # it was read
    out = np.empty_like(x)
    download(context, buffer.address, out, stream)
    assert (out == x).all()
    pending = begin_download(context, buffer.address, x.shape, x.dtype, stream, buffer)
    del buffer
    assert (pending.wait() == x).all() and pending.done()
    assert pending.wait() is pending.wait()


def test_strided_arrays_are_packed():
    context = device()
    pool = Pool(context)
    stream = context.create_stream()
    x = np.arange(24).reshape(2, 3, 4)
    for view in (x.T, x[:, ::-1], x[..., ::2], np.broadcast_to(x[0, 0], (5, 4)), x[0, 0, 0]):
        out = np.empty(view.shape, view.dtype)
        buffer = upload(pool, view, stream)
        download(context, buffer.address, out, stream)
        assert (out == view).all()


def test_pinned_memory_is_used_again(monkeypatch):
    context = device()
    first = Pinned(context, 1000)
    address = first.address
    array = first.array((10,), np.dtype(np.float64))
    del first
    assert Pinned(context, 1000).address != address  # the array keeps it
    del array
    gc.collect()
    assert Pinned(context, 900).address == address
    monkeypatch.setattr(transfers, "KEPT_BYTES", 0)
    Pinned(context, 5000)
    assert len(context.cuda._pinned) == 2  # what was not kept is freed


@emulator_only
def test_a_pending_array_that_nobody_wants_is_waited_for():
    context = device()
    stream = context.create_stream()
    address = put(context, np.arange(4), stream)
    begin_download(context, address, (4,), np.dtype(np.int64), stream)
    assert context.is_idle(stream)
