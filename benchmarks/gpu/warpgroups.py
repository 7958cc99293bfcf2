"""Products by warpgroups of sm_90a, tile by tile: the answer, registers, and the speed at a large size.

They hand over between copy engine and tensor cores by barriers in memory: a mistake there hangs or reads
what is not there yet. So each tile is an item of its own, before anything else uses them; if one fails,
the rest of the kit does without (JITNEY_CUDA_WARPGROUPS=0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from .process import Options, Writer

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32}
ELEMENTS = {"f16": (False, True), "bf16": (True,), "tf32": (False,)}  # whether b lies by rows
CHECKED, TINY = (1000, 1160, 520), (136, 64, 72)  # rows, columns, length of the sum
TIMED, RUNS = 4096, 20
TOLERANCE = {"f16": 2e-3, "bf16": 2e-2, "tf32": 2e-3}


def stage(options: Options, writer: Writer) -> Iterator[tuple[str, Callable[[], Any]]]:
    from jitney.codegen.kernels.matmul.cuda_warpgroups import SHAPES, tile_of
    from jitney.ir.record import replace
    from jitney.runtime.cuda.client import target_of
    from jitney.runtime.cuda.driver import devices
    from jitney.runtime.cuda.library import DeviceError

    try:
        info = devices()[0]
    except DeviceError:  # the next stage says so
        return
    target = target_of(info)
    if not target.exact:
        return
    small = bool(options.get("small"))
    for rows, n in [(1, 64)] if small else SHAPES:
        for element, ways in {"f16": (True,)}.items() if small else ELEMENTS.items():
            for by_rows in ways:
                tile = tile_of(rows, n, element)
                name = f"{tile.m} x {n}, {element}{', b by rows' if by_rows else ''}"
                bench = Bench(info, replace(target, tf32=element == "tf32"), tile, by_rows)
                yield name, lambda bench=bench: bench.item(small)  # type: ignore[misc]


class Bench:
    """One tile of one kind of elements."""

    def __init__(self, info: Any, target: Any, tile: Any, by_rows: bool) -> None:
        self.context = info.context()
        self.target, self.tile, self.by_rows = target, tile, by_rows

    def item(self, small: bool) -> dict[str, Any]:
        m, n, k = TINY if small else CHECKED
        found = self.checked(m, n, k)
        if not small and "error" not in found and self.tile.element != "bf16":
            found["tflops"] = self.timed()
        return found

    def program(self, m: int, n: int, k: int) -> Any:
        import jitney as jt
        from jitney.codegen.cuda.tuning import Fixed
        from jitney.codegen.device.compile import compile_device
        from jitney.ir.passes import optimise, storable

        dtype = DTYPES[self.tile.element]
        x, y = np.zeros((m, k), dtype), np.zeros((k, n) if self.by_rows else (n, k), dtype)
        function = (lambda x, y: x @ y) if self.by_rows else (lambda x, y: x @ y.T)
        graph = optimise(storable(jt.jit(function).lower(x, y).graph))
        return compile_device(graph, self.target, chooser=Fixed({"product": repr(self.tile)}))

    def loaded(self, m: int, n: int, k: int) -> tuple[Any, list[Any], list[Any], int]:
        """The executable, operands on the host and on the device, and a stream."""
        from jitney.runtime.cuda.execute import DeviceExecutable
        from jitney.runtime.cuda.memory import context_pool
        from jitney.runtime.cuda.transfers import upload

        rng = np.random.default_rng(0)
        dtype = DTYPES[self.tile.element]
        shapes = (m, k), ((k, n) if self.by_rows else (n, k))
        arrays = [rng.standard_normal(s, np.float32).astype(dtype) for s in shapes]
        stream = self.context.create_stream()
        pool = context_pool(self.context)
        buffers = [upload(pool, a, stream, "an operand") for a in arrays]
        executable = DeviceExecutable(self.program(m, n, k), self.context)
        return executable, arrays, buffers, stream

    def checked(self, m: int, n: int, k: int) -> dict[str, Any]:
        from jitney.runtime.cuda.transfers import download

        executable, (x, y), buffers, stream = self.loaded(m, n, k)
        program = executable.program
        if "wgmma" not in program.ir:
            return {"error": "another kernel was chosen"}
        run = executable.run([b.address for b in buffers], stream)
        (output,) = program.outputs
        got = np.empty(output.shape, output.dtype)
        download(self.context, run.outputs[0].address, got, stream)
        got = got.view(x.dtype).astype(np.float64)
        y = y if self.by_rows else y.T
        want = x.astype(np.float64) @ y.astype(np.float64)
        error = float(np.abs(got - want).max() / np.abs(want).max())
        (name,) = program.kernels
        attributes = {} if self.context.info.emulated else executable.attributes(name)
        found: dict[str, Any] = {"deviation": error, "kernel": attributes}
        if not error <= TOLERANCE[self.tile.element]:
            found["error"] = f"wrong answer: off by {error:.3g} of the largest element"
        return found

    def timed(self) -> float:
        """Floating-point operations of a large product, in units of 1e12 each second."""
        executable, _, buffers, stream = self.loaded(TIMED, TIMED, TIMED)
        context, addresses = self.context, [b.address for b in buffers]
        for _ in range(3):
            executable.run(addresses, stream)
        start, end = (context.create_event(timing=True) for _ in range(2))
        context.record_event(start, stream)
        for _ in range(RUNS):
            executable.run(addresses, stream)
        context.record_event(end, stream)
        context.synchronize(stream)
        return 2e-12 * TIMED**3 * RUNS / context.elapsed(start, end)
