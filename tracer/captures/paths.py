"""Places that values are read from: a name, and attributes of what it stands for."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from ...ir.record import record
from ..messages.source import is_pythons_module

ABSENT: Any = object()  # what a path leads to where there is nothing
_OURS = __name__.partition(".")[0]
_LIBRARIES = frozenset({"nn", "optim", "data", "train", "solve"})
_MISSING = (KeyError, ValueError, AttributeError)


@record
class Path:
    """A place to read from: a root and attribute names.

    `kind` is "global" (`root` is the module's dict), "cell" (the cell), "value" (the object itself) or
    "object" (a callable that gives the object, or None when it is gone).
    """

    kind: str
    root: Any
    name: str
    attrs: tuple[str, ...] = ()

    def read(self) -> Any:
        """The current value. Raises what reading it in Python would raise."""
        if self.kind == "global":
            value = self.root[self.name]
        elif self.kind == "cell":
            value = self.root.cell_contents
        elif self.kind == "value":
            value = self.root
        else:
            value = self.root()
        for attr in self.attrs:
            value = getattr(value, attr)
        return value

    def get(self, attr: str) -> Path:
        return Path(self.kind, self.root, self.name, (*self.attrs, attr))

    @property
    def above(self) -> Path:
        """The path to what the last attribute is read from."""
        return Path(self.kind, self.root, self.name, self.attrs[:-1])

    @property
    def base(self) -> Path:
        """The path to what the first attribute is read from."""
        return Path(self.kind, self.root, self.name)

    @property
    def prefixes(self) -> list[Path]:
        """The paths to all that attributes are read from on the way, the first one first."""
        parts = range(len(self.attrs))
        return [Path(self.kind, self.root, self.name, self.attrs[:n]) for n in parts]

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kind, id(self.root), self.name, self.attrs)

    def __str__(self) -> str:
        return ".".join((self.name, *self.attrs))

    def find(self) -> Any:
        """The current value, or ABSENT."""
        try:
            return self.read()
        except _MISSING:
            return ABSENT


def is_user_module(name: Any) -> bool:
    """Whether code of the module is the user's, or is like it: no stdlib, NumPy, jitney or installed
    package, but jitney's libraries on top, whose state is an object's as the user's is."""
    if not isinstance(name, str):
        return True
    top = name.partition(".")[0]
    if top == "__main__":
        return True
    if top == _OURS:
        return not _LIBRARIES.isdisjoint(name.split(".")[1:2])
    if top == "numpy" or is_pythons_module(name):
        return False
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    if "site-packages" in file or "dist-packages" in file:
        return False
    within = name.count(".") + os.path.basename(file).startswith("__init__.")
    folder = functools.reduce(lambda path, _: os.path.dirname(path), range(within + 1), file)
    return top not in _installed_in(folder)


@functools.cache
def _installed_in(folder: str) -> frozenset[str]:
    """The packages that `pip install --target` put into a folder: their lists of files say so."""
    found: set[str] = set()
    try:
        for name in os.listdir(folder or "."):
            record = os.path.join(folder, name, "RECORD")
            if name.endswith(".dist-info") and os.path.exists(record):
                with open(record, encoding="utf-8") as lines:
                    found.update(line.partition(",")[0].partition("/")[0] for line in lines)
    except OSError:
        return frozenset()
    return frozenset(name.removesuffix(".py") for name in found)


def is_ours(module: Any) -> bool:
    """Whether a module is a part of jitney, but of its libraries, which are written as users write."""
    return str(module).partition(".")[0] == _OURS and not is_user_module(module)


def state_of(value: Any) -> str | None:
    """The attribute with the array that is all that matters of an object of ours, if it has one."""
    name: str | None = vars(type(value)).get("_jitney_state")
    return name
