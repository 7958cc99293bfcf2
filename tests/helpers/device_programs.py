"""Programs written by hand, run as a client runs them, on the device of the tests (`gpu.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpu
import numpy as np
import pytest

from jitney.codegen.cuda.program import DeviceProgram
from jitney.runtime.cuda.driver import Context, describe
from jitney.runtime.cuda.emulator.machine import FORWARDS, Order
from jitney.runtime.cuda.execute import DeviceExecutable
from jitney.runtime.cuda.memory import context_pool
from jitney.runtime.cuda.transfers import download, upload

hopper_only = pytest.mark.skipif(
    gpu.REAL and gpu.device().capability != (9, 0), reason="what sm_90a alone has"
)


def execute(
    program: DeviceProgram,
    arrays: Sequence[np.ndarray[Any, Any]],
    order: Order = FORWARDS,
    runs: int = 1,
) -> list[np.ndarray[Any, Any]]:
    """The program's outputs, of the last of so many runs."""
    library = gpu.library(64 << 20)
    if not gpu.REAL:
        library.order = order
    context = gpu.poison(Context(describe(library)[0]))
    pool, stream = context_pool(context), context.create_stream()
    buffers = [upload(pool, a, stream, "an operand") for a in arrays]
    executable = DeviceExecutable(program, context)
    for _ in range(runs):
        run = executable.run([x.address for x in buffers], stream)
        run.wait()
        results = [np.empty(o.shape, o.dtype) for o in program.outputs]
        for result, buffer in zip(results, run.outputs, strict=True):
            download(context, buffer.address, result, stream)
    return results
