"""What `f.cache_info()` tells: each specialisation of a function, and why it was made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.specs import Same, Spec, Static
from .dispatch import show_spec

if TYPE_CHECKING:
    from .buckets import Bucket
    from .entry import Entry


class EntryInfo(NamedTuple):
    """One specialisation: its signature, why it was made, how long that took, how often it ran."""

    signature: str
    reason: str
    seconds: dict[str, float]
    calls: int


class CacheInfo(NamedTuple):
    """What `f.cache_info()` gives. Misses count what was compiled ahead of calls, too."""

    hits: int
    misses: int
    entries: list[EntryInfo]

    def __str__(self) -> str:
        lines = [f"{self.hits} hits, {self.misses} misses"]
        for entry in self.entries:
            total = sum(entry.seconds.values()) * 1e3
            lines.append(
                f"  ({entry.signature}): {entry.reason}; {total:.1f} ms, {entry.calls} calls"
            )
        return "\n".join(lines)


def cache_info(buckets: Iterable[Bucket], misses: int, ahead: int) -> CacheInfo:
    """What a function with these specialisations, `ahead` of which no call has made, tells of them."""
    entries = [
        EntryInfo(e.signature, e.reason, e.seconds, e.hits)
        for bucket in buckets
        for e in reversed(bucket.entries)
    ]
    calls = sum(entry.calls for entry in entries)
    return CacheInfo(max(calls - (misses - ahead), 0), misses, entries)


def log_compile(name: str, entry: Entry) -> None:
    """Tell of a specialisation that has been made, for `config.log_compiles`."""
    import logging  # five milliseconds, for those who ask

    seconds = sum(entry.seconds.values())
    logging.getLogger("jitney").warning(
        "%s(%s): %s; %.1f ms", name, entry.signature, entry.reason, seconds * 1e3
    )


def difference(name: str, old: Any, new: Any) -> str:
    """How an argument's spec differs from one that is compiled, as text."""
    if isinstance(old, Spec) and isinstance(new, Spec):
        what = "dtype"
        if old.weak != new.weak or old.scalar != new.scalar:
            what = "kind"
        elif old.type.shape != new.type.shape:
            what = "shape"
        elif old.type.dtype == new.type.dtype:
            what = "layout"
        return f"{what} of `{name}` changed from {show_spec(old)} to {show_spec(new)}"
    if isinstance(old, Static) and isinstance(new, Static):
        return f"static `{name}` changed from {old.value!r} to {new.value!r}"
    if isinstance(new, Same):
        return f"`{name}` is the same array as another argument"
    return f"kind of `{name}` changed"
