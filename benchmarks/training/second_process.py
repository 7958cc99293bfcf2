"""What a second process pays until its first training step is done.

    python -m benchmarks.training.second_process

The first process fills the disk cache, and Python's own of bytecode. CPU seconds of the whole process,
the interpreter's start and the import of NumPy included, and without making the data; the least of a
few runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .steps import STEPS

STEP = """
import sys, time
from benchmarks.training import modules, steps
before = time.process_time()
weights, batch = steps.STEPS[sys.argv[1]].inputs()
data = time.process_time() - before
step = modules.start(steps.STEPS[sys.argv[1]].network, weights, batch)
modules.wait(step())
print(time.process_time() - data)
"""
RUNS = 3


def measure(name: str, folder: str) -> tuple[float, float]:
    """CPU seconds of a first and of a later process, with caches in `folder`."""
    environment = dict(os.environ, JITNEY_CACHE_DIR=folder, PYTHONPYCACHEPREFIX=folder)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", STEP, name]
    seconds = []
    for _ in range(1 + RUNS):
        done = subprocess.run(
            command,
            env=environment,
            cwd=Path(__file__).parents[2],
            check=True,
            stdout=subprocess.PIPE,
        )
        seconds.append(float(done.stdout))
    return seconds[0], min(seconds[1:])


def main(names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'step':14s} {'first':>8s} {'second':>8s}")
        for name in names or STEPS:
            first, second = measure(name, folder)
            print(f"{name:14s} {first:7.2f}s {second:7.2f}s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
