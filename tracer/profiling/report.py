"""A profile as a table, and as the file that Perfetto and chrome://tracing open."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from typing import Any

from ..explain.units import CELL, time_text
from .events import Event

_MOST_ROWS = 40
_NAME = 48  # characters of a kernel's name in the table


class Row:
    """What the table says of one step: how often it ran, and for how long in all."""

    def __init__(self, event: Event) -> None:
        self.category, self.function = event.category, event.function
        self.scope, self.name, self.line = event.scope, event.name, event.line
        self.count, self.seconds = 0, 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds


def rows_of(events: Sequence[Event]) -> list[Row]:
    """What took time by itself, the longest first. Steps inside of others count there; what is left of
    a call (guards, control) is in none."""
    rows: dict[tuple[str, ...], Row] = {}
    for event in events:
        if event.category == "worker" or not event.leaf:
            continue
        key = (event.category, event.function, event.scope, event.name, event.line)
        rows.setdefault(key, Row(event)).add(event.seconds)
    return sorted(rows.values(), key=lambda row: -row.seconds)


def scopes_of(rows: Sequence[Row]) -> dict[str, float]:
    """Seconds by function and name scope, those of a scope's own scopes included."""
    totals: dict[str, float] = {}
    for row in rows:
        if row.category in _ONCE:
            continue
        parts = list(filter(None, [row.function, *row.scope.split("/")]))
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            totals[path] = totals.get(path, 0.0) + row.seconds
    return dict(sorted(totals.items(), key=lambda item: item[0]))


_HEAD = ("what", "where", "runs", "total", "each", "share")


_ONCE = ("trace", "compile")  # not of calls: they have no share


def _cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    total = sum(row.seconds for row in rows if row.category not in _ONCE) or 1.0
    return [
        (
            _short(f"{row.category} {row.name}"),
            " ".join(filter(None, ["/".join(filter(None, [row.function, row.scope])), row.line])),
            f"{row.count:,}",
            time_text(row.seconds),
            time_text(row.seconds / row.count),
            "" if row.category in _ONCE else f"{row.seconds / total:.1%}",
        )
        for row in rows[:_MOST_ROWS]
    ]


def _short(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 3].rstrip(", ") + "..."


def text_table(rows: Sequence[Row], note: str) -> str:
    """The rows under each other, names to the left and numbers to the right."""
    cells = [_HEAD, *_cells(rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(_HEAD))]
    lines = [
        "  ".join(
            cell.ljust(width) if k < 2 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    scopes = scopes_of(rows)
    if any("/" in scope for scope in scopes):
        lines += ["", "by scope:"]
        lines += [f"  {time_text(seconds):>9}  {scope}" for scope, seconds in scopes.items()]
    return "\n".join([*lines, *([note] if note else [])])


def html_table(rows: Sequence[Row], note: str) -> str:
    """The same for a notebook."""

    def line(tag: str, cells: Sequence[str]) -> str:
        inside = "".join(f"<{tag} style='{CELL}'>{html.escape(c)}</{tag}>" for c in cells)
        return f"<tr>{inside}</tr>"

    body = [line("th", _HEAD), *[line("td", cells) for cells in _cells(rows)]]
    table = f"<div style='overflow-x:auto'><table>{''.join(body)}</table></div>"
    scopes = scopes_of(rows)
    if any("/" in scope for scope in scopes):
        body = [line("td", (scope, time_text(seconds))) for scope, seconds in scopes.items()]
        table += f"<p>by scope:</p><table>{''.join(body)}</table>"
    return f"{table}<p>{html.escape(note)}</p>" if note else table


def chrome_trace(events: Sequence[Event]) -> str:
    """The trace event format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU

    Complete events ("X") in microseconds, a track for each thread."""
    process = os.getpid()
    threads = {name: k for k, name in enumerate(dict.fromkeys(e.thread for e in events), 1)}
    listed: list[dict[str, Any]] = [_named("process_name", process, 0, "jitney")]
    listed += [_named("thread_name", process, k, name) for name, k in threads.items()]
    for event in events:
        arguments = {"function": event.function, "scope": event.scope, "line": event.line}
        listed.append(
            {
                "name": event.name,
                "cat": event.category,
                "ph": "X",
                "ts": event.begin * 1e6,
                "dur": event.seconds * 1e6,
                "pid": process,
                "tid": threads[event.thread],
                "args": {key: value for key, value in arguments.items() if value},
            }
        )
    return json.dumps({"traceEvents": listed, "displayTimeUnit": "ns"})


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
