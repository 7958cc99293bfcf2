"""Programs in child processes: what crashes or hangs is counted, and the others go on."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

LIMIT = 120.0  # seconds that one program may take
BATCH = 400  # programs of one process


class Finding(NamedTuple):
    """What became of one program. `kind`: right, wrong, refused, unclear, crashed or hung."""

    seed: int
    kind: str
    detail: str


def child(judge_seed: Callable[[int], Any], seeds: Sequence[int], out: IO[str]) -> None:
    """Say on `out` which seed is begun, and what became of it, a line each."""
    for seed in seeds:
        print(json.dumps(seed), file=out, flush=True)
        outcome = judge_seed(seed)
        print(json.dumps([outcome.kind, outcome.detail]), file=out, flush=True)


def findings(kind: str, seeds: Sequence[int], jobs: int = 1) -> Iterator[Finding]:
    """Run programs of a kind in `jobs` processes at a time, in no order."""
    pending = [list(seeds[k : k + BATCH]) for k in range(0, len(seeds), BATCH)]
    running: list[_Child] = []
    try:
        while pending or running:
            while pending and len(running) < jobs:
                running.append(_Child(kind, pending.pop(0)))
            ready, _, _ = select.select([c.out for c in running], [], [], 1.0)
            for each in list(running):
                found, done = each.look(each.out in ready)
                yield from found
                if done:
                    running.remove(each)
                    if each.seeds:
                        pending.append(each.seeds)
    finally:
        for each in running:
            each.end()


class _Child:
    """A process and the seeds that it has not answered for."""

    def __init__(self, kind: str, seeds: list[int]) -> None:
        self.seeds = seeds
        asked = [kind, "--child", "--seeds", json.dumps(seeds)]
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent), *asked],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        self.out = self.process.stdout
        self.text = b""
        self.since = time.monotonic()

    def look(self, ready: bool) -> tuple[list[Finding], bool]:
        """What has been found since, and whether the process is done for."""
        found: list[Finding] = []
        if ready:
            got = os.read(self.out.fileno(), 1 << 16)
            self.since = time.monotonic()
            self.text += got
            *lines, self.text = self.text.split(b"\n")
            for line in lines:
                said = json.loads(line)
                if isinstance(said, list):
                    found.append(Finding(self.seeds.pop(0), *said))
            if not got:
                self.end()
                if self.seeds and self.process.returncode:
                    how = f"the process ended with {self.process.returncode}"
                    found.append(Finding(self.seeds.pop(0), "crashed", how))
                return found, True
        elif time.monotonic() - self.since > LIMIT:
            self.end()
            found.append(Finding(self.seeds.pop(0), "hung", f"more than {LIMIT:.0f} s"))
            return found, True
        return found, False

    def end(self) -> None:
        if self.process.poll() is None and self.text is not None:
            try:
                self.process.wait(0.2 if not self.seeds else 0.01)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.out.close()


def summary(found: Sequence[Finding]) -> str:
    counts = Counter(f.kind for f in found)
    return ", ".join(f"{n} {kind}" for kind, n in counts.most_common())
