"""`python -m benchmarks.scaling`: the same step on 1, 2 and 4 processes, by everybody who is installed.

Each process has one thread. Printed are the least time of a step, the median, and losses, which are
the same. `--python` is the interpreter of a peer that has other packages, as in
`--python torch=/path/to/python`. `--measure` prints what `docs/guides/scaling.md` predicts from: the
latency and bandwidth of messages among processes here.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from .step import WHO, measured

HERE = Path(__file__).parents[2]


def main() -> None:
    """Start processes, or be one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--who")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--python", nargs="*", default=[])
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    if options.who == "messages":
        messages()
    elif options.who:
        measured(options.who, options.batch, options.steps)
    else:
        pythons = dict(p.split("=", 1) for p in options.python)
        rest = ["--batch", str(options.batch), "--steps", str(options.steps)]
        for count in options.counts:
            if options.measure:
                print(count, "processes:", started("messages", count, pythons, rest))
                continue
            for who in WHO:
                said = started(who, count, pythons, rest).split()
                if len(said) != 4:
                    print(f"{count} {who:8s} {' '.join(said)[-200:]}", flush=True)
                    continue
                first, last, least, median = map(float, said)
                print(f"{count} {who:8s} {1e3 * least:8.2f} ms, median {1e3 * median:8.2f}"
                      f"   losses {first:.5f} to {last:.5f}", flush=True)  # fmt: skip


def started(who: str, count: int, pythons: dict[str, str], rest: list[str]) -> str:
    """What rank 0 of `count` processes prints."""
    python = pythons.get(who, sys.executable)
    command = [python, "-m", "benchmarks.scaling", "--who", who, *rest]
    env = {
        **os.environ,
        "JITNEY_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if who != "torch":
        beside = Path(python).with_name("mpiexec")
        mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"
        version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
        own = ["--allow-run-as-root", "--oversubscribe"] if "open" in version.lower() else []
        done = subprocess.run(
            [mpiexec, *own, "-n", str(count), *command],
            cwd=HERE,
            env=env,
            capture_output=True,
            text=True,
        )
        return done.stdout or done.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    env["WORLD_SIZE"] = str(count)
    processes = [
        subprocess.Popen(command, cwd=HERE, env={**env, "RANK": str(r)}, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for r in range(count)
    ]  # fmt: skip
    said = [p.communicate() for p in processes]
    return said[0][0] or said[0][1]


def messages() -> None:
    """Latency and bandwidth of a sum over all processes, and what the call costs beside MPI's own."""
    from mpi4py import MPI

    import jitney as jt

    comm = jt.distributed.init()
    found = []
    for words in (1, 1 << 18):
        x = np.ones(words, np.float32)
        out = np.empty_like(x)
        f = jt.jit(lambda x: comm.all_reduce(x))
        for call in (lambda: f(x), lambda: MPI.COMM_WORLD.Allreduce(x, out)):  # noqa: B023
            times = []
            for _ in range(40):
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
            found.append(f"{1e6 * min(times):.0f} us")
    if comm.rank == 0:
        print(
            f"4 bytes: {found[0]} (MPI {found[1]}); 1 MiB: {found[2]} (MPI {found[3]})", flush=True
        )


if __name__ == "__main__":
    main()
