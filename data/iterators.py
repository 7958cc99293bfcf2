"""What users iterate with: a running dataset whose position can be saved and restored."""

from __future__ import annotations

from typing import Any

from .errors import DataError, WorkerError, describe, refuse
from .steps import Intake, Passes, Step

EVERY = 256  # elements between two positions that are kept


class Iterator:
    """One pass over a dataset, from `iter(dataset)` or `dataset.iterator()`.

    `state()` is a small tree that JSON can write; `restore(state)`, or `dataset.iterator(state)` in
    another process, goes on exactly there, whatever of shuffles, workers and files is in the dataset.
    An exception in an element passes that element over: who asks again has the next. Ctrl-C and a
    `WorkerError` pass nothing over. Its threads, processes and files end with the pass, by `close()`,
    when its `with` block is left, and when nobody refers to it. It is for one thread at a time.

    >>> it = iter(jt.data.range(5))
    >>> next(it), next(it)
    (0, 1)
    >>> state = it.state()
    >>> list(it), list(jt.data.range(5).iterator(state))
    ([2, 3, 4], [2, 3, 4])
    """

    def __init__(self, dataset: Any, passes: Passes) -> None:
        self.dataset = dataset
        self._step: Step = dataset.start()
        self._intake = Intake(self._step, EVERY, brief=True)
        self._begin(passes)

    def _begin(self, passes: Passes) -> None:
        self._passes = passes
        self._step.reset(passes)
        self._intake.reset()
        self._next = self._step.__next__
        self._torn = False  # whether a pull was cut off in its middle
        self._closed = False
        self._last: Any = None  # the position at the end

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        intake = self._intake
        if intake.count >= intake.due:
            self._pause()
        try:  # as `intake.pull` does, without the call
            element = self._next()
        except StopIteration:
            self._end()
            raise
        except WorkerError as error:
            self._tear()
            self._note(error)
            raise
        except Exception as error:
            intake.count += 1
            self._note(error)
            raise
        except BaseException:
            self._tear()
            raise
        intake.count += 1
        return element

    def _note(self, error: Exception) -> None:
        made = "" if self.dataset.line is None else f", made at {self.dataset.line}"
        error.add_note(f"in the dataset {self.dataset.describe()}{made}")

    def _end(self) -> None:
        """Nobody has to be kept for more."""
        self._last = self._step.position()
        self._intake.due = -1
        self._step.close()

    def _tear(self) -> None:
        """A pull was cut off in its middle, and has to be begun again."""
        self._torn = True
        self._intake.due = -1

    def _pause(self) -> None:
        """What is to do before a pull, now and then."""
        if self._closed:
            refuse("the iterator is closed", "dataset.iterator(state) makes another one.")
        if self._last is not None:
            raise StopIteration
        if self._torn:
            self._mend()
        else:
            self._intake.mark()

    def _mend(self) -> None:
        """Go back to before a pull that was interrupted."""
        position = self._intake.position(count=self._intake.count)
        self._begin(self._passes)
        self._intake.move(position)

    def state(self) -> dict[str, Any]:
        """Where it is: before the element that comes next.

        >>> jt.data.range(3).iterator().state()
        {'dataset': 'range', 'pass': [0], 'at': 0}
        """
        if self._torn:
            self._mend()
        position = self._step.position() if self._last is None else self._last
        return {"dataset": self.dataset.describe(), "pass": list(self._passes), "at": position}

    def restore(self, state: dict[str, Any]) -> None:
        """Go to where `state()` was asked for. Raises DataError if that was of another dataset."""
        try:
            of, passes, position = state["dataset"], state["pass"], state["at"]
        except (TypeError, KeyError):
            what = f"{describe(state)} is no state of an iterator"
            refuse(what, "`state()` of a jt.data iterator gives one.", DataError)
        here = self.dataset.describe()
        if of != here:
            what = f"the state is of the dataset {of}, and this is {here}"
            refuse(what, "give it the dataset that it was saved with.", DataError)
        self._begin(tuple(passes))
        try:
            self._step.move(position)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            what = f"the state is damaged, at {position!r} ({error!r})"
            refuse(what, "give one as `state()` gave it.", DataError)
        self._intake.reset()

    def close(self) -> None:
        """End its threads and processes, close its files. Closing again does nothing."""
        if not self._closed:
            self._closed = True
            self._intake.due = -1
            self._step.close()

    def __enter__(self) -> Iterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_closed", True) is False:
            self.close()

    def __repr__(self) -> str:
        return f"jt.data.Iterator({self.dataset.describe()})"
