"""All launches of a program in one native call: an emitted interpreter of tables.

    table = Table(...)                              # of launches, copies, fills and graphs, as words
    run = launcher(library, context)                # makes the context current meanwhile
    code = run(table.address, bases, stream)        # the driver's error code, 0 for none

A launch from Python costs several times what the driver needs for it. So what a program asks of the
driver is a table, made once; a call goes through it in machine code, putting addresses into arguments:
`bases` is an array of addresses (inputs, outputs, scratch, slots of loops), and a location in a table is
the number of a base and an offset. The code is the same for all programs; what it calls is given to it,
so the emulated driver gets the same calls.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ...codegen.cuda.program import MAP_ALIGNMENT, MAP_BYTES
from ...codegen.llvm.builder import NULL, Value, constant
from ...codegen.llvm.modules import Function, module_ir
from ..native.support import load_support
from .library import DriverLibrary

END, LAUNCH, COPY, FILL, FETCH, GRAPH, RECORD = range(7)
# Words of a launch: its head, then a triple for each address among the arguments, then the arguments.
_HEAD = 8
_MAX_ARGUMENTS = 4096  # bytes that a kernel may have
_BYTES = 32  # the bit of a triple's offset that says that what is at the location is the argument
DRIVER_FUNCTIONS = (
    "cuLaunchKernel",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuMemsetD16Async",
    "cuMemsetD32Async",
    "cuMemcpyDtoHAsync_v2",
    "cuGraphLaunch",
    "cuEventRecord",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
)

Location = tuple[int, int]  # number of a base, offset in bytes


class MapArgument(NamedTuple):
    """An argument of MAP_BYTES, which are at a location of the host's memory when it is launched."""

    location: Location


Packed = Location | bytes | MapArgument


class Table:
    """Commands for the driver, in order."""

    def __init__(self) -> None:
        self._words: list[int] = []
        self.commands = 0

    def launch(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        arguments: Sequence[Packed],
    ) -> None:
        """A kernel; an argument is a location, the bytes of a value, or what is at a location."""
        packed, patches = pack_arguments(arguments)
        if len(packed) > _MAX_ARGUMENTS:
            raise ValueError(
                f"{len(packed)} bytes of arguments; a kernel can have {_MAX_ARGUMENTS}"
            )
        words = list(
            struct.unpack(f"<{-(-len(packed) // 8)}q", packed + b"\0" * (-len(packed) % 8))
        )
        gx, gy, gz = grid
        bx, by, bz = block
        size = _HEAD + 3 * len(patches) + len(words)
        self._add(
            LAUNCH, size, function, gx | gy << 32, gz | bx << 32, by | bz << 32,
            shared_bytes | len(packed) << 32, len(patches),
            *(word for patch in patches for word in patch), *words,
        )  # fmt: skip

    def copy(self, target: Location, source: Location, nbytes: int) -> None:
        if nbytes:
            self._add(COPY, 7, *target, *source, nbytes)

    def fill(self, target: Location, count: int, width: int, value: int) -> None:
        if count:
            self._add(FILL, 7, *target, width, value, count)

    def fetch(self, target: Location, source: Location, nbytes: int) -> None:
        """Copy to pinned memory of the host."""
        self._add(FETCH, 7, *target, *source, nbytes)

    def graph(self, base: int) -> None:
        """Launch the graph whose handle is where addresses have base number `base`."""
        self._add(GRAPH, 3, base)

    def record(self, base: int) -> None:
        """Record the event whose handle is base number `base`."""
        self._add(RECORD, 3, base)

    def extend(self, other: Table) -> None:
        """Go on with what another table does."""
        self._words += other._words
        self.commands += other.commands

    def _add(self, *words: int) -> None:
        self._words += words
        self.commands += 1

    def finish(self) -> np.ndarray[Any, Any]:
        """The table as an array of words."""
        return np.array([*self._words, END], np.int64)


def pack_arguments(
    arguments: Sequence[Packed],
) -> tuple[bytes, list[tuple[int, int, int]]]:
    """Naturally aligned bytes, and (offset, base, addend) of each address among them."""
    packed = b""
    patches = []
    for argument in arguments:
        if isinstance(argument, MapArgument):
            packed += b"\0" * (-len(packed) % MAP_ALIGNMENT)
            patches.append((len(packed) | 1 << _BYTES, *argument.location))
            packed += b"\0" * MAP_BYTES
            continue
        data = argument if isinstance(argument, bytes) else b"\0" * 8
        packed += b"\0" * (-len(packed) % len(data))
        if not isinstance(argument, bytes):
            patches.append((len(packed), *argument))
        packed += data
    return packed, patches


Launcher = Callable[[int, int, int], int]


def launcher(library: DriverLibrary, context: int = 0) -> Launcher:
    """`run(address of a table, address of the bases, stream)`, giving an error code. A context is
    current meanwhile."""
    addresses = [library.address(n) if library.has(n) else 0 for n in DRIVER_FUNCTIONS]
    frame = (ctypes.c_int64 * (len(addresses) + 1))(*addresses, context)
    run = partial(_native(), ctypes.addressof(frame))
    run.frame = frame  # type: ignore[attr-defined]  # as long as the function lives
    return run


