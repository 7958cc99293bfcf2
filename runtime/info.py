"""What `python -m jitney info` tells: the machine and the installation as jitney sees them.

`facts()` is the data, `describe()` the text, `describe_trial()` what a trial of compiled code says,
which takes seconds. None fails: what cannot be found out is said so.
"""

from __future__ import annotations

import platform
from typing import Any

# The features that decide about generated code, of the hundred that LLVM lists.
_NOTABLE = (
    "sse4.2",
    "avx",
    "f16c",
    "fma",
    "avx2",
    "avx512f",
    "avx512dq",
    "avx512bw",
    "avx512vl",
    "avx512vnni",
    "avx512bf16",
    "avx512fp16",
    "amx-tile",
    "neon",
    "sve",
    "sve2",
    "bf16",
)


def facts() -> dict[str, str]:
    """Facts by name, in printing order."""
    lines: dict[str, str] = {}
    for section in (_versions, _cpu, _threads, _arrays, _cache, _cuda):
        try:
            lines.update(section())
        except Exception as error:  # a broken installation is when this page is needed most
            lines[section.__name__.strip("_")] = f"unavailable ({type(error).__name__}: {error})"
    return lines


def describe() -> str:
    """The facts as lines of text."""
    table = facts()
    width = max(map(len, table))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in table.items())


def describe_trial() -> str:
    """Whether functions that a child process compiles are right, and what else a report needs."""
    from .trial import outcome

    return (
        f"trial     {outcome()}\n\n"
        "A report of a fault has these lines, the function, its call with shapes and dtypes, what\n"
        "came out and what should have; `print(f.trace(*args))` helps, too."
    )


def _versions() -> dict[str, str]:
    import numpy as np

    from ..ir.version import __version__
    from .native.engine import llvm_versions
    from .platforms import remark

    llvmlite, llvm = llvm_versions()
    return {
        "jitney": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform() + (f" ({remark()})" if remark() else ""),
        "numpy": np.__version__,
        "llvmlite": f"{llvmlite} (LLVM {llvm})",
    }


def _cpu() -> dict[str, str]:
    from .native.engine import cpu_description
    from .native.host import host_target

    target = host_target()
    notable = [name for name in _NOTABLE if target.has(name)]
    return {
        "cpu": f"{cpu_description()} ({target.cpu})",
        "features": " ".join(notable) or "none that matter",
        "vectors": f"{target.vector_bits} bits ({target.lanes(4)} x f32, {target.lanes(8)} x f64)",
    }


def _threads() -> dict[str, str]:
    from .threads.futex import supported
    from .threads.pool import get_threads

    threads = get_threads()
    return {"threads": str(threads) if supported() else "1 (no thread pool for this system)"}


def _arrays() -> dict[str, str]:
    from .call.callable import native_calls
    from .memory.arrays import recycler
    from .native.layout import free_threaded, ndarray_layout

    pool = recycler()
    why = "switched off" if ndarray_layout() else "unknown ndarray layout"
    why = "a Python built without the GIL" if free_threaded() else why
    return {
        "calls": "native" if native_calls() else f"through Python ({why})",
        "outputs": (
            f"recycled, up to {_size(pool.limit)}"
            if pool.enabled
            else f"from NumPy ({pool.reason})"
        ),
    }


def _cache() -> dict[str, str]:
    from .cache.disk import disk_cache

    cache = disk_cache()
    if not cache.enabled:
        return {"cache": f"memory only: {cache.reason}"}
    entries, size = cache.size()
    note = "; can be written to" if cache.writable else f"; read only: {cache.reason}"
    return {"cache": f"{cache.directory} ({entries} entries, {_size(size)}{note})"}


def describe_cache() -> str:
    """What `jitney cache info` prints."""
    from .cache.disk import disk_cache
    from .config import config

    cache = disk_cache()
    state = "in use" if cache.writable else "read only" if cache.enabled else "not in use"
    lines = {"directory": cache.directory or "none", "state": state}
    if cache.reason:
        lines["because"] = cache.reason
    entries, size = cache.size()
    lines["entries"] = f"{entries}, {_size(size)} of at most {_size(cache.limit)}"
    lines["memory"] = f"at most {_size(config.memory_cache_size)} of code in each process"
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items())


def _cuda() -> dict[str, str]:
    return {"cuda": cuda_driver()}


def cuda_driver() -> str:
    """The CUDA driver's version and the devices, with the reasons why some are left out; or why there
    are none."""
    from .cuda.driver import survey
    from .cuda.library import DeviceError

    try:
        gpus, reasons = survey()
    except DeviceError as error:
        return str(error)
    said = [f"{info}, driver {info.driver // 1000}.{info.driver % 1000 // 10}" for info in gpus]
    return "; ".join([*said, *reasons]) or "the NVIDIA driver finds no GPU"


def _size(nbytes: Any) -> str:
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
