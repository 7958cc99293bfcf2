"""Kernels as LLVM text, for tests of the emulated GPU: written in a line or two, and launched."""

import re
import struct

import numpy as np
import pytest
from gpu import Module

from jitney.codegen.cuda.intrinsics import INTRINSICS
from jitney.runtime.cuda.emulator.machine import (
    BACKWARDS,
    FORWARDS,
    GREEDY,
    EmulationError,
)

N = "llvm.nvvm."
GLOBAL, SHARED = "ptr addrspace(1)", "ptr addrspace(3)"


def module(body: str, params: str, *, shared: str = "", name: str = "k") -> str:
    """A kernel. Calls are written `@shfl.sync...`; declarations are added from the table."""
    names = sorted(set(re.findall(r"@(llvm\.[\w.]+)\(", body)))
    declarations = "\n".join(INTRINSICS[n].declaration for n in names)
    return f"{shared}\n{declarations}\ndefine ptx_kernel void @{name}({params}) {{\n{body}\n}}\n"


THREAD = f"""
  %t = call i32 @{N}read.ptx.sreg.tid.x()
  %lane = call i32 @{N}read.ptx.sreg.laneid()
"""


def pack(*values) -> bytes:
    """Arrays by address, NumPy numbers by value, as the driver wants them."""
    packed = b""
    for value in values:
        data = (
            struct.pack("<q", value.ctypes.data)
            if isinstance(value, np.ndarray)
            else value.tobytes()
        )
        packed += b"\0" * (-len(packed) % len(data)) + data
    return packed


def launch(text, *values, grid=(1, 1, 1), block=(32, 1, 1), order=FORWARDS, shared=0, races=True):
    """Run kernel `k`; only the arrays given may be accessed."""
    compiled = Module(text) if isinstance(text, str) else text
    ranges = [
        (v.ctypes.data, v.ctypes.data + v.nbytes) for v in values if isinstance(v, np.ndarray)
    ]
    return compiled.launch("k", grid, block, pack(*values), shared, ranges, order, races)


def store(value: str, type: str = "i32", at: str = "%t", pointer: str = "%y") -> str:
    return f"""
  %where{at[1:]} = getelementptr {type}, {GLOBAL} {pointer}, i32 {at}
  store {type} {value}, {GLOBAL} %where{at[1:]}"""


def load(name: str, type: str = "i32", at: str = "%t", pointer: str = "%x") -> str:
    return f"""
  %at{name[1:]} = getelementptr {type}, {GLOBAL} {pointer}, i32 {at}
  {name} = load {type}, {GLOBAL} %at{name[1:]}"""


BUFFER = "@buffer = internal addrspace(3) global [64 x i32] undef, align 16"
BARRIER = f"call void @{N}barrier.cta.sync.aligned.all(i32 0)"


def refused(body, kind, match, *, block=(64, 1, 1), params=f"{GLOBAL} %y", shared=BUFFER, y=None):
    """A kernel that ends in an error, whatever the order of threads."""
    y = np.zeros(64, np.int32) if y is None else y
    text = Module(module(body, params, shared=shared))
    for order in (FORWARDS, GREEDY, BACKWARDS):
        with pytest.raises(EmulationError, match=match) as caught:
            launch(text, y, block=block, order=order)
        assert caught.value.kind == kind
        assert "kernel k, block (0, 0, 0), thread" in str(caught.value)
