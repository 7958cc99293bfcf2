"""Stages in processes of their own: an item that kills its process or hangs costs that item only.

    python -m benchmarks.gpu.process STAGE OPTIONS RECORDS

A stage is a module with `stage(options)`, which yields (item, function): the function's dict is what the
item found. The process writes a line of JSON when an item begins and when it ends; the parent reads
them, kills what takes too long, and starts again behind the last item.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
LOST = 75  # exit status of a process whose context is of no use any more
POLL_SECONDS = 0.1
REST = "the rest"
STARTING = 2  # times an item's time until the first begins: frameworks are imported
TEXT = 3000  # of an error or a log that is kept

Options = dict[str, Any]
Records = dict[str, dict[str, Any]]  # by item, in their order


def run(
    name: str,
    options: Options,
    seconds: float,
    item_seconds: float = 60.0,
    save: Callable[[Records], None] = lambda records: None,
) -> Records:
    """What the items of a stage found, within `seconds`. `save` is called whenever one has ended.

    A record has `seconds`, and `error` if the item failed, also if it took longer than an item may. When
    the stage's own time is over, that is no failure of the item that it meets: its record, or that of
    `REST` if none was under way, has `timeout`. What never began is missing. Items in `options["done"]`
    are left out.
    """
    deadline = time.monotonic() + seconds
    records: Records = {}
    with tempfile.TemporaryDirectory(prefix="jitney-gpu-") as folder:
        if ROOT.name != "jitney":
            (Path(folder) / "jitney").symlink_to(ROOT)
        for attempt in range(50):
            done = [*options.get("done", ()), *records]
            child = _Child(name, {**options, "done": done}, Path(folder), attempt)
            finished = child.watch(records, deadline, item_seconds, save)
            if finished or time.monotonic() >= deadline:
                break
    return records


class _Child:
    def __init__(self, name: str, options: Options, folder: Path, attempt: int) -> None:
        self.lines = folder / f"{attempt}.jsonl"
        self.log = folder / f"{attempt}.log"
        self.lines.touch()
        self.keep_log = bool(options.get("before"))
        # Under its own name bytecode that is kept by path is found again.
        package = ROOT.parent if ROOT.name == "jitney" else folder
        paths = [str(package), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "PYTHONUNBUFFERED": "1",
            "JITNEY_CACHE_DIR": str(folder / "cache"),
            "CUDA_CACHE_DISABLE": "1",  # the driver compiles, each time
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            **options.get("environment", {}),
        }
        command = [sys.executable, "-m", "benchmarks.gpu.process", name, json.dumps(options)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*options.get("before", []), *command, str(self.lines)],
                cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._read = 0
        self._at: str | None = None  # the item that has begun
        self._since = time.monotonic()

    def watch(
        self,
        records: Records,
        deadline: float,
        item_seconds: float,
        save: Callable[[Records], None],
    ) -> bool:
        """Whether the stage is over; else an item was lost, and the next process goes on."""
        while True:
            ended = self.process.poll()
            if self._take(records):
                save(records)
            if ended is not None:
                break
            now = time.monotonic()
            allowed = item_seconds if self._read else STARTING * item_seconds
            if now > deadline or now - self._since > allowed:
                self._kill()
                self._take(records)
                over = self._overdue(records, now > deadline, now - self._since)
                save(records)
                return over
            time.sleep(POLL_SECONDS)
        if ended == 0:
            if self.keep_log:
                records["the log"] = {"log": self._tail()}
                save(records)
            return True
        if self._at is None and ended != LOST:  # it died between items: it would do so again
            records["the process"] = {"error": f"exit status {ended}\n{self._tail()}"}
            return True
        if self._at is not None:
            self._lose(records, f"the process died of it (status {ended})")
        save(records)
        return False

    def _overdue(self, records: Records, all_is_over: bool, seconds: float) -> bool:
        """Record that time is over, of the stage or of what it does now; whether the stage is done."""
        if all_is_over:
            since = f"; it had begun {seconds:.0f} s before" if self._at else ""
            why = f"the stage's time was over{since}"
            records[self._at or REST] = {"timeout": why, "log": self._tail()}
        elif self._at is None:
            why = f"it took too long to begin an item ({seconds:.0f} s)"
            records["the process"] = {"error": why, "log": self._tail()}
        else:
            self._lose(records, f"it took too long ({seconds:.0f} s)")
            return False
        return True

    def _take(self, records: Records) -> bool:
        """Read what was written since."""
        with self.lines.open() as lines:
            lines.seek(self._read)
            text = lines.read()
        text = text[: text.rfind("\n") + 1]
        self._read += len(text.encode())
        for line in text.splitlines():
            record = json.loads(line)
            self._since = time.monotonic()
            if record.pop("event") == "begin":
                self._at = record["item"]
            else:
                self._at = None
                records[record.pop("item")] = record
        return bool(text)

    def _lose(self, records: Records, why: str) -> None:
        if self._at is not None:
            records[self._at] = {"error": why, "lost": True, "log": self._tail()}

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-TEXT:]

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Writer:
    """The child's side."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "a")  # noqa: SIM115  (closed when the process ends)

    def begin(self, item: str) -> None:
        self._write({"event": "begin", "item": item})

    def end(self, item: str, record: dict[str, Any]) -> None:
        self._write({"event": "end", "item": item, **record})

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record, default=str) + "\n")
        self._file.flush()


def serve(items: Iterable[tuple[str, Callable[[], Any]]], writer: Writer, done: set[str]) -> None:
    for item, function in items:
        if item in done:
            continue
        writer.begin(item)
        start = time.perf_counter()
        try:
            record = function() or {}
        except Exception as error:
            record = failure(error)
        record["seconds"] = round(time.perf_counter() - start, 3)
        writer.end(item, record)
        if context_is_lost():
            sys.exit(LOST)


def failure(error: BaseException) -> dict[str, Any]:
    lines = str(error).strip().splitlines() or [""]
    text = "".join(traceback.format_exception(error))
    return {"error": f"{type(error).__name__}: {lines[0]}", "traceback": text[-TEXT:]}


def context_is_lost() -> bool:
    """Whether a kernel did what ends its context: everything after it would fail too."""
    driver = sys.modules.get("jitney.runtime.cuda.driver")
    for context in list(driver._contexts.values()) if driver else ():
        try:
            with context:
                context.cuda.cuCtxSynchronize()
        except RuntimeError:
            return True
    return False


def main() -> int:
    name, options, path = sys.argv[1:]
    given = json.loads(options)
    stage = importlib.import_module(f"benchmarks.gpu.{name}")
    writer = Writer(path)
    serve(stage.stage(given, writer), writer, set(given["done"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
