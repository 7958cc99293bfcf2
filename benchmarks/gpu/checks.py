"""The tests of kernels and device arrays, on the real device: one process for each file.

Memory is poison when it is allocated (`tests/helpers/gpu.py`), results are compared with the
interpreter. What fails is recorded and stops nothing; a test that loses the context, too.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .process import LOST, ROOT, TEXT, Options, Writer, context_is_lost

SANITIZED = "test_rows_of_any_length or test_products or test_batches or test_indices or test_loops"


def files(quick: bool) -> list[str]:
    """Paths from the folder of the tests for GPUs."""
    names = ["kernels/test_cuda_kernels.py", "test_device_arrays.py", "test_cuda_emulator.py"]
    if not quick:
        folder = ROOT / "tests" / "gpu"
        found = [str(path.relative_to(folder)) for path in sorted(folder.rglob("test_cuda_*.py"))]
        without = {"test_cuda_assemble.py", *names}  # LLVM and ptxas, no device
        names += [name for name in found if name not in without]
    return names


def sanitizer() -> str | None:
    known = "/usr/local/cuda/bin/compute-sanitizer"
    return shutil.which("compute-sanitizer") or (known if os.path.exists(known) else None)


def stage(options: Options, writer: Writer) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Items are tests, reported by the plugin; so this yields none."""
    import pytest

    os.environ["JITNEY_TEST_CUDA"] = "on"
    arguments = ["-q", "-o", "addopts=", "--confcutdir=tests", "-p", "no:cacheprovider"]
    arguments.append(f"tests/gpu/{options['file']}")
    if options.get("only"):
        arguments += ["-k", options["only"]]
    status = pytest.main(arguments, plugins=[Recorder(writer, set(options["done"]))])
    if status not in (0, 1, 5):
        sys.exit(int(status))
    yield from ()


class Recorder:
    """A plugin of pytest: each test is an item; those that are done are left out."""

    def __init__(self, writer: Writer, done: set[str]) -> None:
        self._writer, self._done = writer, done
        self._failed = self._skipped = ""
        self._start = 0.0

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid in self._done])
        items[:] = [i for i in items if i.nodeid not in self._done]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            item = f"collecting {report.nodeid}"
            self._writer.begin(item)
            self._writer.end(item, {"error": "not collected", "traceback": _text(report)})

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._failed = self._skipped = ""
        self._start = time.perf_counter()
        self._writer.begin(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self._failed:
            self._failed = _text(report)
        if report.skipped:
            self._skipped = str(report.longrepr[-1] if report.longrepr else "skipped")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        record: dict[str, Any] = {"seconds": round(time.perf_counter() - self._start, 3)}
        if self._failed:
            last = [line for line in self._failed.splitlines() if line.startswith("E ")]
            record |= {"error": (last or [""])[-1][1:].strip(), "traceback": self._failed}
        elif self._skipped:
            record["skipped"] = self._skipped
        lost = bool(self._failed) and context_is_lost()
        if lost:
            record["lost"] = True
        self._writer.end(nodeid, record)
        if lost:
            os._exit(LOST)


def _text(report: Any) -> str:
    return str(report.longreprtext)[-TEXT:]


def sanitized(tool: str, options: Options) -> Options:
    """Options that run a part of the kernels' tests under a tool of compute-sanitizer."""
    program = sanitizer()
    assert program is not None
    before = [program, "--tool", tool, "--target-processes", "all", "--print-limit", "20"]
    return {**options, "file": "test_cuda_kernels.py", "only": SANITIZED, "before": before}
