"""The specialisations of one signature; they differ in what the function read from outside. And a key
for calls of ordinary leaves, by which their specialisations are found without the signature."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from ...runtime.cuda.array import DeviceArray
from ..captures.captured_variables import CapturedVariables
from ..messages import errors
from ..messages.source import user_level
from .dispatch import Call
from .entry import Entry

_ENTRIES = 16  # kept per signature
_LISTED = 4  # differences that a reason tells
_SCALARS = frozenset({bool, int, float, complex})
_WARN_AFTER = 8  # tracings of one signature for changed outside values


class Bucket:
    """The entries of one signature, the latest first."""

    __slots__ = ("entries", "retraced")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.retraced = 0

    def add(self, entry: Entry) -> None:
        self.entries = [entry, *self.entries][:_ENTRIES]

    def holding(self, leaves: Sequence[Any]) -> tuple[Entry, tuple[Any, ...]] | None:
        """The first entry whose guards hold for a call's leaves, and its hidden arrays."""
        for entry in tuple(self.entries):
            hidden = entry.check()
            if hidden is not None and entry.admits(leaves, hidden):
                return entry, hidden
        return None

    def warn(self, name: str, captured: CapturedVariables) -> None:
        """A trace whose guards do not hold right after it: the function changes what it reads."""
        self.retraced += 1
        if self.retraced == _WARN_AFTER:
            changes = " and ".join(captured.changes())
            warnings.warn(
                f"{name} was traced {_WARN_AFTER} times because it changes what it reads: "
                f"guard {changes}. Pass the value as an argument and return the new one.",
                errors.RecompileWarning,
                stacklevel=user_level(),
            )


def fast_key(first: Sequence[Hashable], leaves: Sequence[Any]) -> Hashable | None:
    """`first` and the exact types of leaves; None if one is of a class that wants a longer look."""
    key: list[Any] = [*first]
    for leaf in leaves:
        kind = type(leaf)
        if kind is np.ndarray:
            dtype = leaf.dtype
            if dtype.names is not None:
                return None  # no leaf, but a container of its fields
            key += (dtype, leaf.shape, leaf.strides)
        elif kind in _SCALARS:
            key.append(kind)
        elif kind is DeviceArray:
            key += (leaf.client, leaf.dtype, leaf.shape)
        elif kind is np.memmap:
            key += (kind, leaf.dtype, leaf.shape, leaf.strides)
        else:
            return None
    return tuple(key)


# What would end it, by how reasons begin.
_REMEDIES = {
    "shape of": "Pad arrays to a few sizes, or pass pieces of one size: each is compiled for itself.",
    "dtype of": "Convert arguments to one dtype before the call (x.astype(np.float64)).",
    "layout of": "Pass arrays of one layout (np.ascontiguousarray(x)).",
    "kind of": "Pass the same kind each time, always an array or always a number.",
    "static": "Pass it as an array or a number, and leave it out of static_argnames.",
    "guard": "Pass what changes as an argument.",
    "another number": "Give a length that is always enough, and leave out what is too much.",
    "another": "Pass containers with the same keys and lengths each time, or stack what they hold.",
}


def warn_of_many(name: str, count: int, reason: str) -> None:
    """A function that is compiled again and again costs more than it gains."""
    remedy = next((text for start, text in _REMEDIES.items() if reason.startswith(start)), "")
    warnings.warn(
        f"{name} has been compiled {count} times, most recently because of this: {reason}. "
        f"{remedy}{' ' * bool(remedy)}{name}.cache_info() lists all.",
        errors.RecompileWarning,
        stacklevel=user_level(),
    )


def reason(call: Call, bucket: Bucket, others: Iterable[Bucket]) -> str:
    """Why `call` finds no entry in its bucket. `others` are all buckets of the function."""
    if bucket.entries:
        latest = bucket.entries[0]
        if latest.guard is not None:
            lines = dict.fromkeys(str(number.line) for number, _ in latest.guard.numbers)
            return f"another number decides a shape at {' or '.join(lines)}"
        changes = latest.captured.changes()
        return "guard " + " and ".join(changes) if changes else "a guard did not hold"
    entries = [e for b in others for e in b.entries]
    if not entries:
        return "first call"
    names = tuple(call.leaf_names())
    alike = [e for e in entries if e.names == names]
    if not alike:
        nearest = min(reversed(entries), key=lambda e: len(set(names) ^ set(e.names)))
        return _other_names(nearest.names, names)
    alike = [e for e in alike if e.structure == call.structure]
    if not alike:
        return "another order of keywords or of the keys of a dict"
    # Of those that differ in the same number of arguments the latest.
    differences = [_differences(e, call) for e in reversed(alike)]
    return listed(min(differences, key=len)) or "recompiled"


def _differences(entry: Entry, call: Call) -> list[str]:
    """In which arguments a call differs from one that is compiled, and how."""
    from .cache_info import difference  # no first call needs it

    pairs = zip(entry.names, entry.specs, call.specs, strict=True)
    return [difference(n, a, b) for n, a, b in pairs if a != b]


def _other_names(old: Sequence[str], new: Sequence[str]) -> str:
    """How the paths of a call's arguments differ from those of one that is compiled."""
    parts = []
    for these, others, what in ((new, old, "new"), (old, new, "gone")):
        paths = [f"`{name}`" for name in these if name not in set(others)]
        if paths:
            parts.append(f"{listed(paths)} {'is' if len(paths) == 1 else 'are'} {what}")
    return "another structure of the arguments" + (f": {'; '.join(parts)}" if parts else "")


def listed(texts: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(texts) - _LISTED
    return ", ".join(texts[:_LISTED]) + (f", and {more} more" if more > 0 else "")
