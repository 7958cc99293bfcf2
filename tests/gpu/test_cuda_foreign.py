"""Arrays of other libraries on the device: what they are, whose work waits for whose, who frees when.

The other library is a small one of our own, on streams and memory of its own. The emulated driver does
nothing before somebody waits for it, and poisons what is freed: whatever order is missing is seen.
"""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gpu import emulator_only

import jitney as jt
from jitney.runtime.cuda.client import client_of
from jitney.runtime.cuda.library import DeviceError
from jitney.runtime.devices import Device
from jitney.runtime.dlpack import CPU, CUDA, lend, take

pytestmark = [pytest.mark.usefixtures("gpu"), emulator_only]
LEGACY = 1
BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture
def client() -> Any:
    return client_of(Device("cuda", 0))


class Storage:
    """Memory of the other library: what is written to it has not been written yet."""

    def __init__(self, context: Any, values: np.ndarray, stream: int) -> None:
        self.context, self.stream, self.nbytes = context, stream, values.nbytes
        self.address = context.allocate(values.nbytes + 64, stream)
        self.write(values)

    def write(self, values: np.ndarray) -> None:
        data = np.ascontiguousarray(values)
        self.context.copy_in(self.address, data.ctypes.data, data.nbytes, self.stream)

    def __del__(self) -> None:
        self.context.free(self.address, self.stream)


class Tensor:
    """As PyTorch's: DLPack, which orders streams, and version 2 of the interface, which does not.
    `asked`: the streams that `__dlpack__` was given."""

    def __init__(self, client: Any, values: Any, stream: int = 0, place: Any = None) -> None:
        values = np.asarray(values)
        self.shape, self.kind = values.shape, values.dtype
        self.dtype = f"torch.{values.dtype.name}"
        self.storage = Storage(client.context, values, stream)
        self.place = place or (CUDA, 0)
        self.asked: list[Any] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.place

    def __dlpack__(self, *, stream: Any = None) -> Any:
        self.asked.append(stream)
        if stream not in (None, -1):
            self.storage.context.order(self.storage.stream, stream)
        return lend(self.storage.address, self.shape, self.kind, self.place, self.storage)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.place[0] == CPU:
            raise AttributeError("this is a tensor on the CPU")
        typestr = f"<V{self.kind.itemsize}" if self.kind == BF16 else self.kind.str
        return {
            "shape": self.shape,
            "typestr": typestr,
            "data": (self.storage.address, False),
            "version": 2,
            "strides": None,
        }


class Shown:
    """An array that has the interface only."""

    def __init__(self, tensor: Tensor, **changes: Any) -> None:
        self.tensor, self.dtype = tensor, tensor.dtype
        self.said = {**tensor.__cuda_array_interface__, **changes}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.said


A = np.arange(6.0).reshape(2, 3)
double = jt.jit(lambda x: x * 2)  # which lives: a module that is unloaded waits for everything


def check(found: Any, want: Any) -> None:
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(np.asarray(found), want)


@pytest.mark.parametrize("stream", [0, 2, None])
def test_our_work_comes_after_theirs_and_dlpack_is_asked_first(client, stream):
    """Neither waits for the host, nor is anything copied."""
    theirs = client.context.create_stream() if stream is None else stream
    t = Tensor(client, A, theirs)
    x = jt.device_put(t)
    assert x.buffer.address == t.storage.address and t.asked == [client.stream]
    check(x, A)
    check(double(Tensor(client, A, theirs)), A * 2)


def test_what_the_interface_says_of_streams(client):
    own = client.context.create_stream()
    check(jt.device_put(Shown(Tensor(client, A))), A)  # version 2: on the default stream
    check(jt.device_put(Shown(Tensor(client, A, own), version=3, stream=own)), A)
    check(jt.device_put(Shown(Tensor(client, A), version=3, stream=LEGACY)), A)
    late = Tensor(client, A, own)
    x = jt.device_put(Shown(late, version=3, stream=None))  # nobody has to wait, it says
    assert np.isnan(np.asarray(x)).all()


