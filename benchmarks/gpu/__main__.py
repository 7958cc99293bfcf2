"""`python -m benchmarks.gpu`: all stages, results saved as they come. See README.md."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import checks, process, report

RESULTS = Path(__file__).resolve().parent / "results"
STAGES = ("first_light", "tests", "sweeps", "speed")
SECONDS = {"first_light": 65.0, "tests": 130.0, "sweeps": 40.0, "speed": 220.0}  # at most
WARPGROUP_SECONDS = 24.0
QUICK = {"first_light": 30.0, "tests": 40.0, "sweeps": 15.0, "speed": 60.0}
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


def main() -> int:
    options = parse()
    if sentence := missing("first_light"):
        print(f"jitney does not start here: {sentence}")
        return 1
    run = Run(options)
    for stage in options.stages:
        run.stage(stage)
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
        self.common: process.Options = {"small": options.emulate}
        if options.emulate:
            self.common["environment"] = {"JITNEY_CUDA": "emulate"}
        else:
            self.common["environment"] = {"JITNEY_CUDA": "on"}
        if options.rows:
            self.common["rows"] = options.rows
        self.limits = QUICK if options.quick or options.emulate else SECONDS
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

    def stage(self, name: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
        start = time.monotonic()
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
            self._one(name, self.common, self.limits[name])
            self.found["seconds"][name] = time.monotonic() - start
        if name == "first_light":
            self._describe()

    def _warpgroups(self) -> None:
        """What hangs or gives wrong answers is not used by what follows."""
        limit = WARPGROUP_SECONDS
        self._one("warpgroups", self.common, limit if self.limits is SECONDS else limit / 2)
        records = self.found["stages"]["warpgroups"]
        if not records:  # another architecture, or no device
            del self.found["stages"]["warpgroups"]
        if any("error" in record for record in records.values()):
            print("  warning: what follows does without warpgroups", flush=True)
            self.common["environment"]["JITNEY_CUDA_WARPGROUPS"] = "0"

    def _one(self, name: str, options: process.Options, limit: float, title: str = "") -> None:
        title = title or name

        def save(records: process.Records) -> None:
            with self._lock:
                self.found["stages"][title] = dict(records)
                self._write()

        start = time.monotonic()
        item_seconds = 20.0 if self.limits is QUICK else 45.0
        records = process.run(name, options, limit, item_seconds, save)
        save(records)
        self.found["seconds"][title] = time.monotonic() - start
        failed = [item for item, record in records.items() if "error" in record]
        print(f"  {title}: {len(records)} items, {len(failed)} failed", flush=True)
        for item in failed[:5]:
            print(f"    {item}: {records[item]['error'][:150]}", flush=True)

    def _tests(self) -> None:
        """Files side by side: they are bound by compiling, not by the device."""
        if self.options.emulate:
            files, only = ["test_cuda_kernels.py"], "test_indices_are_checked"
        else:
            files, only = checks.files(self.options.quick), None
        limit, tasks = self.limits["tests"], []
        for file in files:
            tasks.append((f"tests: {file}", {**self.common, "file": file, "only": only}))
        if checks.sanitizer() and not self.options.emulate:
            tools = ("memcheck",) if self.options.quick else ("memcheck", "racecheck")
            tasks += [(f"tests: {t}", checks.sanitized(t, self.common)) for t in tools]
        with ThreadPoolExecutor(max(1, min(8, (os.cpu_count() or 2) // 2))) as pool:
            for title, options in tasks:
                pool.submit(self._one, "checks", options, limit, title)

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
        self.found["versions"] = {k: v for k, v in machine.get("versions", {}).items() if v}

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
    parser.add_argument("--quick", action="store_true", help="a part of it: under two minutes")
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
