"""Reading LLVM's own printing of a module: types, operands, calls, memory accesses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import lcm

from ...ir.record import record

_OPEN, _CLOSE = "<({[", ">)}]"
_SCALARS = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}
_ATTRIBUTE = re.compile(
    r"(?:noundef|nonnull|readonly|writeonly|readnone|signext|zeroext|inreg|noalias|nofree|nocapture|"
    r'immarg|returned|align \d+|"[^"]*"|'
    r"(?:range|captures|dereferenceable(?:_or_null)?|initializes|nofpclass)"
    r"\((?:[^()]|\([^()]*\))*\))\s+"
)


def _outside(text: str, start: int = 0) -> Iterator[tuple[int, str, int]]:
    """(place, letter, brackets open behind it) of the letters from `start` on that are in no quotes."""
    depth, quoted = 0, False
    for i in range(start, len(text)):
        letter = text[i]
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter in _OPEN) - (letter in _CLOSE)
            yield i, letter, depth


def split(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, start = [], 0
    for i, letter, depth in _outside(text):
        if letter == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


def closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` closes."""
    for i, letter, depth in _outside(text, start):
        if letter in _CLOSE and not depth:
            return i
    raise ValueError(f"a bracket is open in {text!r}")


def take_type(text: str) -> tuple[str, str]:
    """The type that a text begins with, and the rest."""
    text = text.lstrip()
    if text[0] in _OPEN:
        end = closing(text, 0) + 1
    else:
        match = re.match(r"ptr addrspace\(\d+\)|[%\w.$]+", text)
        assert match, text
        end = match.end()
    return text[:end], text[end:].lstrip()


def operand(text: str) -> tuple[str, str]:
    """(type, value) of `i32 noundef %x`."""
    type, rest = take_type(text)
    while match := _ATTRIBUTE.match(rest):
        rest = rest[match.end() :]
    return type, rest


def size_and_alignment(type: str, named: dict[str, str]) -> tuple[int, int]:
    """Bytes of a type in memory, and what its address is a multiple of."""
    type = type.strip()
    if type.startswith("%"):
        return size_and_alignment(named[type], named)
    if type.startswith("ptr"):
        return 8, 8
    if match := re.fullmatch(r"i(\d+)", type):
        size = 1
        while 8 * size < int(match[1]):
            size *= 2
        return size, min(size, 16)
    if type in _SCALARS:
        return _SCALARS[type], _SCALARS[type]
    if type.startswith("["):
        count, _, element = type[1:-1].partition(" x ")
        size, alignment = size_and_alignment(element, named)
        return int(count) * -(-size // alignment) * alignment, alignment
    if type.startswith("<") and not type.startswith("<{"):
        count, _, element = type[1:-1].partition(" x ")
        bits = re.fullmatch(r"i(\d+)", element)
        width = int(bits[1]) if bits else 8 * size_and_alignment(element, named)[0]
        size = 1
        while 8 * size < int(count) * width:
            size *= 2
        return -(-int(count) * width // 8), size
    packed = type.startswith("<{")
    offset, alignment = 0, 1
    for field in split(type[2:-2] if packed else type[1:-1]):
        size, own = size_and_alignment(field, named)
        own = 1 if packed else own
        offset = -(-offset // own) * own + size
        alignment = lcm(alignment, own)
    return -(-offset // alignment) * alignment, alignment


@record
class ParsedCall:
    """`result = call flags type @name(operands)`; `result` is "" where nothing is given."""

    result: str
    flags: str
    type: str
    name: str
    operands: tuple[tuple[str, str], ...]

    def value(self, number: int) -> str:
        return self.operands[number][1]


_CALL = re.compile(r'^\s*(?:(%\S+) = )?(?:tail |notail |musttail )?call (.*?)@("[^"]*"|[\w.$]+)\(')


def parse_call(line: str) -> ParsedCall | None:
    """A direct call; None for any other line."""
    match = _CALL.match(line)
    if not match:
        return None
    start = match.end() - 1
    inside = line[start + 1 : closing(line, start)]
    before = re.sub(r"\brange\([^)]*\) ", "", match[2]).strip()
    words = before.split(" ")
    flags = []
    while words[0] in _CALL_FLAGS:
        flags.append(words.pop(0))
    return ParsedCall(
        match[1] or "",
        " ".join(flags),
        " ".join(words),
        match[3],
        tuple(operand(part) for part in split(inside)),
    )


_CALL_FLAGS = frozenset(
    "fast nnan ninf nsz arcp contract afn reassoc noundef nonnull noalias zeroext signext".split()
)


@record
class ParsedAssembly:
    """`result = call type asm sideeffect "text", "constraints"(operands)`."""

    result: str
    type: str
    text: str
    operands: tuple[tuple[str, str], ...]


_ASSEMBLY = re.compile(r'^\s*(%\S+) = (?:tail )?call (.*?) asm sideeffect "([^"]*)", "[^"]*"\(')


def parse_assembly(line: str) -> ParsedAssembly | None:
    """A call of inline assembly that gives something; None for any other line."""
    match = _ASSEMBLY.match(line)
    if not match:
        return None
    start = match.end() - 1
    operands = tuple(operand(part) for part in split(line[start + 1 : closing(line, start)]))
    return ParsedAssembly(match[1], match[2].strip(), match[3], operands)


@record
class ParsedAccess:
    """A load, store or atomic: the type in memory, the pointer with its space, `align`, and whether
    other threads' writes are meant to be seen. `before` and `after` surround `ptr ... pointer`."""

    kind: str
    type: str
    space: int
    pointer: str
    align: int
    volatile: bool
    before: str
    after: str


_ACCESS = re.compile(
    r"^\s*(?:%\S+ = )?(load|store|atomicrmw|cmpxchg)\s(?:(?:atomic|volatile|weak)\s)*"
)


def parse_access(line: str) -> ParsedAccess | None:
    """An access of memory; None for any other line."""
    match = _ACCESS.match(line)
    if not match:
        return None
    kind, rest = match[1], line[match.end() :]
    if kind == "load":
        type, rest = take_type(rest)
        where = rest.lstrip(", ")
    elif kind == "store":
        value, where = _first(rest)
        type, _ = take_type(value)
    elif kind == "atomicrmw":
        where = rest.partition(" ")[2]
        type, _ = take_type(_first(where)[1])
    else:
        where = rest
        type, _ = take_type(_first(where)[1])
    pointer_text, _ = _first(where)
    pointer_text = re.sub(
        r" syncscope\(.*| (?:monotonic|acquire|release|acq_rel|seq_cst|unordered)$",
        "",
        pointer_text,
    )
    start = line.rindex(where) if kind != "atomicrmw" else len(line) - len(where)
    pointer_type, pointer = take_type(pointer_text)
    space = re.search(r"addrspace\((\d+)\)", pointer_type)
    align = re.search(r", align (\d+)", where)
    return ParsedAccess(
        kind,
        type,
        int(space[1]) if space else 0,
        pointer,
        int(align[1]) if align else 1,
        bool(re.search(r"\b(atomic|volatile)\b", match[0])) or kind == "cmpxchg",
        line[:start],
        line[start + len(pointer_text) :],
    )


def _first(text: str) -> tuple[str, str]:
    """A text up to its first comma outside of brackets, and what follows it."""
    for i, letter, depth in _outside(text):
        if letter == "," and not depth:
            return text[:i].strip(), text[i + 1 :].lstrip()
    return text.strip(), ""
