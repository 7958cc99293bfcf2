"""Processes that fork while their threads compile, allocate, call, log and import; none may hang.

    python tests/helpers/fork_stress.py                       2,000 forks
    python tests/helpers/fork_stress.py 100000 --jobs 2       takes the better part of an hour

A round is a process of its own: its main thread forks from the very start, while other threads do all
that for the first time and then again and again. Each child does the same things once. What takes longer
than `PATIENCE` prints the stacks of all its threads, which makes the round fail.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

QUIET = ("-W", "ignore:This process:DeprecationWarning")  # Python's, that forks may hang
PATIENCE = 90.0  # seconds, on a machine that does much else
SMALL, BIG = 10, 1 << 17  # 1 MiB, of recycled memory


def round_of_forks(seed: int, forks: int) -> None:
    """One process's forks. Its exit status is 1, or it prints, if anything went wrong."""
    rng = random.Random(seed)
    rest = rng.choice([1, 4, 16])  # the less the threads do, the more forks fit into an hour
    if rng.random() < 0.5:
        import_module("logging")  # its handlers of forks run after jitney's, or before
    import numpy as np

    import jitney as jt

    logging = import_module("logging")

    class Formats(logging.Handler):  # type: ignore[name-defined, misc]
        """Writes nowhere: files have locks of their own, which Python does not renew."""

        def emit(self, record: Any) -> None:
            self.format(record)

    logging.getLogger().addHandler(Formats())
    jt.config.cache = rng.random() < 0.5
    jt.threads(2)
    sys.setswitchinterval(rng.choice([1e-5, 1e-4, 5e-3]))
    wrong: list[str] = []
    newest: dict[str, Any] = {"number": 0}  # what a child finds being made

    def made(number: float) -> Any:
        def function(x: Any) -> Any:
            return np.sin(x) * number + np.cumsum(x)[::-1] + np.sort(x)

        return jt.jit(function), lambda x: function(x)

    def check(pair: Any, x: Any) -> None:
        function, plain = pair
        found, wanted = function(x), plain(x)
        if not np.allclose(found, wanted, rtol=1e-12):
            wrong.append(f"{found.ravel()[:3]} where {wanted.ravel()[:3]} is right")

    small, big = np.linspace(0, 1, SMALL), np.linspace(0, 1, BIG)
    known = made(0.5)
    double = jt.jit(lambda x: x * 2.0)

    def compiles(k: int) -> None:
        newest["pair"] = pair = made(k + 0.25)
        check(pair, small)

    def allocates(k: int) -> None:
        mine = [double(big) for _ in range(1 + k % 3)]
        if not all(array[-1] == 2.0 for array in mine):
            wrong.append("an array has another's elements")

    def calls(k: int) -> None:
        check(known, small)

    def logs(k: int) -> None:
        logging.getLogger(f"fork.{k % 100}").warning("%d", k)

    def imports(k: int) -> None:
        module = Path(folder, f"late_{seed}_{k}.py")
        module.write_text(
            "import jitney as jt, numpy as np\n"
            f"value = jt.jit(lambda x: x.sum() + {k})(np.ones(2))\n"
        )
        newest["number"] = k
        if import_module(module.stem).value != k + 2:
            wrong.append(f"{module.stem} was imported wrongly")

    def repeat(work: Callable[[int], None], pause: float) -> None:
        try:
            for k in itertools.count(1):
                work(k)
                time.sleep(rest * pause)
        except BaseException:
            wrong.append(traceback.format_exc())

    def child(k: int) -> None:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        allocates(k)
        logs(k)
        if k % 4 == 0:
            calls(k)
        if k % 32 == 0 and "pair" in newest:
            check(newest["pair"], small)
        if k % 32 == 16 and newest["number"]:
            number = newest["number"]
            if getattr(import_module(f"late_{seed}_{number}"), "value", None) != number + 2:
                wrong.append(f"module {number} is half done")
        if k % 64 == 1:
            compiles(-k)

    folder = tempfile.mkdtemp()
    sys.path.insert(0, folder)
    works = [
        *((compiles, 0.05), (imports, 0.1)),
        *((allocates, 0.001), (calls, 0.001), (logs, 0.001)),
    ]
    for work, pause in works:
        threading.Thread(target=repeat, args=(work, pause), daemon=True).start()
    progress = os.fdopen(1, "wb", buffering=0)
    for k in range(forks):
        progress.write(b".")
        process = os.fork()
        if process == 0:
            try:
                child(k)
            except BaseException:
                wrong.append(traceback.format_exc())
            if wrong:
                print(*wrong, sep="\n", file=sys.stderr, flush=True)
            os._exit(1 if wrong else 0)
        if os.waitpid(process, 0)[1]:
            wrong.append(f"child {k} of round {seed} failed")
        time.sleep(rng.choice([0.0, 0.0005, 0.003]))
        if wrong:
            break
    status = 1 if wrong else 0  # before the folder goes, in which a thread may be writing a module
    print(*wrong, sep="\n", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(status)


def run_round(seed: int, forks: int) -> str:
    """Run a round in a process of its own; what it had to say."""
    command = [sys.executable, *QUIET, "-X", "faulthandler", __file__]
    command += [str(forks), "--round", str(seed)]
    with tempfile.TemporaryDirectory() as folder, Path(folder, "said").open("w+") as said:
        environment = {**os.environ, "JITNEY_CACHE_DIR": folder}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=said)
        assert process.stdout is not None
        while select.select([process.stdout], [], [], 2 * PATIENCE)[0]:
            if not os.read(process.stdout.fileno(), 1000):
                break
        else:
            process.send_signal(signal.SIGABRT)  # it prints the stacks
        process.wait()
        said.seek(0)
        text = said.read().strip()
    failed = process.returncode or text
    return f"round {seed} ended with {process.returncode}:\n{text}" if failed else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("forks", type=int, nargs="?", default=2000)
    parser.add_argument("--per-round", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--round", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.round is not None:
        round_of_forks(chosen.round, chosen.forks)
    from concurrent.futures import ThreadPoolExecutor  # not in rounds: it imports logging

    start, failures = time.time(), 0
    rounds = -(-chosen.forks // chosen.per_round)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        seeds = range(chosen.seed, chosen.seed + rounds)
        for k, found in enumerate(
            pool.map(run_round, seeds, itertools.repeat(chosen.per_round)), 1
        ):
            failures += bool(found)
            print(found or f"{k * chosen.per_round} forks, {time.time() - start:.0f} s", flush=True)
    print(f"{failures} of {rounds} rounds failed")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