@pytest.mark.parametrize(
    "kind", ["bfloat16", "float8_e4m3fn", "float16", "int8", "bool", "complex64"]
)
def test_elements_of_all_kinds(client, kind):
    values = np.array([0, 1, 1, 0]).astype(getattr(jt, kind, None) or np.dtype(kind))
    x = jt.device_put(Tensor(client, values))
    check(x, values)
    assert jt.jit(lambda x: x)(Tensor(client, values)).dtype == values.dtype


def test_elements_that_the_interface_has_no_name_for(client):
    values = A.astype(BF16)
    shown = Shown(Tensor(client, values))
    assert shown.said["typestr"] == "<V2"
    check(jt.device_put(shown), values)  # by the name that the array gives its dtype
    shown.dtype = None
    with pytest.raises(DeviceError, match="'<V2'.*DLPack"):
        jt.device_put(shown)


def test_what_their_library_refuses(client):
    class NeedsGradient(Tensor):
        def __dlpack__(self, *, stream=None):
            raise BufferError("Can't export tensors that require gradient")

        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("use var.detach()")

    with pytest.raises(RuntimeError, match="detach"):
        jt.device_put(NeedsGradient(client, A))

    class Old(Tensor):
        def __dlpack__(self, *, stream=None):
            raise BufferError("bool is not known")

    check(jt.device_put(Old(client, A > 2)), A > 2)
    with pytest.raises(DeviceError, match="not on cuda:0"):
        client.adopt(Tensor(client, A, place=(CUDA, 1)))
    column = Tensor(client, A.reshape(6, 1))
    for strides in ((8, 8), (8, 800)):  # of one element: as it comes
        check(jt.device_put(Shown(column, strides=strides)), A.reshape(6, 1))
    with pytest.raises(DeviceError, match="C-contiguous"):
        jt.device_put(Shown(Tensor(client, A), strides=(8, 16), shape=(3, 2)))


def test_a_tensor_on_the_cpu_is_an_ordinary_argument(client):
    t = Tensor(client, A, place=(CPU, 0))
    client.context.synchronize(0)
    got = jt.jit(lambda x: x + 1)(t)
    assert type(got) is np.ndarray
    check(got, A + 1)


def test_what_they_write_afterwards_is_not_read(client):
    t = Tensor(client, A)
    y = double(t)
    t.storage.write(A + 100)
    client.context.synchronize(0)  # the device comes to that first
    check(y, A * 2)
    check(jt.device_put(t), A + 100)


@pytest.mark.parametrize("stream", ["legacy", "own"])
@pytest.mark.parametrize("by", ["dlpack", "interface"])
def test_they_get_memory_back_when_we_are_done(client, stream, by):
    """The tensor dies before the device has read it, and its library frees on a stream of its own."""
    own = client.context.create_stream() if stream == "own" else 0
    t: Any = Tensor(client, A, own)
    died = weakref.ref(t.storage)
    if by == "interface":
        t = Shown(t, version=3, stream=own or LEGACY)
    y = double(t)
    del t
    gc.collect()
    assert died() is not None
    client.context.synchronize(own)
    check(y, A * 2)
    assert died() is None and not client.holder


def test_what_is_held_is_given_back_when_memory_runs_out(client):
    t = Tensor(client, A)
    died = weakref.ref(t.storage)
    jt.device_put(t)
    del t
    gc.collect()
    assert died() is not None
    client.pool._release_everything()
    assert died() is None


@pytest.fixture
def real(client, monkeypatch):
    """What a real device's arrays say of themselves; their memory is the emulated device's."""
    monkeypatch.setattr(client, "emulated", False)
    return client


def read_later(client: Any, address: int, stream: int, like: np.ndarray) -> Any:
    """Another library copies an array on a stream; the function waits and gives what it got."""
    to = client.context.allocate(like.nbytes, stream)
    client.context.copy(to, address, like.nbytes, stream)

    def wait() -> np.ndarray:
        client.context.synchronize(stream)
        return np.frombuffer(ctypes.string_at(to, like.nbytes), like.dtype).reshape(like.shape)

    return wait


