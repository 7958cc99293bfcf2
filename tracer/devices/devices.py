"""Where programs run: `jt.devices`, `jt.device`, `jt.device_put`.

A call runs on the device that `jit(device=...)` names; else where its arrays are; else on the device
that `with jt.device(...)` chose; else on the CPU. Arrays that are elsewhere are brought there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.surface import ensure
from ...runtime.cuda.array import DeviceArray
from ...runtime.devices import CPU, FIRST_GPU, Device, parse_device
from ..core.current import native_calls_held
from ..data import pytree
from ..data.accept import check_array, to_array
from ..data.foreign import is_foreign
from ..messages import errors
from ..messages.errors import complain

if TYPE_CHECKING:
    from ...runtime.cuda.client import Client

CHOSEN: ContextVar[Device | None] = ContextVar("jitney_device", default=None)


def devices(platform: str | None = None) -> list[Device]:
    """The devices of this machine, the CPU first; those of one platform ("cpu", "cuda") if it is given.

    >>> str(devices("cpu")[0])
    'cpu'
    """
    if platform not in (None, "cpu", "cuda"):
        raise ValueError(f"platform={platform!r}: choose 'cpu' or 'cuda'")
    from ...runtime.cuda.client import cuda_devices

    all_devices = [CPU, *([] if platform == "cpu" else cuda_devices())]
    return [d for d in all_devices if platform in (None, d.platform)]


@contextmanager
def device(which: str | Device) -> Iterator[Device]:
    """Run what is called inside on a device: compiled functions whose arrays are on no other one.

        with jt.device("cuda"):
            y = f(x)                # x is copied to the GPU; y is a DeviceArray

    Raises DeviceError if there is no such device.

    >>> with jt.device("cpu"):
    ...     jt.jit(np.sin)(0.0)
    np.float64(0.0)
    """
    chosen = resolved(parse_device(which))
    if chosen != CPU:
        client(chosen)
    reset = CHOSEN.set(chosen)
    try:
        with native_calls_held():
            yield chosen
    finally:
        CHOSEN.reset(reset)


def device_put(tree: Any, device: str | Device | None = None) -> Any:
    """Arrays of a pytree, copied to a device: `DeviceArray`s on a GPU, NumPy arrays on the CPU.

    Without `device` they go to the one that `with jt.device(...)` chose, or to the first GPU. Arrays
    that are there already stay as they are; those of other libraries in the memory of the same
    GPU (DLPack, `__cuda_array_interface__`) are taken without a copy if they are C-contiguous: work
    waits for theirs, and theirs on the default stream for ours, so that they may be changed there.
    A copy is asynchronous; the source may be changed as soon as the call returns.

    >>> jt.device_put(np.ones(2), "cpu")
    array([1., 1.])
    """
    chosen = resolved(parse_device(device or CHOSEN.get() or "cuda"))
    if chosen != CPU:
        client(chosen)
    from ..data.opened import tree_map  # no call needs it

    return tree_map(lambda leaf: put(leaf, chosen), tree)


def resolved(device: Device) -> Device:
    """The device itself, which of "cuda" is the first GPU, where there is one."""
    if device != FIRST_GPU:
        return device
    from ...runtime.cuda.client import cuda_devices

    return next(iter(cuda_devices()), FIRST_GPU)


def client(device: Device) -> Client:
    """Who runs programs on a GPU. Raises DeviceError if there is none of that name."""
    from ...runtime.cuda.client import client_of

    ensure("device array")
    return client_of(device)


def put(leaf: Any, target: Device) -> Any:
    """One array or number on a device."""
    foreign = is_foreign(leaf)
    if target == CPU:
        if foreign:
            return leaf.get() if hasattr(leaf, "get") else np.asarray(put(leaf, own_device(leaf)))
        return np.array(leaf, copy=None)
    there = client(target)
    if isinstance(leaf, DeviceArray):
        return leaf if leaf.device == target else there.put(np.asarray(leaf))
    if foreign:
        return there.adopt(leaf)
    if not isinstance(leaf, (np.ndarray, np.generic, bool, int, float, complex)):
        complain(
            errors.ArgumentError,
            f"device_put takes arrays and numbers, not {type(leaf).__name__}",
            "pass np.asarray(x).",
        )
    return there.put(np.ascontiguousarray(check_array(np.asarray(leaf))).reshape(np.shape(leaf)))


def put_all(client: Client, leaves: Sequence[Any]) -> Sequence[DeviceArray]:
    """Arrays and numbers as arrays in the client's memory.

    Raises OverflowError for a Python int beyond int64.
    """
    for leaf in leaves:
        if type(leaf) is not DeviceArray or leaf.client is not client:
            break
    else:
        return leaves
    arrays = []
    for leaf in leaves:
        if type(leaf) is not DeviceArray:
            number = not isinstance(leaf, np.ndarray)
            leaf = client.number(to_array(leaf)) if number else client.put(leaf)
        elif leaf.client is not client:
            leaf = client.put(np.asarray(leaf))
        arrays.append(leaf)
    return arrays


def own_device(leaf: Any) -> Device:
    """Where a foreign array is."""
    from ...runtime.cuda.protocols import gpu_number

    return Device("cuda", gpu_number(leaf))


def device_of_any(array: Any) -> Device:
    """Where an array of any library is."""
    if isinstance(array, DeviceArray):
        return array.device
    return own_device(array) if is_foreign(array) else CPU


def device_of(leaves: Iterable[Any]) -> Device | None:
    """The device that these arrays are on; None if none of them is on a GPU.

    Raises ArgumentError if they are on several.
    """
    on = {leaf.device for leaf in leaves if type(leaf) is DeviceArray}
    if len(on) > 1:
        names = " and ".join(sorted(map(str, on)))
        complain(
            errors.ArgumentError,
            f"the arrays of one call are on {names}",
            "bring them together with jt.device_put(x, device), or choose with jt.jit(f, device=...).",
        )
    return on.pop() if on else None


def holds_device_arrays(tree: Any) -> bool:
    """Whether a leaf of a pytree is a DeviceArray."""
    return any(type(leaf) is DeviceArray for leaf in pytree.flatten(tree)[0])


def unpickled(array: np.ndarray[Any, Any], device: Device) -> Any:
    """A DeviceArray out of a pickle: on its device, or a NumPy array where there is none."""
    from ...runtime.cuda.library import DeviceError

    try:
        return client(device).put(array)
    except DeviceError:
        return array
