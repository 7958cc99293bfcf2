"""Saving trees, and finding what was saved.

A checkpoint is one file, `step-00001000.safetensors`, which is there whole or not at all. Its
header's text describes the tree (`checkpoint_tree`); other programs read the arrays as in every
safetensors file.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import jitney as jt

from .checkpoint_file import CheckpointError, checksum, fail, reading, write
from .checkpoint_tree import Taken, check
from .writers import writing

FORMAT = 1
_NAME = re.compile(r"step-(\d+)\.safetensors")
StrPath = str | os.PathLike[str]


@jt.errors.naming_lines
def save(
    path: StrPath,
    tree: Any,
    *,
    step: int | None = None,
    keep: int | None = 5,
    keep_every: int | None = None,
    background: bool = False,
) -> Path:
    """Write a tree as a checkpoint, and return the file's path.

    With a `step`, `path` is a folder (made if it is not there) of checkpoints, of which the newest
    `keep` stay (None: all), and those whose step is a multiple of `keep_every`. Without one, `path`
    is the file.

    A tree is made of dicts, lists, tuples and objects (modules, dataclasses, your own; a module's
    numbers and texts are settings and not saved) with arrays of every dtype and shape,
    `jt.Variable`s, numbers, texts, bytes, None, NumPy's generators, and whatever has `state()` and
    `restore(state)`, such as iterators of `jt.data`. An array in two places is written once, and is
    one array again. Functions and classes are left out; other things raise TypeError with their
    place.

    The file has its name when all of it is on the disk. With `background=True` arrays are copied,
    and a thread writes: `train.wait()` returns when it has. What it failed at is raised there or by
    the next `save`, and the program does not end before.

    Raises OSError (disk full, folder read-only) with the file's name; earlier checkpoints stay.
    BlockingIOError if another process trains in that folder.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for step in range(8):
    ...     tree = {"w": np.zeros(3), "step": step}
    ...     _ = jt.train.save(folder, tree, step=step, keep=2, keep_every=5)
    >>> list(jt.train.steps(folder))
    [0, 5, 6, 7]
    >>> jt.train.restore(folder)
    {'w': array([0., 0., 0.]), 'step': 7}
    """
    target = _target(path_of(path), step, keep, keep_every)
    taken = Taken(tree, copied=background)
    wait(path)

    def work() -> None:
        text = _text(taken, step)
        if step is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            return write(target, taken.arrays, text)
        with writing(target.parent):
            write(target, taken.arrays, text)
            _remove_old(target.parent, keep, keep_every)

    if background:
        _in_background(Path(path), work)
    else:
        work()
    return target


def wait(path: StrPath | None = None) -> None:
    """Return when checkpoints that are written in the background (into `path`) are written; raises
    what went wrong.

    >>> jt.train.wait()
    """
    for key in [_key(path_of(path))] if path is not None else list(_pending):
        saving = _pending.get(key)
        if saving is not None:
            saving.thread.join()
            _pending.pop(key, None)
            if saving.error is not None:
                raise saving.error


def steps(path: StrPath) -> dict[int, Path]:
    """The checkpoints of a folder by step, oldest first. Empty where there is no such folder.

    >>> jt.train.steps("no/such/folder")
    {}
    """
    found = {}
    with suppress(FileNotFoundError, NotADirectoryError):
        for file in path_of(path).iterdir():
            if match := _NAME.fullmatch(file.name):
                found[int(match[1])] = file
    return dict(sorted(found.items()))


@jt.errors.naming_lines
def latest(path: StrPath) -> Path | None:
    """The newest checkpoint of a folder, None if there is none.

    One that is damaged (the disk's doing; a save that ended in the middle leaves none) is left out
    with a warning, unless none is whole: then its CheckpointError is raised.

    >>> jt.train.latest("no/such/folder") is None
    True
    """
    damage = None
    for file in reversed(steps(path).values()):
        try:
            with suppress(FileNotFoundError), reading(file):
                return file
        except CheckpointError as error:
            damage = damage or error
            warnings.warn(f"a checkpoint is left out: {error}", stacklevel=2)
    if damage is not None:
        raise damage
    return None


def path_of(path: Any) -> Path:
    """A path, and no tree that stands in its place."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"a path is a text or a Path, not {jt.errors.describe(path)}: it comes before the tree"
        )
    return Path(path)


