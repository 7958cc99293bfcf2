"""Arrays of other libraries in main memory, taken as ndarrays: the buffer protocol, NumPy's protocols
(`__array_interface__`, `__array__`), DLPack. Their memory is shared wherever they let us. Those in a
GPU's memory (`is_foreign`) are left to `devices.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.cuda.array import DeviceArray
from ..messages.errors import ArgumentError, TracerBase, complain
from . import pytree
from .objects import kind_of

Array = np.ndarray[Any, Any]

_NUMBERS = (bool, int, float, complex, np.generic)
_OTHERS = (str, bytes, type, list, tuple, dict, set, frozenset, type(None))
_OURS = (np.ndarray, DeviceArray, TracerBase)
_ORDINARY = frozenset({np.ndarray, bool, int, float, complex})


def _is_known(x: Any) -> bool:
    """Whether `x` is no array, or one that needs no protocol."""
    return isinstance(x, (*_NUMBERS, *_OTHERS, *_OURS)) or kind_of(x) is not None


def is_foreign(leaf: Any) -> bool:
    """Whether it is another library's array in a GPU's memory."""
    if isinstance(leaf, (np.generic, *_OURS)):
        return False
    kind = type(leaf)
    if not (hasattr(kind, "__dlpack_device__") or hasattr(kind, "__cuda_array_interface__")):
        return False
    from ...runtime.cuda.protocols import is_on_gpu

    return is_on_gpu(leaf)


def borrow(x: Any) -> Array | None:
    """The elements of a foreign array as an ndarray; None if `x` is an ndarray, in a GPU's memory, or
    no array at all.

    What cannot be shared is copied, and the copy is read-only: assignments would be lost.
    """
    if _is_known(x) or is_foreign(x):
        return None
    if offers(x, "__array_interface__") or offers(x, "__array_struct__") or _has_buffer(x):
        return np.asarray(x)
    if offers(x, "__array__"):
        return _asked(x)
    if offers(x, "__dlpack__"):
        return from_capsule(x)
    return None


def is_borrowable(x: Any) -> bool:
    """Whether `borrow` finds protocols to take `x` by."""
    if _is_known(x) or is_foreign(x):
        return False
    names = ("__array_interface__", "__array_struct__", "__array__", "__dlpack__")
    return any(offers(x, name) for name in names) or _has_buffer(x)


def borrowed(tree: Any) -> Any:
    """A pytree with foreign arrays as ndarrays; `tree` itself if there is none."""
    leaves, structure = pytree.flatten(tree)
    arrays = [None if type(leaf) in _ORDINARY else borrow(leaf) for leaf in leaves]
    if all(array is None for array in arrays):
        return tree
    pairs = zip(leaves, arrays, strict=True)
    return pytree.unflatten(structure, [x if array is None else array for x, array in pairs])


def offers(x: Any, name: str) -> bool:
    """Whether it has an attribute. A user's `__getattr__` may raise what it likes for one that it does
    not know, of which the program never asks."""
    try:
        return hasattr(x, name)
    except Exception:
        return False


def _has_buffer(x: Any) -> bool:
    try:
        memoryview(x)
    except (TypeError, BufferError):
        return False
    return True


def _asked(x: Any) -> Array:
    """By `x.__array__`: shared if that can be known."""
    try:
        array = x.__array__(copy=False)
        if isinstance(array, np.ndarray):
            return array
    except (TypeError, ValueError):  # an older protocol, or it has to copy
        pass
    try:
        copied = np.asarray(x)
    except ValueError as error:  # whatever it gives is no array
        name = type(x).__name__
        complain(
            ArgumentError,
            f"an argument of type {name} gives no array: {error}",
            "convert it with np.asarray first.",
            cause=error,
        )
    except TypeError:  # PyTorch's bfloat16 has no name in its own conversion
        if hasattr(x, "__dlpack__"):
            return from_capsule(x)
        raise
    where = getattr(x, "data_ptr", None)  # PyTorch's: cheaper than to ask by DLPack
    if callable(where) and where() == copied.__array_interface__["data"][0]:
        return copied
    copied = copied.view()
    copied.flags.writeable = False
    return copied


def from_capsule(x: Any, copy: bool | None = None) -> Array:
    """By DLPack, in main memory: also bfloat16 and floats of 8 bits, which NumPy's own reader lacks.
    Those are read-only if they are shared: an older protocol does not tell whether they may change.
    """
    try:
        return np.from_dlpack(x, copy=copy)
    except (RuntimeError, BufferError):  # "Unsupported dtype": of NumPy before 2.5, and later
        from ...runtime.dlpack import CPU, take

        if x.__dlpack_device__()[0] != CPU:
            raise
        tensor = take(x.__dlpack__())
        shared = tensor.array()
        return shared.copy() if copy else shared
