"""The launcher: tables of commands that reach the driver as written, arguments aligned and patched."""

import struct

import numpy as np
import pytest

from jitney.runtime.cuda.emulator.driver import EmulatedLibrary
from jitney.runtime.cuda.launcher import Table, launcher, pack_arguments
from jitney.runtime.cuda.library import SIGNATURES

# The launcher's tables


def test_arguments_are_aligned_and_patched():
    packed, patches = pack_arguments([b"\1\2\3\4", (3, 16), b"\5", b"\6\7", (0, 0)])
    assert packed == b"\1\2\3\4" + bytes(4) + bytes(8) + b"\5\0\6\7" + bytes(4) + bytes(8)
    assert patches == [(8, 3, 16), (24, 0, 0)]
    with pytest.raises(ValueError, match="a kernel can have 4096"):
        Table().launch(1, (1, 1, 1), (1, 1, 1), 0, [(0, 0)] * 513)


def test_commands_reach_the_driver_as_written():
    calls = []

    class Recorder(EmulatedLibrary):
        anywhere = frozenset(SIGNATURES)

        def _cuLaunchKernel(self, f, gx, gy, gz, bx, by, bz, shared, stream, params, extra):
            from jitney.runtime.cuda.emulator.call_data import packed

            calls.append(
                ("launch", f, gx, gy, gz, bx, by, bz, shared, stream, packed(params, extra))
            )

        def _cuMemcpyDtoDAsync_v2(self, target, source, nbytes, stream):
            calls.append(("copy", target, source, nbytes, stream))

        def _fill(self, target, type, value, count, stream):
            from jitney.runtime.cuda.emulator.device_memory import RefusedCall

            if value == 9:
                raise RefusedCall(77)
            calls.append(("fill", target, type(0).__class__.__name__, value, count, stream))

        def _cuMemcpyDtoHAsync_v2(self, target, source, nbytes, stream):
            calls.append(("fetch", target, source, nbytes, stream))

        def _cuGraphLaunch(self, graph, stream):
            calls.append(("graph", graph, stream))

        def _cuEventRecord(self, event, stream):
            calls.append(("record", event, stream))

        def _cuCtxPushCurrent_v2(self, context):
            from jitney.runtime.cuda.emulator.device_memory import RefusedCall

            calls.append(("push", context))
            if context == 13:
                raise RefusedCall(201)

        def _cuCtxPopCurrent_v2(self, context):
            assert context
            calls.append(("pop",))

    table = Table()
    table.launch(2**40, (2**31 - 1, 65535, 7), (1024, 3, 64), 2**17, [(1, 8), b"\1\0\0\0", (0, -4)])
    table.launch(5, (1, 1, 1), (1, 1, 1), 0, [])
    table.copy((0, 16), (1, 0), 2**33)
    table.copy((0, 16), (1, 0), 0)
    for width, value in ((1, 0xFE), (2, 0xFEDC), (4, 0xFEDCBA98)):
        table.fill((1, width), 2**34, width, value)
    table.fill((1, 0), 0, 1, 0)
    rest = Table()
    rest.fetch((0, 8), (1, 4), 64)
    rest.graph(0)
    rest.record(1)
    table.extend(rest)
    assert table.commands == 9
    words = table.finish()
    bases = np.array([2**45, 2**46], np.int64)
    run = launcher(Recorder(1 << 16))
    assert run(words.ctypes.data, bases.ctypes.data, 99) == 0
    packed = struct.pack("<qi4xq", 2**46 + 8, 1, 2**45 - 4)
    assert calls == [
        ("launch", 2**40, 2**31 - 1, 65535, 7, 1024, 3, 64, 2**17, 99, packed),
        ("launch", 5, 1, 1, 1, 1, 1, 1, 0, 99, b""),
        ("copy", 2**45 + 16, 2**46, 2**33, 99),
        ("fill", 2**46 + 1, "c_ubyte", 0xFE, 2**34, 99),
        ("fill", 2**46 + 2, "c_ushort", 0xFEDC, 2**34, 99),
        ("fill", 2**46 + 4, "c_uint", 0xFEDCBA98, 2**34, 99),
        ("fetch", 2**45 + 8, 2**46 + 4, 64, 99),
        ("graph", 2**45, 99),
        ("record", 2**46, 99),
    ]
    calls.clear()
    assert launcher(Recorder(1 << 16), 12)(words.ctypes.data, bases.ctypes.data, 1) == 0
    assert calls[0] == ("push", 12) and calls[-1] == ("pop",) and len(calls) == 11
    calls.clear()
    assert launcher(Recorder(1 << 16), 13)(words.ctypes.data, bases.ctypes.data, 1) == 201
    assert calls == [("push", 13)]
    failing = Table()
    failing.fill((1, 0), 1, 4, 9)
    failing.copy((0, 0), (1, 0), 8)
    words = failing.finish()
    calls.clear()
    assert run(words.ctypes.data, bases.ctypes.data, 0) == 77 and not calls
    assert launcher(Recorder(1 << 16), 12)(words.ctypes.data, bases.ctypes.data, 0) == 77
    assert calls == [("push", 12), ("pop",)]