def file_of(path: Path) -> Path:
    """The file itself, or a folder's newest checkpoint; FileNotFoundError if it has none."""
    if not path.is_dir():
        return path
    newest = latest(path)
    if newest is None:
        raise FileNotFoundError(
            f"{str(path)!r} has no checkpoint: no file step-N.safetensors is there; train.save(folder, "
            "tree, step=n) writes them"
        )
    return newest


@jt.errors.naming_lines
def describe(path: StrPath) -> dict[str, Any]:
    """What a checkpoint (of a folder the newest one) says of itself: `step`, `time` (seconds since
    1970), `versions`, the nodes of the `tree`, and of each array the bytes' checksum.

    Empty for a safetensors file that another program wrote. Raises CheckpointError for damaged
    files.
    """
    with reading(file_of(path_of(path))) as reader:
        return description(reader)


def description(reader: Any) -> dict[str, Any]:
    """The checked description in an open file; empty if it has none."""
    if reader.text is None:
        return {}
    try:
        said = json.loads(reader.text)
        if said["format"] != FORMAT:
            fail(
                reader.path,
                f"jitney {jt.__version__} can't read checkpoints of format {said['format']!r}",
            )
        check(said["tree"], reader.entries)
        sums, step = said["checksums"], said["step"]
        if set(sums) != set(reader.entries) or not all(type(s) is int for s in sums.values()):
            raise ValueError("the checksums are not those of the arrays")
        if not (step is None or type(step) is int):
            raise ValueError("the step is no number")
    except CheckpointError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        fail(reader.path, f"its description is damaged: {error or type(error).__name__}")
    return said


def _target(path: Path, step: int | None, keep: int | None, keep_every: int | None) -> Path:
    if step is None:
        if path.is_dir():
            raise IsADirectoryError(f"{str(path)!r} is a folder: give step=, or a file's name")
        return path
    if path.is_file():
        raise NotADirectoryError(
            f"{str(path)!r} is a file, and checkpoints with a step are files in a folder: give a "
            "folder, or no step"
        )
    if not isinstance(step, (int, np.integer)) or step < 0:
        raise ValueError(f"a step is a number of at least 0, not {step!r}")
    for name, count in {"keep": keep, "keep_every": keep_every}.items():
        if count is not None and count < 1:
            raise ValueError(f"{name} is at least 1, or None; it is {count}")
    return path / f"step-{step:08d}.safetensors"


def _text(taken: Taken, step: int | None) -> str:
    said = {
        "format": FORMAT,
        "step": None if step is None else int(step),
        "time": time.time(),
        "versions": {
            "jitney": jt.__version__,
            "numpy": np.__version__,
            "python": sys.version.split()[0],
        },
        "tree": taken.node,
        "checksums": {name: checksum(name, array) for name, array in taken.arrays.items()},
    }
    return json.dumps(said, allow_nan=False, separators=(",", ":"))


def _remove_old(folder: Path, keep: int | None, keep_every: int | None) -> None:
    if keep is None:
        return
    for step, file in list(steps(folder).items())[:-keep]:
        if keep_every is None or step % keep_every:
            with suppress(FileNotFoundError):
                file.unlink()


class _Saving:
    """A save in the background: its thread, and what went wrong."""

    def __init__(self, work: Any) -> None:
        self.error: BaseException | None = None
        self._work = work
        self.thread = threading.Thread(target=self._run, name="jitney-checkpoint")

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error


_pending: dict[Path, _Saving] = {}
os.register_at_fork(after_in_child=_pending.clear)  # the thread is not there


def _in_background(path: Path, work: Any) -> None:
    saving = _pending[_key(path)] = _Saving(work)
    saving.thread.start()


def _key(path: Path) -> Path:
    return Path(os.path.abspath(path))


@atexit.register
def _say_what_failed() -> None:
    """At the end of a program that never asked."""
    for path, saving in _pending.items():
        saving.thread.join()
        if saving.error is not None:
            print(f"jitney: the last checkpoint in {str(path)!r}: {saving.error}", file=sys.stderr)
