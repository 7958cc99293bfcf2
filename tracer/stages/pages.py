"""HTML that stands alone: inline style, light and dark, narrow screens, text that is not endless."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape

MOST_LINES = 4000  # of a text that is shown; the text itself has all
MOST_CHARACTERS = 400  # of a line

_STYLE = """
.jitney { color-scheme: light dark; --fg: #1f2328; --bg: #fff; --dim: #656d76; --line: #d0d7de;
  --hit: #fff3b8; --box: #f6f8fa; color: var(--fg); background: var(--bg);
  font: 13px/1.45 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { .jitney { --fg: #e6edf3; --bg: #0d1117; --dim: #9198a1;
  --line: #3d444d; --hit: #5a4a00; --box: #161b22; } }
.jitney pre { margin: 0; font: 12px/1.45 ui-monospace, monospace; overflow: auto;
  background: var(--box); border: 1px solid var(--line); padding: .5em; white-space: pre;
  color: var(--fg); text-align: left; }
.jitney details { margin: .25em 0; } .jitney summary { cursor: pointer; }
.jitney .dim { color: var(--dim); }
"""


def shown_text(text: str) -> str:
    """Text as HTML: very long lines, and what follows after very many, are cut, which is said."""
    lines = text.splitlines()
    shown = [escape(cut(line)) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        left = len(lines) - MOST_LINES
        shown.append(f"<span class='dim'>... and {left:,} more lines, which the text has</span>")
    return "<pre>" + "\n".join(shown) + "</pre>"


def cut(line: str) -> str:
    """A line that fits: numbers of a large array do not."""
    if len(line) <= MOST_CHARACTERS:
        return line
    half = MOST_CHARACTERS // 2
    return f"{line[:half]} ...{len(line) - 2 * half:,} characters... {line[-half:]}"


def fragment(parts: Sequence[str], style: str = "") -> str:
    """Parts of a page with their style, as a notebook's cell shows them."""
    return f"<div class='jitney'><style>{_STYLE}{style}</style>{''.join(parts)}</div>"


def page(title: str, body: str) -> str:
    """A whole page around a fragment."""
    head = "<meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
    outer = "<style>:root{color-scheme:light dark} body{margin:1em}</style>"
    return (
        f"<!doctype html><html lang='en'><head>{head}<title>{escape(title)}</title>{outer}</head>"
        f"<body>{body}</body></html>\n"
    )


def save(path: str | os.PathLike[str], title: str, text: str, html: str) -> None:
    """Write a page if the name ends in .html, else the text. Raises OSError where that cannot be."""
    whole = page(title, html) if os.fspath(path).lower().endswith((".html", ".htm")) else text
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        file.write(whole)
