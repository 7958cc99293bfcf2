"""`with jt.profile("trace.json"):`"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from ...runtime import recording
from ...runtime.cache.in_memory import budget
from ..jit.function import NOTHING_COMPILED, JitFunction
from .events import Event, events_of
from .report import chrome_trace, html_table, rows_of, text_table


class profile:
    """Record what runs in a block, kernel by kernel, on all threads.

        with jt.profile("trace.json") as profile:
            for _ in range(10):
                step(x)
        print(profile)

    The file opens in Perfetto (ui.perfetto.dev) and chrome://tracing; without a path there is none. The
    result has `.events` (see `Event`), prints as a table of what took the longest, by function, name
    scope and line, and can be saved later with `.save(path)`.

    Functions are compiled once more for it, as code that tells of its steps, so call a function once
    before what you want to see, or look away from its "compile" events. A step costs about 20 ns more,
    on the CPU; on a GPU each kernel is waited for, and its event is what the host saw. Results are what
    they always are. At most `most_events` events are kept, 40 bytes each; the others are counted.

    Raises OSError, before anything runs, if the file can't be written, RuntimeError within another
    profile.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, most_events: int = 1 << 20):
        if most_events < 1:
            raise ValueError(f"a profile has room for at least one event, not {most_events}")
        self.path = path
        self.events: list[Event] = []
        self.dropped = 0
        self._most_events = most_events

    def __enter__(self) -> profile:
        if self.path is not None:
            with open(self.path, "a"):
                pass  # it can be written
        self._recording = recording.start(self._most_events)
        self._before = _set_aside()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        recorded = self._recording
        recording.stop()
        for function in {*self._before, *recorded.functions}:
            function._exchange_code(self._before.get(function, NOTHING_COMPILED))
        self._before.clear()
        self.events = events_of(recorded)
        self.dropped = recorded.events.dropped
        if self.path is not None:
            self.save(self.path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the events for Perfetto or chrome://tracing."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(chrome_trace(self.events))

    @property
    def _note(self) -> str:
        if not self.dropped:
            return ""
        return (
            f"{self.dropped:,} more events found no room: profile fewer calls, or set most_events"
        )

    def __str__(self) -> str:
        return text_table(rows_of(self.events), self._note)

    def __repr__(self) -> str:
        return f"<jt.profile: {len(self.events):,} events>"

    def _repr_html_(self) -> str:
        return html_table(rows_of(self.events), self._note)


def _set_aside() -> dict[JitFunction[..., Any], Any]:
    """The code of all functions, which have none now: they are compiled anew when they are called."""
    owners: list[Any] = [getattr(entry, "owner", None) for entry in budget.entries()]
    functions = {function for owner in owners if owner and (function := owner()) is not None}
    return {function: function._exchange_code() for function in functions}
