"""`python -m benchmarks.gpu`: all pieces of work, results saved as they come. See README.md."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from . import checks, process, report, wheels

RESULTS = Path(__file__).resolve().parent / "results"
STAGES = ("first_light", "tests", "sweeps", "speed")
# At most; the rows of `speed` go in groups, each of which has that time.
SECONDS = {
    "warpgroups": 90.0, "first_light": 270.0, "sweeps": 120.0, "speed": 480.0, "tests": 480.0,
}  # fmt: skip
QUICK = {"warpgroups": 12.0, "first_light": 30.0, "tests": 40.0, "sweeps": 15.0, "speed": 60.0}
PIECE_SECONDS = 510.0  # machines are lent for ten minutes at a time
GROUP = 24  # rows
ITEM_SECONDS, QUICK_ITEM_SECONDS, TILE_SECONDS = 45.0, 20.0, 20.0
FILE_SECONDS = 150.0  # of a file of tests
QUICK_ROWS = (
    "negative axpb softmax sum_all matmul_4096 matmul_4096_bf16 call_1 transpose while_loop "
    "mlp_adam".split()
)
TINY_ROWS = ["negative", "call_1"]


# What stages import, besides what the others do. Packages have the names of their modules.
NEEDED = {
    "first_light": ("numpy", "llvmlite", "ml_dtypes", "optree", "networkx"),
    "tests": ("pytest", "hypothesis"),
    "sweeps": ("mpmath",),
    "speed": (),
}


def missing(stage: str) -> str:
    """What a stage lacks, as a sentence; "" if nothing."""
    lacking = [name for name in NEEDED[stage] if find_spec(name) is None]
    if not lacking:
        return ""
    names = " ".join(lacking)
    return f"{stage} needs {' and '.join(lacking)}: pip install {names}, or carry wheels there"


class Part(NamedTuple):
    """A stage, or one group of its rows."""

    stage: str
    rows: list[str] | None = None


def pieces(options: argparse.Namespace) -> list[list[Part]]:
    """What is done, in pieces that end in time one by one."""
    rows: list[str] = options.rows
    groups = [rows[k : k + GROUP] for k in range(0, len(rows), GROUP)]
    planned = [[Part("first_light", rows), Part("sweeps")]]
    planned += [[Part("speed", group)] for group in groups]
    planned += [[Part("tests")]]
    if options.quick:
        planned = [[part for piece in planned for part in piece]]
    kept = [[part for part in piece if part.stage in options.stages] for piece in planned]
    return [piece for piece in kept if piece]


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="jitney-wheels-") as folder:
        if any(map(missing, STAGES)):
            for name in wheels.unpack(Path(folder)):
                print(f"unpacked: {name}")
        return run(options)


def run(options: argparse.Namespace) -> int:
    if sentence := missing("first_light"):
        print(f"jitney does not start here: {sentence}")
        return 1
    if options.rows is None:
        from .rows import ROWS

        options.rows = list(ROWS)
    planned = pieces(options)
    if options.piece is not None:
        if not 1 <= options.piece <= len(planned):
            print(f"there is no piece {options.piece}: they are 1 to {len(planned)}")
            return 1
        planned = planned[options.piece - 1 : options.piece]
    run = Run(options)
    for number, piece in enumerate(planned, options.piece or 1):
        run.piece(number, piece)
        if run.no_device:
            break
    run.save()
    print(report.markdown(run.found))
    print(f"written: {run.path}.json, {run.path}.md")
    return 1 if run.no_device else 0


class Run:
    """One run of the kit: its results so far, on disk at any time."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        environment = {"JITNEY_CUDA": "emulate" if options.emulate else "on"}
        self.common: process.Options = {"small": options.emulate, "environment": environment}
        self.short = options.quick or options.emulate
        self.limits = QUICK if self.short else SECONDS
        self.deadline = math.inf  # of the piece
        self.found: dict[str, Any] = {
            "title": "unknown device",
            "date": time.strftime("%Y-%m-%d"),
            "commit": commit(),
            "arguments": sys.argv[1:],
            "stages": {},
            "seconds": {},
        }
        self._name: str | None = None
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        name = self._name or f"{self.found['date']}-unknown-device"
        return Path(self.options.output) / name

    @property
    def no_device(self) -> bool:
        """Whether it is known that there is no GPU to work with."""
        return "error" in self.found["stages"].get("first_light", {}).get("device", {})

    def piece(self, number: int, parts: list[Part]) -> None:
        self.deadline = time.monotonic() + PIECE_SECONDS
        print(f"piece {number}: {', '.join(part.stage for part in parts)}", flush=True)
        if self._name is None and parts[0].stage != "first_light":
            self._one("first_light", {**self.common, "rows": []})
            self._describe()
        for part in parts:
            if not self.no_device:
                self.stage(*part)

    def stage(self, name: str, rows: list[str] | None = None) -> None:
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
        if sentence := missing(name):
            print(f"  left out: {sentence}", flush=True)
            with self._lock:
                self.found["stages"][name] = {"packages": {"error": f"left out: {sentence}"}}
            self.save()
        elif name == "tests":
            self._tests()
        else:
            if name == "first_light":
                self._warpgroups()
            done = [item for item in self.found["stages"].get(name, ()) if item == "ceilings"]
            self._one(name, {**self.common, "rows": rows, "done": done})
        if name == "first_light":
            self._describe()

    def _warpgroups(self) -> None:
        """What hangs or gives wrong answers is not used by what follows."""
        self._one("warpgroups", self.common, item_seconds=TILE_SECONDS)
        records = self.found["stages"]["warpgroups"]
        if not records:  # another architecture, or no device
            del self.found["stages"]["warpgroups"]
        if any("error" in record for record in records.values()):
            print("  warning: what follows does without warpgroups", flush=True)
            self.common["environment"]["JITNEY_CUDA_WARPGROUPS"] = "0"

    def _one(
        self,
        name: str,
        options: process.Options,
        limit: float | None = None,
        title: str = "",
        item_seconds: float | None = None,
    ) -> None:
        """A stage, added to what is known under its title."""
        title = title or name
        with self._lock:
            before = dict(self.found["stages"].get(title, {}))

        def save(records: process.Records) -> None:
            with self._lock:
                self.found["stages"][title] = {**before, **records}
                self._write()

        start = time.monotonic()
        limit = min(self.limits[name] if limit is None else limit, self.deadline - start)
        own = QUICK_ITEM_SECONDS if self.short else ITEM_SECONDS
        records = process.run(name, options, limit, item_seconds or own, save)
        save(records)
        seconds = self.found["seconds"]
        seconds[title] = seconds.get(title, 0.0) + time.monotonic() - start
        said = [f"{len(records)} items"]
        for how, word in report.ENDS.items():
            ended = {item: r[how] for item, r in records.items() if how in r}
            said.append(f"{len(ended)} {word}")
            shown = [f"\n    {item}: {why[:150]}" for item, why in list(ended.items())[:5]]
            said[-1] += "".join(shown)
        print(f"  {title}: {', '.join(said)}", flush=True)

    def _tests(self) -> None:
        """Files side by side: they are bound by compiling, not by the device."""
        if self.options.emulate:
            files, only = ["kernels/test_cuda_kernels.py"], "test_indices_are_checked"
        else:
            files, only = checks.files(self.options.quick), None
        tasks = []
        for file in files:
            tasks.append((f"tests: {file}", {**self.common, "file": file, "only": only}))
        if checks.sanitizer() and not self.options.emulate:
            tools = ("memcheck",) if self.options.quick else ("memcheck", "racecheck")
            tasks += [(f"tests: {t}", checks.sanitized(t, self.common)) for t in tools]
        end = min(self.deadline, time.monotonic() + self.limits["tests"])
        with ThreadPoolExecutor(max(1, min(8, (os.cpu_count() or 2) // 2))) as pool:
            list(pool.map(lambda task: self._file(*task, end), tasks))

    def _file(self, title: str, options: process.Options, end: float) -> None:
        """One file of tests, if the time of all of them is not over."""
        left = end - time.monotonic()
        if left > 0:
            self._one("checks", options, min(left, FILE_SECONDS), title)
            return
        with self._lock:
            why = "not begun: the time of all tests was over"
            self.found["stages"][title] = {process.REST: {"timeout": why}}

    def _describe(self) -> None:
        """Name the run after the device that it found."""
        records = self.found["stages"].get("first_light", {})
        device, machine = records.get("device", {}), records.get("machine", {})
        if "name" in device:
            self.found["title"] = f"{device['name']}, {device['arch']}"
            self.found["driver"] = device["driver"]
            words = re.findall(r"[a-z0-9]+", device["name"].lower())
            with self._lock:
                for suffix in ("json", "md"):
                    Path(f"{self.path}.{suffix}").unlink(missing_ok=True)
                self._name = f"{self.found['date']}-{'-'.join(words)}"
                if self.options.piece is not None:
                    self._go_on()
        self.found["versions"] = {k: v for k, v in machine.get("versions", {}).items() if v}

    def _go_on(self) -> None:
        """Add to what other pieces have found on this device, today and of the same commit."""
        path = Path(f"{self.path}.json")
        known = json.loads(path.read_text()) if path.exists() else {}
        if known.get("commit") != self.found["commit"]:
            return
        for title, records in known["stages"].items():
            own = self.found["stages"].get(title, {})
            self.found["stages"][title] = {**records, **own}
        self.found["seconds"] = {**known["seconds"], **self.found["seconds"]}
        if any("error" in r for r in self.found["stages"].get("warpgroups", {}).values()):
            self.common["environment"]["JITNEY_CUDA_WARPGROUPS"] = "0"

    def save(self) -> None:
        with self._lock:
            self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{self.path}.json").write_text(json.dumps(self.found, indent=1, default=str) + "\n")
        Path(f"{self.path}.md").write_text(report.markdown(self.found))


def commit() -> str:
    """What is measured: git's word for it, or what an environment says that has no git."""
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            capture_output=True, text=True, cwd=process.ROOT, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("JITNEY_COMMIT", "unknown")
    return said.stdout.strip()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description="jitney on this machine's GPU: tests and times.",
    )
    parser.add_argument("--piece", type=int, help="one piece only, added to the others' results")
    parser.add_argument("--quick", action="store_true", help="a part of it: under three minutes")
    parser.add_argument(
        "--emulate", action="store_true", help="without a GPU, tiny: does the kit run?"
    )
    parser.add_argument("-s", "--stages", help=f"of {','.join(STAGES)} (all)")
    parser.add_argument("-r", "--rows", help="which rows, comma-separated")
    parser.add_argument("-o", "--output", default=str(RESULTS), help="where results go")
    options = parser.parse_args()
    options.stages = options.stages.split(",") if options.stages else list(STAGES)
    unknown = set(options.stages) - set(STAGES)
    if unknown:
        parser.error(f"unknown stages {', '.join(sorted(unknown))}; there are {', '.join(STAGES)}")
    chosen = options.rows.split(",") if options.rows else None
    options.rows = chosen or (
        TINY_ROWS if options.emulate else QUICK_ROWS if options.quick else None
    )
    return options


if __name__ == "__main__":
    sys.exit(main())
