"""An ELF shared object of images, written without a linker: what dlopen and `cc -l` take.

    headers, names, relocations      read
    code of each image               read and execute     } as `native.linker` has laid them out,
    data of each image               read and write       } page by page
    the dynamic section              read and write

Words that hold addresses are left to the system's loader, by the relocations that it has for them; the
functions that code calls elsewhere are those of the C library and of its mathematics. From the "System V
Application Binary Interface", generic part, and the parts for x86-64 and AArch64.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

from ...ir.record import record
from ..native.image import Image

_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_X, _W, _R = 1, 2, 4
_HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ, _RELAENT = 4, 5, 6, 7, 8, 9
_NEEDED, _STRSZ, _SYMENT, _SONAME = 1, 10, 11, 14
_GLOBAL, _GLOBAL_FUNCTION = 0x10, 0x12
_FIRST_CODE = 5  # the number of the first image's section of code
_HEADER, _SEGMENT, _SECTION, _SYMBOL, _RELOCATION = 64, 56, 64, 24, 24


@record
class Machine:
    """ELF's number, the largest page, and its relocations for an own address and for a symbol's."""

    number: int
    page: int
    relative: int
    absolute: int


MACHINES = {"x86_64": Machine(62, 4096, 8, 1), "aarch64": Machine(183, 1 << 16, 1027, 257)}


class _Strings:
    def __init__(self) -> None:
        self.bytes = b"\0"
        self._at: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        if text not in self._at:
            self._at[text] = len(self.bytes)
            self.bytes += text.encode() + b"\0"
        return self._at[text]


def shared_object(
    name: str, images: Sequence[Image], exports: Sequence[Mapping[str, str]], machine: Machine
) -> bytes:
    """The file, called `name`. `exports` says for each image by which names others find which symbols.

    Raises ValueError where code, and not data, holds addresses, which would have to be written.
    """
    return _File(name, images, exports, machine).content()


class _File:
    """Where everything is, and then the bytes of each part."""

    def __init__(
        self,
        name: str,
        images: Sequence[Image],
        exports: Sequence[Mapping[str, str]],
        machine: Machine,
    ) -> None:
        self.images, self.machine = images, machine
        self.strings, self.names = _Strings(), _Strings()
        self.soname = self.strings.add(name)
        self.needed = [self.strings.add(library) for library in ("libm.so.6", "libc.so.6")]
        self.imported = list(dict.fromkeys(n for image in images for n in image.imports))
        self.exported = [
            (public, k, image.exports[own])
            for k, (image, names) in enumerate(zip(images, exports, strict=True))
            for public, own in names.items()
        ]
        for text in (*self.imported, *(public for public, _, _ in self.exported)):
            self.strings.add(text)
        self.n_symbols = 1 + len(self.imported) + len(self.exported)
        self.relocations_size = _RELOCATION * sum(len(i.own) + len(i.outer) for i in images)
        self.written = [image for image in images if image.data_size]
        segments = 4 + len(images) + len(self.written)
        self.hash_at = _HEADER + _SEGMENT * segments
        self.symbols_at = -(-(self.hash_at + 4 * (3 + self.n_symbols)) // 8) * 8
        self.relocations_at = self.symbols_at + _SYMBOL * self.n_symbols
        self.strings_at = self.relocations_at + self.relocations_size
        self.headers_end = self.strings_at + len(self.strings.bytes)
        at, page = self._page(self.headers_end), machine.page
        self.bases = []
        for image in images:
            self.bases.append(at)
            at = self._page(at + image.code_size + image.data_size)
        assert all(base % page == 0 for base in self.bases)
        self.dynamic_at = at

    def _page(self, at: int) -> int:
        return -(-at // self.machine.page) * self.machine.page

    def content(self) -> bytes:
        dynamic, sections = self._dynamic(), self._sections()
        file = bytearray(self.dynamic_at + len(dynamic))
        names_at = len(file)
        file += self.names.bytes
        file += bytes(-len(file) % 8)
        size = len(self.names.bytes)
        last = (self.names.add(".shstrtab"), 3, 0, 0, names_at, size, 0, 0, 1, 0)
        sections.append(struct.pack("<IIQQQQIIQQ", *last))
        header = self._header(len(file), len(sections))
        file += b"".join(sections)
        parts = [
            (0, header),
            (_HEADER, b"".join(self._segments(len(dynamic)))),
            (self.hash_at, self._hash()),
            (self.symbols_at, b"".join(self._symbols())),
            (self.relocations_at, b"".join(self._relocations())),
            (self.strings_at, self.strings.bytes),
            (self.dynamic_at, dynamic),
        ]
        for image, base in zip(self.images, self.bases, strict=True):
            parts += [(base, image.code), (base + image.code_size, image.data)]
        for start, content in parts:
            file[start : start + len(content)] = content
        return bytes(file)

    def _header(self, sections_at: int, sections: int) -> bytes:
        segments = 4 + len(self.images) + len(self.written)
        return struct.pack(
            "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, self.machine.number, 1, 0, _HEADER,
            sections_at, 0, _HEADER, _SEGMENT, segments, _SECTION, sections, sections - 1,
        )  # fmt: skip

    def _segments(self, dynamic: int) -> Iterator[bytes]:
        page = self.machine.page
        yield _segment(_LOAD, _R, 0, self.headers_end, self.headers_end, page)
        for image, base in zip(self.images, self.bases, strict=True):
            yield _segment(_LOAD, _R | _X, base, image.code_size, image.code_size, page)
            size = image.data_size
            if size:
                yield _segment(_LOAD, _R | _W, base + image.code_size, size, size, page)
        for kind, align in ((_LOAD, page), (_DYNAMIC, 8)):
            yield _segment(kind, _R | _W, self.dynamic_at, dynamic, dynamic, align)
        yield struct.pack("<IIQQQQQQ", _STACK, _R | _W, 0, 0, 0, 0, 0, 16)

    def _hash(self) -> bytes:
        """One bucket: there are few names. From the last symbol back."""
        n = self.n_symbols
        return struct.pack(f"<{3 + n}I", 1, n, n - 1, *(max(k - 1, 0) for k in range(n)))

    def _symbols(self) -> Iterator[bytes]:
        yield bytes(_SYMBOL)
        for name in self.imported:
            yield struct.pack("<IBBHQQ", self.strings.add(name), _GLOBAL, 0, 0, 0, 0)
        for name, k, offset in self.exported:
            size = next((s for _, o, s in self.images[k].functions if o == offset), 0)
            section, value = _FIRST_CODE + 2 * k, self.bases[k] + offset
            fields = (self.strings.add(name), _GLOBAL_FUNCTION, 0, section, value, size)
            yield struct.pack("<IBBHQQ", *fields)

    def _relocations(self) -> Iterator[bytes]:
        number = {name: k for k, name in enumerate(self.imported, 1)}
        relative, absolute = self.machine.relative, self.machine.absolute
        for image, base in zip(self.images, self.bases, strict=True):
            if any(where < image.code_size for where, *_ in (*image.own, *image.outer)):
                raise ValueError("code holds addresses")
            for where, target in image.own:
                yield struct.pack("<QQq", base + where, relative, base + target)
            for where, k, addend in image.outer:
                kind = number[image.imports[k]] << 32 | absolute
                yield struct.pack("<QQq", base + where, kind, addend)

    def _dynamic(self) -> bytes:
        tags = [*((_NEEDED, name) for name in self.needed), (_SONAME, self.soname)]
        tags += [(_HASH, self.hash_at), (_STRTAB, self.strings_at)]
        tags += [(_STRSZ, len(self.strings.bytes)), (_SYMTAB, self.symbols_at)]
        tags += [(_SYMENT, _SYMBOL), (_RELA, self.relocations_at)]
        tags += [(_RELASZ, self.relocations_size), (_RELAENT, _RELOCATION), (0, 0)]
        return b"".join(struct.pack("<QQ", *tag) for tag in tags)

    def _sections(self) -> list[bytes]:
        """What linkers ask for, and the system's loader does not."""
        symbols, relocations = _SYMBOL * self.n_symbols, self.relocations_size
        strings, hashes = len(self.strings.bytes), 4 * (3 + self.n_symbols)
        table = [
            (".hash", 5, 2, self.hash_at, hashes, 2, 0, 8, 4),
            (".dynsym", 11, 2, self.symbols_at, symbols, 4, 1, 8, _SYMBOL),
            (".rela.dyn", 4, 2, self.relocations_at, relocations, 2, 0, 8, _RELOCATION),
            (".dynstr", 3, 2, self.strings_at, strings, 0, 0, 1, 0),
        ]
        for image, base in zip(self.images, self.bases, strict=True):
            table.append((".text", 1, 6, base, image.code_size, 0, 0, 64, 0))
            table.append((".data", 1, 3, base + image.code_size, image.data_size, 0, 0, 64, 0))
        table.append((".dynamic", 6, 3, self.dynamic_at, len(self._dynamic()), 4, 0, 8, 16))
        made = [bytes(_SECTION)]
        for name, kind, flags, at, *rest in table:
            fields = (self.names.add(name), kind, flags, at, at, *rest)
            made.append(struct.pack("<IIQQQQIIQQ", *fields))
        self.names.add(".shstrtab")
        return made


def _segment(kind: int, flags: int, at: int, size: int, memory: int, align: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, flags, at, at, at, size, memory, align)
