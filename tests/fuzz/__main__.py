"""The command line of the fuzzer: see the package's docstring."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz import KINDS, kind_of, runner


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--show", action="store_true", help="print the program of --seed and run it"
    )
    parser.add_argument("--refusals", action="store_true", help="print these too")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seeds", type=json.loads, default=[], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    make = kind_of(asked.kind)
    if asked.child:
        runner.child(lambda seed: make(seed).judged(), asked.seeds, sys.stdout)
        return 0
    if asked.show:
        case = make(asked.seed)
        print(case.text)
        print(*case.judged())
        return 0
    start, found = time.monotonic(), []
    for finding in runner.findings(
        asked.kind, range(asked.seed, asked.seed + asked.count), asked.jobs
    ):
        found.append(finding)
        loud = ("wrong", "kind", "crashed", "hung", *(("refused",) if asked.refusals else ()))
        if finding.kind in loud:
            print(f"{asked.kind} {finding.seed}: {finding.kind}: {finding.detail}", flush=True)
    print(f"{asked.kind}: {runner.summary(found)} in {time.monotonic() - start:.0f} s")
    return int(any(f.kind in ("wrong", "kind", "crashed", "hung") for f in found))


sys.exit(main())