@pytest.mark.parametrize("said", [None, LEGACY, 2, "own"])
def test_they_wait_for_our_work_and_we_for_theirs(real, said):
    """Their stream waits for the elements; our memory is used again only after what it does."""
    stream = real.context.create_stream() if said == "own" else said
    y = double(jt.device_put(A))
    taken = take(y.__dlpack__(stream=stream))
    assert taken.device == (CUDA, 0) == y.__dlpack_device__()
    assert y.buffer.others == (stream or LEGACY,)
    wait = read_later(real, taken.pointer, stream or 0, A)
    del y, taken
    gc.collect()
    real.context.synchronize(real.stream)  # frees
    np.testing.assert_array_equal(wait(), A * 2)


def test_streams_that_nobody_has_to_wait_on(real):
    x = jt.device_put(A)
    with pytest.raises(ValueError, match="stream=0"):
        x.__dlpack__(stream=0)
    own = real.context.create_stream()
    y = double(x)
    taken = take(y.__dlpack__(stream=-1))
    assert np.isnan(read_later(real, taken.pointer, own, A)()).all()
    gone = real.context.create_stream()
    capsule = y.__dlpack__(stream=gone)
    real.context.destroy_stream(gone)
    del y, taken, capsule
    x.__dlpack__()  # forgets capsules that nobody took
    gc.collect()


def test_copies_and_other_places(real):
    x = jt.device_put(A.astype(BF16))
    taken = take(x.__dlpack__(copy=True))
    assert taken.pointer != x.buffer.address and taken.dtype == BF16
    there = take(x.__dlpack__(dl_device=(CPU, 0)))
    assert there.device == (CPU, 0)
    np.testing.assert_array_equal(there.array(), A.astype(BF16))
    for options in ({"dl_device": (CPU, 0), "copy": False}, {"dl_device": (CUDA, 1)}):
        with pytest.raises(BufferError, match="is on cuda:0"):
            x.__dlpack__(**options)


def test_the_interface_names_our_stream(real):
    x = jt.device_put(A)
    shown = x.__cuda_array_interface__
    assert shown["version"] == 3 and shown["stream"] == real.stream > 2
    assert shown["typestr"] == "<f8" and shown["data"] == (x.buffer.address, True)
    assert x.buffer.others == (LEGACY,)
    with pytest.raises(AttributeError, match="DLPack has"):
        _ = jt.device_put(A.astype(BF16)).__cuda_array_interface__


def test_from_dlpack(client):
    t = Tensor(client, A)
    x, y = jt.from_dlpack(t), jt.from_dlpack(t, copy=True)
    assert x.buffer.address == t.storage.address != y.buffer.address
    check(x, A)
    check(y, A)
    assert type(jt.from_dlpack(t, device="cpu")) is np.ndarray
    check(jt.from_dlpack(t, device="cpu"), A)
    with pytest.raises(BufferError, match="copy=False"):
        jt.from_dlpack(t, device="cpu", copy=False)
    with pytest.raises(BufferError, match="copy=False"):
        jt.from_dlpack(A, device="cuda", copy=False)
    assert jt.from_dlpack(x) is x
    check(jt.from_dlpack(A, device="cuda"), A)


def test_asarray(client):
    t = Tensor(client, A)
    x = jt.asarray(t)
    assert type(x) is jt.DeviceArray and x.buffer.address == t.storage.address
    check(jt.asarray(t, dtype=np.float32), A.astype(np.float32))
    copied = jt.asarray(t, copy=True)
    assert copied.buffer.address != t.storage.address
    check(copied, A)


def test_operators_and_functions_of_our_arrays_take_them(client):
    x = jt.device_put(A)
    check(x + Tensor(client, A), A + A)
    check(x @ Tensor(client, A.T.copy()), A @ A.T)
    check(np.maximum(x, Tensor(client, A * 2)), A * 2)
    check(np.concatenate([x, Tensor(client, A)]), np.concatenate([A, A]))
    with pytest.raises(TypeError):
        x + object()


def test_functions_that_run_on_the_cpu_take_them(client):
    for values in (A, A.astype(BF16)):
        got = jt.jit(lambda x: x + x, device="cpu")(Tensor(client, values))
        assert type(got) is np.ndarray
        check(got, values + values)


def test_no_context_is_left_current(client):
    contexts = client.context.cuda.contexts
    before = list(contexts)
    x = double(Tensor(client, A))
    x.__dlpack__()
    del x
    gc.collect()
    assert contexts == before
