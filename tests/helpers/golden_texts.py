"""Texts that are kept: what is said today is what was said when somebody last read it.

A file has `=== name` lines, and under each a text. `JITNEY_UPDATE_GOLDEN=1 python -m pytest -n 0 FILE`
writes the texts of these tests anew, to be read in the difference before they are committed.
"""

from __future__ import annotations

import os
from pathlib import Path


class Golden:
    """The texts of one file, by name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self, name: str, text: str) -> None:
        """AssertionError, with both, if `text` is another than the one that is kept."""
        kept = self._read()
        if os.environ.get("JITNEY_UPDATE_GOLDEN"):
            kept[name] = text
            parts = [f"=== {key}\n{kept[key]}\n" for key in sorted(kept)]
            self.path.write_text("".join(parts), encoding="utf-8")
            return
        assert name in kept, f"{self.path.name} has nothing under {name!r}; now it is:\n{text}"
        assert text == kept[name]

    def _read(self) -> dict[str, str]:
        if not self.path.exists():
            return {}
        found = {}
        for part in self.path.read_text(encoding="utf-8").split("=== ")[1:]:
            name, _, text = part.partition("\n")
            found[name] = text.rstrip("\n")
        return found
