"""Trainings that are killed at random moments, again and again, and end with the same bits.

    python tests/train/kill_trainings.py --count 200 --seed 0

A training of a few dozen steps saves at each; its process is killed (SIGKILL) after a random time, the
newest checkpoint has to load with all its checksums, and another process goes on. When one gets to the
end, everything that it has saved is compared with a training that nobody disturbed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import jitney as jt
from jitney import nn, optim, train

STEPS = 24


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        self.first, self.second = nn.Linear(8, width, rng=0), nn.Linear(width, 1, rng=1)
        self.drop = nn.Dropout(0.2, rng=2)

    def __call__(self, x: Any) -> Any:
        return self.second(self.drop(jt.tanh(self.first(x))))


def loss(y: Any, target: Any) -> Any:
    return ((y - target) ** 2).mean()


class Draws(train.Hook):
    """Something else that draws, from the generator of all, and remembers."""

    def __init__(self) -> None:
        self.total = 0.0

    def after_step(self, trainer: Any) -> None:
        self.total += float(np.random.random()) + random.random()

    def state(self) -> dict[str, float]:
        return {"total": self.total}

    def restore(self, state: dict[str, float]) -> None:
        self.total = state["total"]


class Warm:
    """A training that has compiled its functions; its forks begin where it began."""

    def __init__(self, folder: Path, width: int) -> None:
        x = np.random.default_rng(1).normal(size=(64, 8)).astype(np.float32)
        pairs = jt.data.from_arrays((x, x[:, :1])).shuffle(seed=3)
        noisy = pairs.map(lambda pair, rng: (pair[0] + rng.random(), pair[1]), seed=4)
        self.data = noisy.batch(16).prefetch(2)
        self.saves = train.SaveCheckpoints(steps=1, keep=2)
        rule, hooks = optim.adam(1e-2), [Draws(), self.saves]
        self.trainer = train.Trainer(Net(width), rule, loss, hooks=hooks, path=folder)
        self.trainer.programs.prepare(self.data)
        np.random.seed(5)
        begin = train.save(folder / "begin.safetensors", self.trainer._tree())
        self.trainer.fit(self.data, steps=2)
        train.restore(begin, into=self.trainer._tree())

    def fork(self, folder: Path, background: bool) -> int:
        """The id of a process that goes on in a folder from where that is."""
        child = os.fork()
        if child:
            return child
        status = 1
        try:
            random.seed(6)  # Python gives a forked process another seed
            self.trainer.path, self.trainer._fresh = folder, True
            self.saves._options["background"] = background
            self.trainer.fit(self.data, steps=STEPS)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)


def bits(folder: Path) -> dict[str, Any]:
    """What the newest checkpoint holds, to the bit; reading it looks at the checksums."""
    newest = train.latest(folder)
    found = {} if newest is None else train.restore(newest)
    return {} if not found else {"arrays": _flat(found), "step": found["loop"]["step"]}


def _flat(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [(key, _flat(value)) for key, value in sorted(tree.items(), key=repr)]
    if isinstance(tree, (list, tuple)):
        return [_flat(value) for value in tree]
    if isinstance(tree, np.random.Generator):
        return [repr(tree.bit_generator.state)]
    return [tree.tobytes() if isinstance(tree, (np.ndarray, np.generic)) else repr(tree)]


def main(count: int, seed: int, width: int = 40_000, say: Any = print) -> int:
    """How many kills there were; AssertionError where a checkpoint or a bit was lost."""
    draw = random.Random(seed)
    root = Path(tempfile.mkdtemp())
    try:
        warm = Warm(root / "warm", width)
        begun = time.monotonic()
        assert os.waitpid(warm.fork(root / "whole", False), 0)[1] == 0
        took = time.monotonic() - begun
        expected = bits(root / "whole")
        kills = ends = 0
        while kills < count or not ends:
            folder, background, before = root / f"run{ends}", bool(ends % 2), -1
            while True:
                child = warm.fork(folder, background)
                time.sleep(draw.uniform(0, took) if kills < count else 0)
                if kills < count:
                    os.kill(child, signal.SIGKILL)
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                found = bits(folder)
                assert found.get("step", -1) >= before, "steps that were saved are gone"
                before = found.get("step", -1)
                if status == 0:
                    break
                assert status == -signal.SIGKILL, status
                kills += 1
            assert found == expected, f"other bits after {kills} kills"
            left = [path.name for path in folder.iterdir() if path.name[0] != "s"]
            assert left == [".lock"], left
            shutil.rmtree(folder)
            ends += 1
            say(f"{kills} kills, {ends} trainings ended with the same bits")
        return kills
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    main(chosen.count, chosen.seed)
