"""A small static linker: an ELF object file of LLVM's to an `Image` that any process can load.

An image is position-independent. Everything that LLVM left open inside the object (calls, constants,
globals) is settled here, once; what remains for the loader is a table of addresses, the *slots*,
through which the code reaches all symbols outside. So a loader maps the image, fills in the table,
and needs neither LLVM nor the object file.

    code region    machine code, one jump per imported function, constants     read and execute
    data region    slots, then writable globals                                read and write

`link_elf` knows what LLVM's small position-independent code model uses on x86-64 and on AArch64
(`relocations`). Whatever else an object contains makes it raise `Unlinkable`, and LLVM's own linker
takes the object.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...ir.record import field, record
from .image import PAGE, Image
from .relocations import MACHINES, Unlinkable

_SECTION = np.dtype(
    [("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("addr", "<u8"), ("offset", "<u8")]
    + [("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entsize", "<u8")]
)
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2")]
    + [("value", "<u8"), ("size", "<u8")]
)
_RELOCATION = np.dtype([("where", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])

_RELOCATABLE = 1
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOBITS = 1, 2, 3, 4, 8
_WRITE, _ALLOC, _EXEC, _TLS = 1, 2, 4, 0x400
_FUNCTION = 2
_UNDEFINED, _FIRST_RESERVED = 0, 0xFF00


def link_elf(obj: bytes) -> Image:
    """The image of an object file. Raises Unlinkable."""
    try:
        return _Linker(_Object(obj)).image()
    except (struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
        raise Unlinkable(f"not an object file that can be read: {error}") from None


class _Object:
    """The tables of an ELF object file."""

    def __init__(self, obj: bytes) -> None:
        if obj[:6] != b"\x7fELF\x02\x01":
            raise Unlinkable("no 64-bit little-endian ELF file")
        kind, machine = struct.unpack_from("<HH", obj, 16)
        if kind != _RELOCATABLE or machine not in MACHINES:
            raise Unlinkable("no relocatable object for x86-64 or AArch64")
        self.machine = MACHINES[machine]
        (table,) = struct.unpack_from("<Q", obj, 40)
        count, names = struct.unpack_from("<HH", obj, 60)
        self.bytes = obj
        self.sections = np.frombuffer(obj, _SECTION, count, table)
        self.section_names = [self.text(names, s["name"]) for s in self.sections]
        tables = np.flatnonzero(self.sections["type"] == _SYMTAB)
        if len(tables) != 1:
            raise Unlinkable("no symbol table")
        self.symbols = self.table(int(tables[0]), _SYMBOL)
        strings = int(self.sections[int(tables[0])]["link"])
        self.symbol_names = [self.text(strings, s) for s in self.symbols["name"]]

    def content(self, index: int) -> bytes:
        section = self.sections[index]
        if section["type"] == _NOBITS:
            return b""
        start, size = int(section["offset"]), int(section["size"])
        if start + size > len(self.bytes):
            raise Unlinkable("a section ends beyond the file")
        return self.bytes[start : start + size]

    def table(self, index: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.content(index), dtype)

    def text(self, section: int, offset: int) -> str:
        strings = self.content(section)
        return strings[offset : strings.index(b"\0", offset)].decode()


@record(frozen=False)
class _Region:
    """Bytes being laid out: sections at their alignment, one after the other."""

    size: int = 0
    parts: list[tuple[int, bytes]] = field(default_factory=list)
    filled: int = 0  # beyond it all is zero

    def add(self, content: bytes, size: int, align: int) -> int:
        offset = -(-self.size // max(align, 1)) * max(align, 1)
        self.size = offset + size
        if content:
            self.parts.append((offset, content))
            self.filled = self.size
        return offset


def _distinct(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What np.unique gives, which imports numpy.ma for it: twenty milliseconds of the first call."""
    return np.array(sorted(set(numbers.tolist())), numbers.dtype)


