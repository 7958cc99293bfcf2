"""Schedules by name: an experiment's training and evaluation from the command line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jitney as jt

from .checkpoints import latest
from .settings import load_settings, parse_settings, save_settings
from .trainer import Trainer

SCHEDULES = ("train", "evaluate", "train_and_evaluate", "continuous_eval")


@dataclass
class Experiment:
    """A trainer, the data to train on until `steps` or `epochs`, and those to `validate` with.

    Its methods are the schedules.
    """

    trainer: Trainer
    data: Any = None
    steps: int | None = None
    epochs: int | None = None
    validate: Any = None
    validate_every: int | None = None
    validate_steps: int | None = None

    def train(self) -> Trainer:
        """Train, from the newest checkpoint if there is one."""
        return self.trainer.fit(self.data, self.steps, self.epochs)

    def evaluate(self) -> dict[str, float]:
        """The results of the newest checkpoint on the data to validate with."""
        results = self.trainer.evaluate(self.validate, self.validate_steps)
        for hook in self.trainer.hooks:
            hook.after_evaluate(self.trainer, results)
        return results

    def train_and_evaluate(self) -> Trainer:
        """Train, and evaluate after each pass, or every `validate_every` steps."""
        return self.trainer.fit(
            self.data,
            self.steps,
            self.epochs,
            validate=self.validate,
            validate_every=self.validate_every,
        )

    @jt.errors.naming_lines
    def continuous_eval(
        self, patience: float = 600, poll: float = 1
    ) -> dict[int, dict[str, float]]:
        """Evaluate each new checkpoint of a training that runs in another process: results by step.

        Ends with the checkpoint of step `steps`, or when none has come for `patience` seconds.
        """
        path, results, last = self.trainer.path, dict[int, dict[str, float]](), time.monotonic()
        if path is None:
            raise ValueError("continuous_eval looks for checkpoints: give the Trainer a path=")
        seen: Path | None = None
        while time.monotonic() - last < patience:
            newest = latest(path)
            if newest is None or newest == seen:
                time.sleep(poll)
                continue
            try:
                found = self.evaluate()
            except FileNotFoundError:  # the training has removed it just now
                continue
            seen, last = newest, time.monotonic()
            results[self.trainer.step] = found
            if self.steps is not None and self.trainer.step >= self.steps:
                break
        return results


def main(
    experiment: Callable[[Any], Experiment],
    settings: type,
    arguments: Sequence[str] | None = None,
) -> Any:
    """Run a schedule by its name, with settings from the command line:

        @dataclass
        class Settings:
            path: str = "runs/first"
            rate: float = 1e-3

        def experiment(settings): ...  # an Experiment

        if __name__ == "__main__":
            jt.train.main(experiment, Settings)

        python digits.py train_and_evaluate --rate 3e-4
        python digits.py continuous_eval          # beside it, with the same settings

    Settings are kept with the run, in `settings.json` of the folder that the setting `path` names;
    what the command line does not say is as it was there. Returns what the schedule returns.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    prog = Path(sys.argv[0]).name
    top = argparse.ArgumentParser(
        prog=prog,
        description="Settings follow the schedule: --help there lists them.",
        add_help=not given or given[0] in ("-h", "--help"),
    )
    top.add_argument("schedule", choices=SCHEDULES)
    schedule = top.parse_args(given[:1]).schedule
    saved = load_settings(_folder(settings, given[1:]))
    chosen: Any = parse_settings(settings, given[1:], saved=saved, prog=f"{prog} {schedule}")
    made = experiment(chosen)
    if schedule.startswith("train") and made.trainer.path is not None:
        save_settings(made.trainer.path, chosen)
    result = getattr(made, schedule)()
    if schedule == "evaluate":
        print("  ".join(f"{name} {value}" for name, value in result.items()))
    return result


def _folder(settings: type, arguments: Sequence[str]) -> str:
    """The run's folder, before anything else is known."""
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--path", default=getattr(settings, "path", ""))
    return str(finder.parse_known_args(list(arguments))[0].path)
