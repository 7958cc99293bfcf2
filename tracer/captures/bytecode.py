"""What the code of a function loads, stores and imports, one instruction after the other.

Of `dis` this has only the little that a fingerprint needs, and takes a small part of its time.
"""

from __future__ import annotations

import enum
import opcode
import sys
from collections.abc import Iterator
from types import CodeType


class NameUse(enum.Enum):
    """What an instruction does with a name."""

    GLOBAL = enum.auto()  # loads a global or builtin
    GLOBAL_STORED = enum.auto()
    ATTRIBUTE = enum.auto()  # loads an attribute of what was loaded last
    IMPORT = enum.auto()
    NONE = enum.auto()


_ACCESSES = {
    opcode.opmap[name]: access
    for name, access in {
        "LOAD_GLOBAL": NameUse.GLOBAL,
        "LOAD_NAME": NameUse.GLOBAL,
        "STORE_GLOBAL": NameUse.GLOBAL_STORED,
        "DELETE_GLOBAL": NameUse.GLOBAL_STORED,
        "LOAD_ATTR": NameUse.ATTRIBUTE,
        "LOAD_METHOD": NameUse.ATTRIBUTE,
        "IMPORT_NAME": NameUse.IMPORT,
    }.items()
    if name in opcode.opmap
}
# Arguments whose low bit is not part of the name: whether what is loaded is called.
_SHIFTED = {opcode.opmap["LOAD_GLOBAL"]}
if sys.version_info >= (3, 12):
    _SHIFTED.add(opcode.opmap["LOAD_ATTR"])
_EXTENDED = opcode.opmap["EXTENDED_ARG"]
_CACHE = opcode.opmap["CACHE"]


def accesses(code: CodeType) -> Iterator[tuple[NameUse, str]]:
    """What each instruction does, with the name that it does it to."""
    extended = 0
    for op, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument |= extended
        if op == _EXTENDED:
            extended = argument << 8
            continue
        extended = 0
        if op == _CACHE:
            continue
        access = _ACCESSES.get(op)
        if access is None:
            yield NameUse.NONE, ""
        else:
            yield access, code.co_names[argument >> 1 if op in _SHIFTED else argument]
