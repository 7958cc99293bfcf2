"""What the documentation of public functions holds: examples that run, and the errors by name."""

from __future__ import annotations

import doctest
import inspect
import io
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.tracer.arrays.table import FUNCTIONS
from jitney.tracer.messages.errors import raised_by

FLOAT = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")


class NearlyEqual(doctest.OutputChecker):
    """Floats may differ in their last digit, which depends on the machine's instructions."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        def numbers(text: str) -> list[float]:
            return [float(x) for x in FLOAT.findall(text)]

        if FLOAT.sub("#", want).split() != FLOAT.sub("#", got).split():
            return False
        return np.allclose(numbers(want), numbers(got), rtol=1e-14, atol=0)


def public_functions(space: Any, prefix: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    """Names and functions that users reach, but for those that are NumPy's own."""
    names = vars(space) if isinstance(space, types.SimpleNamespace) else dir(space)
    for name in getattr(space, "__all__", names):
        found = getattr(space, name)
        if isinstance(found, types.SimpleNamespace) or found in (jt.random, jt.tree):
            yield from public_functions(found, f"{prefix}{name}.")
        elif inspect.isroutine(found) and found.__module__.startswith("jitney"):
            yield prefix + name, found


PUBLIC = dict(public_functions(jt))
OWN = [n for n in PUBLIC if n not in FUNCTIONS or FUNCTIONS[n].numpy is None]


def test_the_walk_meets_all_kinds_of_functions() -> None:
    assert {"sin", "linalg.norm", "special.k1e", "random.gumbel", "tree.map", "grad"} <= set(PUBLIC)
    assert len(PUBLIC) > 500 and len(OWN) > 200


@pytest.mark.parametrize("name", OWN)
def test_an_example_runs(name: str) -> None:
    names = {"jt": jt, "np": np, PUBLIC[name].__name__: PUBLIC[name]}
    text = inspect.cleandoc(PUBLIC[name].__doc__ or "")
    example = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    assert example.examples, text
    said = io.StringIO()
    assert not doctest.DocTestRunner(NearlyEqual()).run(example, out=said.write).failed, (
        said.getvalue()
    )


def test_what_numpy_documents_is_documented() -> None:
    assert not [name for name in PUBLIC if len(PUBLIC[name].__doc__ or "") < 40]
    assert "In jitney: " in jt.sort.__doc__ and "np.sort" in jt.sort.__doc__


def test_errors_that_a_function_raises_are_named() -> None:
    missing = {}
    for name, found in PUBLIC.items():
        inner = FUNCTIONS[name].traced if name in FUNCTIONS else inspect.unwrap(found)
        text = found.__doc__ or ""
        unnamed = [e for e in raised_by(inner) if e.removeprefix("jt.errors.") not in text]
        if unnamed:
            missing[name] = unnamed
    assert not missing
    assert "jt.errors.ShapeError" in jt.concatenate.__doc__
