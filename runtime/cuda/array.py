"""`DeviceArray`: an array in a GPU's memory, as its owner and other libraries see it.

What computes with it (operators, NumPy's functions) is attached by `tracer.interop.device_functions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from ...ir.types import is_extended
from ..devices import Device

if TYPE_CHECKING:
    from .client import Client
    from .memory import DeviceMemory

F = TypeVar("F", bound=Callable[..., Any])
LEGACY = 1  # the legacy default stream, as DLPack and __cuda_array_interface__ name it


class _Donated:
    """In the place of the memory of an array that was given up."""

    def __getattr__(self, name: str) -> NoReturn:
        from .library import DeviceError

        raise DeviceError(
            "the array was donated (donate_argnums) to a function that has been called: its memory "
            "is that of a result. Use the result, or call without donating it"
        )


DONATED: Any = _Donated()


class DeviceArray:
    """An immutable, C-contiguous array in device memory.

    Results of compiled functions on a GPU are such arrays; `jt.device_put` makes one of a NumPy array.
    They may be there before their elements are: whoever asks for elements (`np.asarray(x)`,
    `float(x)`, `print(x)`) waits. Operators, methods and NumPy's functions run on the device, each as
    a small compiled function.

    >>> x = jt.device_put(np.arange(3.0), "cuda")            # doctest: +SKIP
    >>> np.asarray(x * 2)                                    # doctest: +SKIP
    array([0., 2., 4.])
    """

    __slots__ = ("__weakref__", "buffer", "client", "dtype", "shape")

    buffer: DeviceMemory
    client: Client
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]  # == is by element

    def __init__(
        self, client: Client, buffer: DeviceMemory, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.client, self.buffer, self.shape, self.dtype = client, buffer, shape, dtype

    # What it is

    @property
    def device(self) -> Device:
        """Where its memory is."""
        return self.client.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes: those of C order."""
        steps, step = [], self.itemsize
        for n in reversed(self.shape):
            steps.append(step)
            step *= n
        return tuple(reversed(steps))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(self.shape[0]))  # type: ignore[index]

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "a DeviceArray does not change: assign inside of a function under jt.jit, which returns "
            "the new array, or choose by element with jt.where(condition, value, x)"
        )

    # Its elements, for which the host waits

    def block_until_ready(self) -> DeviceArray:
        """Wait until its elements have been computed. Raises what the computation raised."""
        self.client.wait(self.buffer)
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("the elements are on a GPU: np.asarray(x) has to copy them")
        array = np.empty(self.shape, self.dtype)
        self.client.fetch(self.buffer, array)
        return array if dtype is None else array.astype(dtype, copy=False)

    def item(self, *index: Any) -> Any:
        """The element as a Python scalar."""
        return np.asarray(self).item(*index)

    def tolist(self) -> Any:
        return np.asarray(self).tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        return np.asarray(self).tobytes(order)

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __float__(self) -> float:
        return float(self._element("float()"))

    def __int__(self) -> int:
        return int(self._element("int()"))

    def __complex__(self) -> complex:
        return complex(self._element("complex()"))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self.item())

    def _element(self, what: str) -> Any:
        if self.size != 1:
            raise TypeError(f"{what} needs an array of one element, not {list(self.shape)}")
        return self.item()

    def __repr__(self) -> str:
        return f"DeviceArray({np.array_repr(np.asarray(self))[6:-1]}, device={str(self.device)!r})"

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __format__(self, spec: str) -> str:
        return format(np.asarray(self)[()] if not self.ndim else np.asarray(self), spec)

    # Copies

    def __copy__(self) -> DeviceArray:
        return self

    def __deepcopy__(self, memo: Any) -> DeviceArray:
        return self

    # Other libraries

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.client.emulated:
            raise AttributeError("the memory of an emulated GPU is no device memory")
        if is_extended(self.dtype):
            raise AttributeError(f"the protocol has no name for {self.dtype}; DLPack has")
        self.buffer.used_on(LEGACY)  # which waits for most streams that anybody reads it on
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.buffer.address, True),
            "version": 3,
            "strides": None,
            "stream": self.client.stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        from ..dlpack import CPU, CUDA

        return (CPU, 0) if self.client.emulated else (CUDA, self.device.index)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule for the memory itself, which the consumer must not write to.

        `stream` is where it will be read: None or 1 is the legacy default stream, 2 the one of the
        thread, -1 means that the consumer waits by itself. That stream waits for the elements, and
        the memory is used again only after what the stream does with it.
        """
        from ..dlpack import CPU, lend

        here = self.__dlpack_device__()
        if dl_device not in (None, here):
            if dl_device != (CPU, 0) or copy is False:
                raise BufferError(f"the array is on {self.device}, not on {dl_device}")
            array = np.asarray(self)
            return lend(array.ctypes.data, self.shape, self.dtype, (CPU, 0), array)
        lent = self.client.copy(self) if copy else self
        if self.client.emulated:
            lent.block_until_ready()
        elif stream == 0:
            raise ValueError("stream=0 could be either default stream: say 1 or 2")
        else:
            if stream != -1:
                self.client.let_wait(stream or LEGACY)
            lent.buffer.used_on(LEGACY if stream in (None, -1) else stream)
        return lend(lent.buffer.address, self.shape, self.dtype, here, lent.buffer)


def method(*names: str) -> Callable[[F], F]:
    """Attach a function to `DeviceArray` as a method."""

    def attach(function: F) -> F:
        for name in names:
            setattr(DeviceArray, name, function)
        return function

    return attach
