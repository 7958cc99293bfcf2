"""What the machine can do at best: bandwidth by working set, and multiply-adds a second.

The kernels are a few lines of LLVM IR each, compiled by llvmlite; threads are Python's, which ctypes
lets run side by side. On shared machines these are lower bounds.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Any

import numpy as np

SIZES = (1 << 19, 1 << 22, 1 << 24, 1 << 26, 1 << 28)  # bytes of the working set
VECTORS = 8  # accumulators: enough for the latency of an addition, or of a fused multiply-add
CHAINS = 12

Limits = dict[str, Any]


def measure(threads: int | None = None) -> Limits:
    """`bandwidth`: bytes/s of reading and of copying by working set; `flops`: by dtype."""
    count = threads or len(os.sched_getaffinity(0))
    kernels = _Kernels()
    bandwidth = {
        kind: {size: _best_rate(getattr(kernels, kind), size, count) for size in SIZES}
        for kind in ("read", "copy")
    }
    return {
        "threads": count,
        "bandwidth": bandwidth,
        "flops": {dtype: kernels.flops(dtype, count) for dtype in ("float32", "float64")},
    }


def least_seconds(
    limits: Limits, traffic: float | None, working_set: float, flops: float | None, dtype: str
) -> float | None:
    """The time below which no program can stay, of its traffic and its arithmetic."""
    times = []
    if traffic is not None:
        rates = [
            rate
            for table in limits["bandwidth"].values()
            for size, rate in table.items()
            if int(size) >= 0.75 * working_set or int(size) == SIZES[-1]
        ]
        times.append(traffic / max(rates))
    if flops is not None:
        times.append(flops / limits["flops"][dtype])
    return max(times, default=None)


def _best_rate(kernel: Any, size: int, threads: int) -> float:
    """Bytes/s that `threads` kernels move together; each has its part of the working set."""
    part = size // threads // 4096 * 4096
    buffers = [np.ones(part // 4 + 64, np.float32) for _ in range(threads)]
    repeats = max(1, (1 << 27) // size)

    def run(i: int) -> None:
        kernel(buffers[i].ctypes.data, part, repeats)

    return max(threads * part * repeats / _together(run, threads) for _ in range(7))


def _together(run: Any, threads: int) -> float:
    """Seconds until all have run, from a common start."""
    barrier = threading.Barrier(threads + 1)

    def wait_and_run(i: int) -> None:
        barrier.wait()
        run(i)
        barrier.wait()

    workers = [threading.Thread(target=wait_and_run, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = time.perf_counter()
    barrier.wait()
    seconds = time.perf_counter() - start
    for worker in workers:
        worker.join()
    return seconds


class _Kernels:
    """read(address, bytes, repeats), copy(...) of the first half to the second, and multiply-adds."""

    def __init__(self) -> None:
        from llvmlite import binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        features = binding.get_host_cpu_features()
        wide = 16 if features.get("avx512f") else 8 if features.get("avx") else 4
        machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
            cpu=binding.get_host_cpu_name(), features=features.flatten(), opt=2, jit=True
        )
        self._lanes = {"float32": wide, "float64": wide // 2}
        text = "\n".join([_read(wide), _copy(wide), _fma("float", wide), _fma("double", wide // 2)])
        module = binding.parse_assembly(text)
        module.verify()
        self._engine = binding.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self.read, self.copy, self._fma32, self._fma64 = (
            ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_int64, ctypes.c_int64)(
                self._engine.get_function_address(name)
            )
            for name in ("read", "copy", "fma_float", "fma_double")
        )

    def flops(self, dtype: str, threads: int) -> float:
        kernel = self._fma32 if dtype == "float32" else self._fma64
        sinks = [np.zeros(16, np.float64) for _ in range(threads)]
        trips = 1 << 20
        work = 2 * CHAINS * self._lanes[dtype] * trips * threads

        def run(i: int) -> None:
            kernel(sinks[i].ctypes.data, trips, 1)

        return max(work / _together(run, threads) for _ in range(7))


def _loop(name: str, start: str, limit: str, step: int, phis: str, body: str, end: str) -> str:
    """A function (address, n, repeats) that walks i from `start` below `limit`, `repeats` times."""
    return f"""
define void @{name}(ptr %base, i64 %n, i64 %repeats) {{
entry:
  %half = lshr i64 %n, 1
  br label %outer
outer:
  %r = phi i64 [0, %entry], [%r1, %done]
  br label %inner
inner:
  %i = phi i64 [{start}, %outer], [%i1, %inner]
{phis}{body}
  %i1 = add i64 %i, {step}
  %more = icmp ult i64 %i1, {limit}
  br i1 %more, label %inner, label %done
done:
{end}
  %r1 = add i64 %r, 1
  %again = icmp ult i64 %r1, %repeats
  br i1 %again, label %outer, label %out
out:
  ret void
}}"""


def _read(wide: int) -> str:
    vector, size = f"<{wide} x float>", wide * 4
    phis = "".join(
        f"  %a{k} = phi {vector} [zeroinitializer, %outer], [%b{k}, %inner]\n"
        for k in range(VECTORS)
    )
    body = "\n".join(
        f"  %j{k} = add i64 %i, {k * size}\n"
        f"  %p{k} = getelementptr i8, ptr %base, i64 %j{k}\n"
        f"  %v{k} = load {vector}, ptr %p{k}, align 4\n"
        f"  %b{k} = fadd {vector} %a{k}, %v{k}"
        for k in range(VECTORS)
    )
    end = "\n".join(f"  store volatile {vector} %b{k}, ptr %base, align 4" for k in range(VECTORS))
    return _loop("read", "0", "%n", VECTORS * size, phis, body, end)


def _copy(wide: int) -> str:
    vector, size = f"<{wide} x float>", wide * 4
    body = "\n".join(
        f"  %j{k} = add i64 %i, {k * size}\n"
        f"  %p{k} = getelementptr i8, ptr %base, i64 %j{k}\n"
        f"  %q{k} = getelementptr i8, ptr %p{k}, i64 %half\n"
        f"  %v{k} = load {vector}, ptr %p{k}, align 4\n"
        f"  store {vector} %v{k}, ptr %q{k}, align 4"
        for k in range(VECTORS)
    )
    return _loop("copy", "0", "%half", VECTORS * size, "", body, "")


def _fma(scalar: str, lanes: int) -> str:
    vector, suffix = f"<{lanes} x {scalar}>", f"v{lanes}f{32 if scalar == 'float' else 64}"
    phis = "".join(
        f"  %a{k} = phi {vector} [splat ({scalar} {k + 1}.0), %outer], [%b{k}, %inner]\n"
        for k in range(CHAINS)
    )
    body = "\n".join(
        f"  %b{k} = call {vector} @llvm.fma.{suffix}({vector} %a{k}, "
        f"{vector} splat ({scalar} 0.5), {vector} splat ({scalar} 1.0))"
        for k in range(CHAINS)
    )
    end = "\n".join(f"  store volatile {vector} %b{k}, ptr %base, align 8" for k in range(CHAINS))
    declared = f"declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})"
    return declared + _loop(f"fma_{scalar}", "0", "%n", 1, phis, body, end)
