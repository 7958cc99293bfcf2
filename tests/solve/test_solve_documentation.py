"""The examples in the docstrings of `jt.solve` run, and every public name has its text."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
from public_names import public_names

import jitney as jt
from jitney import solve


@pytest.mark.parametrize("name", [m.name for m in pkgutil.iter_modules(solve.__path__)])
def test_examples(name: str) -> None:
    module = importlib.import_module(f"jitney.solve.{name}")
    assert not doctest.testmod(module, extraglobs={"jt": jt, "np": np}).failed


def test_public_names_are_documented() -> None:
    assert not [name for name in public_names(solve) if not getattr(solve, name).__doc__]
