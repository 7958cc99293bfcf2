"""Plant faults in copies of the tree, one at a time, and see that tests fail.

    python tests/faults                     all of them; first that their tests pass without
    python tests/faults promotion "sort*"   some of them
    python tests/faults --jobs 1

A fault is caught if its test fails: not if it cannot be collected, crashes or does not end. A fault that
nothing catches wants a new test.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faults import FAULTS
from planted import Fault, plant

ROOT = Path(__file__).resolve().parents[2]
UNSHRUNK = ("--hypothesis-profile", "unshrunk")
LIMIT = 300  # seconds for one test
NOT_COPIED = shutil.ignore_patterns(".*", "docs", "notebooks", "benchmarks", "build", "dist")
SAID = {0: "SURVIVES", 1: "caught"}


def copied(tree: Path, to: Path) -> Path:
    """A copy of a tree under the package's name, which Python has to find first."""
    return Path(shutil.copytree(tree, to / "jitney", ignore=NOT_COPIED))


def tested(tree: Path, tests: list[str], *options: str) -> tuple[int, str]:
    """pytest's exit status in a tree, and the end of what it said."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *tests]
    # The same examples each time.
    environment = {**os.environ, "PYTHONPATH": str(tree.parent), "CI": "1"}
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return 124, f"it ran for more than {LIMIT} s"
    return done.returncode, done.stdout[-3000:] + done.stderr[-1000:]


def tried(fault: Fault, trees: queue.Queue[Path], whole: bool) -> bool:
    """Whether the fault is caught."""
    tree = trees.get()
    path = tree / fault.file
    kept, start = path.with_suffix(".kept"), time.perf_counter()
    path.rename(kept)
    shutil.copy2(kept, path)
    try:
        plant(fault, tree)
        status, said = tested(tree, [fault.test], "-n", "0", "-x", *UNSHRUNK)
    finally:
        kept.replace(path)
        trees.put(tree)
    seconds = time.perf_counter() - start
    print(f"{SAID.get(status, f'status {status}'):9} {fault.name} ({seconds:.0f} s)", flush=True)
    if status != 1 or whole:
        print(f"  {fault.breaks}: {fault.file}, {fault.test}\n{said}", flush=True)
    return status == 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/faults", description=__doc__)
    parser.add_argument("names", nargs="*", help="of faults, or patterns; all by default")
    parser.add_argument("--jobs", type=int, default=2, help="faults that are tried at a time")
    parser.add_argument("--verbose", action="store_true", help="show how tests fail")
    given = parser.parse_args()
    wanted = [
        fault
        for fault in FAULTS
        if not given.names or any(fnmatch.fnmatch(fault.name, name) for name in given.names)
    ]
    if not wanted:
        parser.error(f"there are {', '.join(fault.name for fault in FAULTS)}")
    with tempfile.TemporaryDirectory(prefix="jitney-faults-") as work:
        first = copied(ROOT, Path(work) / "0")
        tests = sorted({fault.test for fault in wanted})
        status, said = tested(first, tests, "-n", str(given.jobs))
        print(f"{len(tests)} tests without faults: {'pass' if status == 0 else 'FAIL'}", flush=True)
        if status:
            print(said)
            return 1
        trees: queue.Queue[Path] = queue.Queue()
        trees.put(first)
        for k in range(1, given.jobs):
            trees.put(copied(first, Path(work) / str(k)))
        with ThreadPoolExecutor(given.jobs) as pool:
            caught = list(pool.map(lambda fault: tried(fault, trees, given.verbose), wanted))
    print(f"{sum(caught)} of {len(wanted)} faults are caught")
    return 0 if all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
