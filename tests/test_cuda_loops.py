"""Loops on the emulated GPU: their gradients, with tapes, and callbacks, by the real executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulated import TARGET
from emulated import run as plainly
from loop_programs import PROGRAMS, instance
from loops import gradient, run

from jitney.codegen.cuda.compile import compile_device
from jitney.ir.passes import optimise

rng = np.random.default_rng(11)


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradient(f: Any) -> None:
    checkpoint = ["all", "sqrt", 3][PROGRAMS.index(f) % 3]
    graph, _ = instance(f, 1, checkpoint=checkpoint)
    backward = gradient(graph)
    program = compile_device(optimise(backward), TARGET)
    for trips in (0, 4):
        _, arrays = instance(f, trips)
        arrays += [rng.normal(size=v.shape) for v in backward.params[len(arrays) :]]
        arrays = [np.asarray(a) for a in arrays]
        for got, want in zip(plainly(program, arrays), run(backward, *arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)