class _Linker:
    """Gives sections offsets, and settles what can be settled before the image has an address."""

    def __init__(self, obj: _Object) -> None:
        self.obj = obj
        self.machine = machine = obj.machine
        self.offset = np.full(len(obj.sections), -1, np.int64)  # of each section in the image
        self.sections = [i for i in range(len(obj.sections)) if self._belongs(i)]
        self.relocations = [
            (int(s["info"]), obj.table(i, _RELOCATION))
            for i, s in enumerate(obj.sections)
            if s["type"] == _RELA and int(s["info"]) in self.sections
        ]
        empty = np.zeros(0, _RELOCATION)
        used = np.concatenate([empty, *(r for _, r in self.relocations)])
        self._check(used)
        symbols = obj.symbols
        undefined = symbols["section"] == _UNDEFINED
        through_slot = np.isin(used["type"], machine.slotted)
        jumps = np.isin(used["type"], machine.calls) & undefined[used["symbol"]]
        self.jumped = _distinct(used["symbol"][jumps])
        self.slotted = _distinct(used["symbol"][through_slot | jumps])
        self.imported = _distinct(used["symbol"][undefined[used["symbol"]]])

    def _belongs(self, index: int) -> bool:
        section, name = self.obj.sections[index], self.obj.section_names[index]
        flags, kind = int(section["flags"]), int(section["type"])
        if not flags & _ALLOC or not section["size"] or name == ".eh_frame":
            return False  # nothing unwinds through our code
        if (
            name.startswith((".ctors", ".dtors"))
            or flags & _TLS
            or kind not in (_PROGBITS, _NOBITS)
            or section["align"] > PAGE
        ):
            raise Unlinkable(f"a section {name} of type {kind}, flags {flags:#x}")
        return True

    def _check(self, used: np.ndarray[Any, Any]) -> None:
        machine = self.machine
        kinds = (machine.pointer, *machine.slotted, *machine.calls, *machine.distances)
        is_known = np.isin(used["type"], kinds)
        if not is_known.all():
            raise Unlinkable(f"relocations of types {set(used['type'][~is_known].tolist())}")
        symbols = self.obj.symbols[used["symbol"]]
        reserved = symbols["section"] >= _FIRST_RESERVED
        outside = symbols["section"] == _UNDEFINED
        direct = np.isin(used["type"], machine.distances)
        if reserved.any() or (outside & direct).any():
            raise Unlinkable("a symbol that cannot be reached through a slot")

    def image(self) -> Image:
        obj, code, data = self.obj, _Region(), _Region()
        sections = obj.sections

        def add(region: _Region, wanted: int, mask: int) -> None:
            for i in self.sections:
                if int(sections[i]["flags"]) & mask == wanted:
                    size, align = int(sections[i]["size"]), int(sections[i]["align"])
                    self.offset[i] = region.add(obj.content(i), size, align)

        add(code, _EXEC, _EXEC)
        nbytes = self.machine.stub_size * len(self.jumped)
        stubs = code.add(bytes(nbytes), nbytes, 16)
        add(code, 0, _EXEC | _WRITE)
        slots = data.add(b"", 8 * len(self.slotted), 8)
        add(data, _WRITE, _EXEC | _WRITE)
        start = -(-code.size // self.machine.page) * self.machine.page
        for i in self.sections:
            if int(sections[i]["flags"]) & _WRITE:
                self.offset[i] += start
        return self._finish(code, data, start, stubs, start + slots)

    def _finish(self, code: _Region, data: _Region, start: int, stubs: int, slots: int) -> Image:
        """The image, where sections have their offsets; `start` is that of the data region."""
        obj = self.obj
        content = np.zeros(start + data.size, np.uint8)
        for base, region in ((0, code), (start, data)):
            for offset, part in region.parts:
                at = base + offset
                content[at : at + len(part)] = np.frombuffer(part, np.uint8)
        section = np.minimum(obj.symbols["section"], len(obj.sections) - 1)
        self.address = self.offset[section] + obj.symbols["value"].astype(np.int64)
        self.defined = (obj.symbols["section"] != _UNDEFINED) & (self.offset[section] >= 0)
        self.slot_of = np.full(len(self.address), -1, np.int64)
        self.slot_of[self.slotted] = slots + 8 * np.arange(len(self.slotted))
        self.stub_of = np.full(len(self.address), -1, np.int64)
        self.stub_of[self.jumped] = stubs + self.machine.stub_size * np.arange(len(self.jumped))
        self._write_stubs(content)
        self._write_distances(content)
        own, outer = self._pointers()
        whole = content.tobytes()
        return Image(
            code=whole[: code.size],
            data=whole[start : start + data.filled],
            code_size=start,
            data_size=data.size,
            exports={
                obj.symbol_names[i]: int(self.address[i])
                for i in np.flatnonzero(self.defined & (obj.symbols["info"] >> 4 != 0))
            },
            imports=tuple(obj.symbol_names[i] for i in self.imported),
            own=tuple(own),
            outer=tuple(outer),
            functions=tuple(self._functions()),
        )

    def _functions(self) -> Iterator[tuple[str, int, int]]:
        symbols = self.obj.symbols
        for i in np.flatnonzero(self.defined & (symbols["info"] & 15 == _FUNCTION)):
            yield self.obj.symbol_names[i], int(self.address[i]), int(symbols["size"][i])

    def _write_stubs(self, content: np.ndarray[Any, Any]) -> None:
        """One jump through its slot for each imported function that is called directly."""
        for symbol in self.jumped:
            at = int(self.stub_of[symbol])
            jump = self.machine.stub(at, int(self.slot_of[symbol]))
            content[at : at + len(jump)] = np.frombuffer(jump, np.uint8)

    def _write_distances(self, content: np.ndarray[Any, Any]) -> None:
        """Relocations that are relative to where they stand: settled here once and for all."""
        machine = self.machine
        for target, every in self.relocations:
            table = every[every["type"] != machine.pointer]
            where = self.offset[target] + table["where"].astype(np.int64)
            symbol, kind = table["symbol"], table["type"]
            defined = self.defined[symbol]
            if (~defined & np.isin(kind, machine.distances)).any():
                raise Unlinkable("a reference to a section that was left out")
            called = np.isin(kind, machine.calls) & ~defined
            aim = np.where(
                np.isin(kind, machine.slotted),
                self.slot_of[symbol],
                np.where(called, self.stub_of[symbol], self.address[symbol]),
            )
            machine.settle(content, where, aim + table["addend"], kind)

    def _pointers(self) -> tuple[list[tuple[int, int]], list[tuple[int, int, int]]]:
        """Words that hold addresses, which the loader fills in: `own` and `outer` of the image."""
        number = {int(symbol): k for k, symbol in enumerate(self.imported)}
        own: list[tuple[int, int]] = []
        outer: list[tuple[int, int, int]] = []

        def point(where: int, symbol: int, addend: int) -> None:
            if symbol in number:
                outer.append((where, number[symbol], addend))
            elif self.defined[symbol]:
                own.append((where, int(self.address[symbol]) + addend))
            else:
                raise Unlinkable(
                    f"a pointer to {self.obj.symbol_names[symbol]}, which was left out"
                )

        for symbol in self.slotted:
            point(int(self.slot_of[symbol]), int(symbol), 0)
        for target, table in self.relocations:
            where = self.offset[target] + table["where"].astype(np.int64)
            for k in np.flatnonzero(table["type"] == self.machine.pointer):
                point(int(where[k]), int(table["symbol"][k]), int(table["addend"][k]))
        if any(where % 8 for where, *_ in (*own, *outer)):
            raise Unlinkable("a pointer that is not aligned")
        return own, outer
