"""The kernels in C (`kernels.c`): compiled where there is a compiler, called as the others are."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

SOURCE = os.path.join(os.path.dirname(__file__), "kernels.c")
PLAIN = ("-O3",)
FAST = ("-Ofast", "-march=native")


class Library:
    """The kernels, compiled with some flags."""

    def __init__(self, path: str) -> None:
        self._dll = ctypes.CDLL(path)
        self._repeat = self._dll.repeat
        self._repeat.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_longlong]

    def prepared(
        self, name: str, args: Sequence[Any], result: Any
    ) -> tuple[Callable[[int], None], Any]:
        """A function that runs a kernel so many times, and the array that it leaves its result in.

        Arrays among `args` are written if it writes them; `result` is like what it gives.
        """
        arrays = [np.asarray(a) for a in args if not isinstance(a, int)]
        extents = [n for a in args for n in ((a,) if isinstance(a, int) else np.shape(a))]
        out = None if result is None else np.zeros_like(np.asarray(result))
        held = arrays if out is None else [*arrays, out]
        kernel = ctypes.cast(getattr(self._dll, name), ctypes.c_void_p)
        pointers = (ctypes.c_void_p * len(held))(*(a.ctypes.data for a in held))
        numbers = (ctypes.c_longlong * len(extents))(*extents)

        def run(times: int) -> None:
            assert held  # alive as long as their addresses are used
            self._repeat(kernel, pointers, numbers, times)

        return run, out


def library(*flags: str) -> Library | None:
    """The kernels compiled with `flags`; None where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    path = os.path.join(tempfile.mkdtemp(prefix="kernels-"), "kernels.so")
    command = [compiler, *flags, "-shared", "-fPIC", "-o", path, SOURCE, "-lm"]
    return Library(path) if subprocess.run(command, check=False).returncode == 0 else None
