"""Executables as bytes: machine code with everything that a call, its errors and `explain` need.

The LLVM text is kept too, compressed, for whoever asks to see it. Reading a record imports neither
LLVM nor the code generator.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from ...codegen.module import NativeModule
from ...ir.graph import SourceLine
from ...ir.record import fields, replace
from .image import Image

Code = Image | bytes  # see `Engine.assemble`


class StoredModule(NativeModule):
    """A module that was read back. Its text is unpacked when it is asked for."""

    def __init__(self, state: dict[str, Any], packed: bytes) -> None:
        self.__dict__.update(state)
        self.__dict__["_packed"] = packed

    @property
    def text(self) -> str:  # type: ignore[override]
        import zlib

        return zlib.decompress(self.__dict__["_packed"]).decode()


def dump_code(code: Code) -> bytes:
    """Compiled code as bytes for the cache on disk."""
    return pickle.dumps(code, pickle.HIGHEST_PROTOCOL)


def load_code_record(data: bytes | None) -> Code | None:
    """The code in a record; None if there is none."""
    code = _unpickle(data)
    return code if isinstance(code, (Image, bytes)) else None


def dump_executable(module: NativeModule, code: Code) -> bytes | None:
    """The record of a compiled module; None if it refers to objects of this process."""
    if not all(getattr(site.function, "portable", False) for site in module.callbacks):
        return None
    if isinstance(module, StoredModule):
        packed = module.__dict__["_packed"]
    else:
        import zlib

        packed = zlib.compress(module.text.encode(), 1)
    state = {name: getattr(module, name) for name in fields(module) if name != "text"}
    state["notes"] = {}
    return pickle.dumps((state, packed, code), pickle.HIGHEST_PROTOCOL)


def load_executable(data: bytes | None) -> tuple[NativeModule, Code] | None:
    """What `dump_executable` was given; None if the record is of another making."""
    record = _unpickle(data)
    if not isinstance(record, tuple) or len(record) != 3:
        return None
    state, packed, code = record
    if not isinstance(code, (Image, bytes)):
        return None
    return StoredModule(state, packed), code


def rename_files(module: NativeModule, files: Mapping[str, str]) -> None:
    """Lines of the user's source are in files that have other names today."""

    def renamed(loc: SourceLine | None) -> SourceLine | None:
        return loc and replace(loc, file=files.get(loc.file, loc.file))

    module.errors = [replace(site, loc=renamed(site.loc)) for site in module.errors]
    module.kernels = [
        replace(kernel, locs=tuple(loc for loc in map(renamed, kernel.locs) if loc))
        for kernel in module.kernels
    ]


def _unpickle(data: bytes | None) -> Any:
    try:
        return None if data is None else pickle.loads(data)
    except Exception:  # whatever a pickle of another making may raise
        return None
