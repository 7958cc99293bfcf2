"""The memory of a call: what lives at the fullest moment, what fusion spared, all of it over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ...ir.record import fields, record
from .steps import place
from .units import size_text

if TYPE_CHECKING:
    from ...codegen.module import BufferReport

_NAMED = 4  # temporaries that the text names
_DRAWN = 400  # that the chart draws, the largest first
_WIDTH, _HEIGHT = 640, 200
_CHARACTER, _WRITTEN, _SHORTEST = 6.5, 14, 6  # pixels of a letter and of a line; letters


@record
class Buffer:
    """A temporary: what is in it, the line that computes it, and its bytes at `offset` of the arena from
    step `first` to step `last`."""

    name: str
    line: str
    nbytes: int
    offset: int
    first: int
    last: int

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in fields(self)}


@record
class MemoryCost:
    """What a call allocates: the arena, which all temporaries share by lifetime, and the results.

    spared, spared_bytes    values that fusion keeps in registers or in a row, which have no place
    """

    arena: int
    results: int
    buffers: tuple[Buffer, ...] = ()
    spared: int = 0
    spared_bytes: int = 0

    @property
    def peak(self) -> int:
        """The most that a call allocates."""
        return self.arena + self.results

    @property
    def at_peak(self) -> tuple[Buffer, ...]:
        """The temporaries that live at the moment that the arena is as large for, the largest first."""
        top = [b.first for b in self.buffers if b.offset + b.nbytes > self.arena - 64]
        if not top:
            return ()
        alive = [b for b in self.buffers if b.first <= top[0] <= b.last]
        return tuple(sorted(alive, key=lambda b: -b.nbytes))

    def to_dict(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in fields(self)}
        buffers = [buffer.to_dict() for buffer in self.buffers]
        return {**kept, "peak": self.peak, "buffers": buffers}

    def lines(self) -> Iterator[str]:
        sizes = map(size_text, (self.arena, self.results, self.peak))
        yield "memory: arena {}, results {}, peak {}".format(*sizes)
        alive = self.at_peak
        if alive:
            named = [f"{size_text(b.nbytes)} of {_named(b)}" for b in alive[:_NAMED]]
            more = f" and {len(alive) - _NAMED} more" if len(alive) > _NAMED else ""
            yield f"alive at the peak: {', '.join(named)}{more}"
        if self.spared:
            count = f"{self.spared} temporar{'y' if self.spared == 1 else 'ies'}"
            yield f"fusion spares {count}, {size_text(self.spared_bytes)}"

    def chart(self) -> str:
        """Temporaries over the steps of the program, at their places in the arena, as SVG."""
        if not self.buffers or not self.arena:
            return ""
        drawn = sorted(self.buffers, key=lambda b: -b.nbytes)[:_DRAWN]
        end = max(b.last for b in self.buffers) + 1
        alive = set(map(id, self.at_peak))
        parts = []
        for b in drawn:
            x, width = b.first * _WIDTH / end, max((b.last + 1 - b.first) * _WIDTH / end, 1)
            height = max(b.nbytes * _HEIGHT / self.arena, 0.5)
            y = _HEIGHT - b.offset * _HEIGHT / self.arena - height
            opacity = 0.7 if id(b) in alive else 0.3
            title = escape(f"{_named(b)}: {size_text(b.nbytes)}, steps {b.first} to {b.last}")
            parts.append(
                f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' "
                f"fill='#3b7dd8' opacity='{opacity}' stroke='currentColor' stroke-width='.3'>"
                f"<title>{title}</title></rect>"
            )
            room = int(width / _CHARACTER)
            if height >= _WRITTEN and room >= _SHORTEST:
                label = f"{size_text(b.nbytes)} of {_named(b)}"
                label = label if len(label) <= room else label[: room - 3] + "..."
                parts.append(
                    f"<text x='{x + 6:.1f}' y='{y + height / 2 + 4:.1f}' fill='currentColor'>"
                    f"{escape(label)}</text>"
                )
        return (
            f"<div>Memory of temporaries, {size_text(self.arena)} from bottom to top, over the steps of "
            "the program from left to right; stronger: alive at the peak</div>"
            f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' font-family='sans-serif' font-size='11' role='img' "
            f"style='max-width:{_WIDTH}px;width:100%'>{''.join(parts)}</svg>"
        )


def memory_of(
    arena: int, results: int, found: Sequence[BufferReport], spared: tuple[int, int]
) -> MemoryCost:
    """The memory of a program with these temporaries."""
    buffers = [
        Buffer(b.name, place(b.loc), b.nbytes, b.offset, b.first, b.last)
        for b in sorted(found, key=lambda b: (b.first, b.offset))
    ]
    return MemoryCost(arena, results, tuple(buffers), *spared)


def _named(buffer: Buffer) -> str:
    return f"{buffer.name} at {buffer.line}" if buffer.line else buffer.name
