"""`f.stages(x)`: what a call is at each stage of its way from Python to machine code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from html import escape
from typing import Any

from ...ir.graph import Graph
from .pages import fragment, save, shown_text


class Stage:
    """One stage: `str` is its text, a notebook shows it, `save(path)` writes it.

    name      what `f.stages(x, after=name)` calls it
    what      the same in words
    graph     of a graph's stage: the graph; else None
    changed   False of a pass that left the graph as it was
    """

    def __init__(
        self, name: str, what: str, text: Any, graph: Graph | None = None, changed: bool = True
    ) -> None:
        self.name = name
        self.what = what
        self.graph = graph
        self.changed = changed
        self._make = text

    @cached_property
    def _text(self) -> str:
        text = self._make() if callable(self._make) else self._make
        return str(text).rstrip("\n") + "\n"

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Stage {self.name}: {self.what}>"

    def _repr_html_(self) -> str:
        title = f"<b>{escape(self.name)}</b> <span class='dim'>{escape(self.what)}</span>"
        return fragment([title, shown_text(self._text)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file: a page if its name ends in .html, else text. Raises OSError."""
        save(path, self.name, self._text, self._repr_html_())


class Stages(Mapping[str, Stage]):
    """The stages of one call, by name and in order; each is an attribute, too: `stages.trace`.

    `source`, `trace`, the passes by their names, `names` (what became of those that `jt.name` gave),
    `fuse` (the loops), `llvm`, `asm` or `ptx`, `memory`.
    """

    def __init__(self, title: str, stages: list[Stage]) -> None:
        self.title = title
        self._stages = {stage.name: stage for stage in stages}

    def __getitem__(self, name: str) -> Stage:
        stage = self._stages.get(name)
        if stage is None:
            near = get_close_matches(name, self._stages, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"they are {', '.join(self._stages)}"
            raise KeyError(f"there is no stage {name!r}; {hint}")
        return stage

    def __getattr__(self, name: str) -> Stage:
        if name.startswith("_") or name not in self._stages:
            raise AttributeError(f"there is no stage {name!r}; they are {', '.join(self._stages)}")
        return self._stages[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._stages]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    def __len__(self) -> int:
        return len(self._stages)

    def __str__(self) -> str:
        return "\n".join(f"== {s.name}: {s.what}\n{s}" for s in self.values())

    def __repr__(self) -> str:
        width = max(map(len, self._stages))
        lines = [f"  {s.name:<{width}}  {_said(s)}" for s in self.values()]
        return "\n".join([f"<Stages of {self.title}", *lines]) + ">"

    def _repr_html_(self) -> str:
        parts = [f"<b>{escape(self.title)}</b>"]
        for stage in self.values():
            words = f"{escape(stage.name)} <span class='dim'>{escape(_said(stage))}</span>"
            text = shown_text(str(stage)) if stage.changed else ""
            parts.append(f"<details><summary>{words}</summary>{text}</details>")
        return fragment(parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of them to a file: a page if its name ends in .html, else text. Raises OSError."""
        save(path, self.title, str(self), self._repr_html_())


def _said(stage: Stage) -> str:
    return stage.what if stage.changed else f"{stage.what} (changes nothing here)"