@lru_cache(maxsize=1)
def _native() -> Callable[..., int]:
    library = load_support("cuda launcher", lambda: module_ir([interpreter()]), ["cuda_run"])
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p,) * 4)
    return kind(library.keep().address("cuda_run"))


def interpreter() -> Function:
    """`i32 cuda_run(functions and a context, table, bases, stream)`."""
    f = Function("i32", "cuda_run", functions="ptr", table="ptr", bases="ptr", stream="ptr")
    functions, table, bases, stream = f.args
    room, popped = f.alloca("i8", _MAX_ARGUMENTS + 64), f.alloca("ptr")
    size_word, extra = f.alloca("i64"), f.alloca("i64", 5)
    loop = f.block("loop", here="ptr")
    names = ("launch", "copy", "fill", "fetch", "graph", "record", "end")
    launch, copy, fill, fetch, graph, record, end = (f.block(name) for name in names)
    over = f.block("over", code="i32")
    context = f.load("ptr", functions, 8 * len(DRIVER_FUNCTIONS))
    push, pop = (f.load("ptr", functions, 8 * len(DRIVER_FUNCTIONS) - k) for k in (16, 8))
    wanted = context.ne(NULL)
    with f.when(wanted, likely=True):
        pushed = f.call("i32", push, context)
        refused, accepted = f.block("refused"), f.block("accepted")
        f.branch(pushed.eq(0), accepted, refused, likely=True)
        f.at(refused)
        f.ret(pushed)
        f.at(accepted)
    f.jump(loop, table)
    (here,) = f.at(loop)
    next_command = f.offset(here, f.load("i64", here, 8), "i64")
    blocks = {COPY: copy, FILL: fill, FETCH: fetch, GRAPH: graph, RECORD: record}
    f.switch(f.load("i64", here), end, {LAUNCH: launch, **blocks})
    f.at(end)
    f.jump(over, constant("i32", 0))
    (code,) = f.at(over)
    with f.when(wanted, likely=True):
        f.call("i32", pop, popped)
    f.ret(code)

    def half(word: int, high: bool) -> Value:
        return f.load("i32", here, 8 * word + 4 * high)

    def function(number: int) -> Value:
        return f.load("ptr", functions, 8 * number)

    def address_at(word: int) -> Value:
        base = f.load("i64", bases, f.load("i64", here, 8 * word), "i64")
        return base + f.load("i64", here, 8 * word + 8)

    def go_on(code: Value) -> None:
        good, bad = f.block("good"), f.block("bad")
        f.branch(code.eq(0), good, bad, likely=True)
        f.at(bad)
        f.jump(over, code)
        f.at(good)
        f.jump(loop, next_command)

    f.at(launch)
    patches = f.load("i64", here, 56)
    triples = f.offset(here, 8 * _HEAD)
    source = f.offset(triples, patches * 3, "i64")
    nbytes = half(6, True).zext("i64")
    f.copy(room, source, nbytes)
    with f.each(patches) as k:
        triple = f.offset(triples, k * 3, "i64")
        base = f.load("i64", bases, f.load("i64", triple, 8), "i64")
        value, offset = base + f.load("i64", triple, 16), f.load("i64", triple)
        address, described, next = (f.block(n) for n in ("address", "described", "next"))
        f.branch(offset < 1 << _BYTES, address, described, likely=True)
        f.at(address)
        f.store(value, room, offset)
        f.jump(next)
        f.at(described)
        target = f.offset(room, offset & (1 << _BYTES) - 1)
        source = value.to("inttoptr", "ptr")
        f.copy(target, source, MAP_BYTES)
        f.jump(next)
        f.at(next)
    f.store(nbytes, size_word)
    packed = (constant("i64", 1), room, constant("i64", 2), size_word, constant("i64", 0))
    for n, value in enumerate(packed):
        f.store(value, extra, 8 * n)
    sizes = [
        half(3, False),
        half(3, True),
        half(4, False),
        half(4, True),
        half(5, False),
        half(5, True),
    ]
    kernel = f.load("ptr", here, 16)
    go_on(
        f.call("i32", function(0), kernel, *sizes, half(6, False), stream, NULL, extra)
    )  # fmt: skip
    f.at(copy)
    go_on(f.call("i32", function(1), address_at(2), address_at(4), f.load("i64", here, 48), stream))
    f.at(fetch)
    go_on(f.call("i32", function(5), address_at(2), address_at(4), f.load("i64", here, 48), stream))
    for number, block in ((6, graph), (7, record)):
        f.at(block)
        handle = f.load("ptr", bases, f.load("i64", here, 16), "i64")
        go_on(f.call("i32", function(number), handle, stream))
    f.at(fill)
    width, value, count = (f.load("i64", here, 8 * word) for word in (4, 5, 6))
    target = address_at(2)
    widths = {1: f.block("bytes"), 2: f.block("halves"), 4: f.block("words")}
    f.switch(width, end, widths)
    for number, (size, block) in enumerate(widths.items()):
        f.at(block)
        type = f"i{8 * size}"
        pattern = value.trunc(type)
        if size < 4:  # as C passes it
            pattern = pattern.zext("i32")
        go_on(f.call("i32", function(2 + number), target, pattern, count, stream))
    return f
