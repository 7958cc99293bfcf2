"""Which cases run: all of them, or a sample.

Of parametrised tests each value of each parameter runs, and a fifth of the other combinations. The
emulated GPU runs one thread at a time, so its tests are slow. What they test changes with the code
generator and the GPU's runtime; where neither has, a sample tells whether something else broke them.
"""

from __future__ import annotations

import subprocess
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

GPU = "tests/gpu/"
# Of the functions of a file one in so many runs. Tests of the runtime itself ask nothing of the rest of
# the compiler; kernel families meet the rest in each of their tests; ops and device arrays are the rest.
SHARES = {
    "tests/gpu/test_device_": 1,
    "tests/gpu/kernels/test_cuda_ops": 1,
    "tests/gpu/kernels/": 2,
    "tests/gpu/": 3,
}
# What decides how kernels for GPUs are made and run.
SOURCES = ("codegen", "runtime/cuda", "tests/gpu", "tests/helpers")

New = set[tuple[str, str]]  # a parameter's name and a value


def thinned(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The items to run, and the others: combinations of values all of which other cases have. The choice
    is the same each time."""
    seen: dict[str, New] = {}
    kept, left_out = [], []
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if len(params) < 2:  # its values, of which some take long to print, are all its own
            kept.append(item)
            continue
        values = {(name, repr(value)) for name, value in params.items()}
        before = seen.setdefault(item.nodeid.partition("[")[0], set())
        new = not values <= before or chosen(item.nodeid)
        (kept if new else left_out).append(item)
        before |= values
    return kept, left_out


def chosen(name: str) -> bool:
    """True for a fifth of all names."""
    return zlib.crc32(name.encode()) % 20 in (4, 8, 12, 16)


def by_eights(calls: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrises a test by lists of calls: eight cases take longer than one of eight. See `told`."""
    groups = [calls[i : i + 8] for i in range(0, len(calls), 8)]
    return pytest.mark.parametrize("calls", groups, ids=lambda group: str(group[0]))


@contextmanager
def told(call: Any) -> Iterator[None]:
    """What goes wrong inside says in which call."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"call: {call}")
        raise


def sampled(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The items to run, and the others: cases of tests of GPUs that bring nothing new.

    Of each file a share of the functions runs, each with each value that each of its parameters has; not
    with all of their combinations. Of sizes (numbers, tuples of numbers) the first and the last count as
    values. The choice is the same each time.
    """
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if GPU in item.nodeid:
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    seen_of: Counter[str] = Counter()
    for name in list(functions):
        file = name.partition("::")[0]
        share = next(n for start, n in SHARES.items() if name.startswith(start))
        if seen_of[file] % share:
            left_out.update(functions.pop(name))
        seen_of[file] += 1
    for cases in functions.values():
        seen: New = set()
        for case, new in zip(cases, _values(cases), strict=True):
            if new <= seen and case is not cases[0]:
                left_out.add(case)
            seen |= new
    return [i for i in items if i not in left_out], [i for i in items if i in left_out]


def _values(cases: Sequence[pytest.Item]) -> list[New]:
    """What each case of a function brings."""
    given = [case.callspec.params if hasattr(case, "callspec") else {} for case in cases]
    wanted: New = set()
    for name in given[0]:
        values = {repr(params[name]): params[name] for params in given}
        names = list(values)
        if all(map(_is_size, values.values())):
            names = [names[0], names[-1]]
        wanted |= {(name, value) for value in names}
    return [wanted & {(name, repr(value)) for name, value in params.items()} for params in given]


def _is_size(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_size, value))
    return isinstance(value, int) and not isinstance(value, bool)


def code_changed(root: Path) -> bool:
    """Whether this checkout's code for GPUs differs from main's where it left main. Without git: no."""

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    bases = (git("merge-base", "HEAD", main) for main in ("origin/main", "main"))
    base = next(filter(None, bases), "HEAD")
    changed = git("diff", "--name-only", base, "--", *SOURCES)
    return bool(changed or git("ls-files", "--others", "--exclude-standard", "--", *SOURCES))
