"""The examples in the docstrings of `jt.train` run, and every public name has its text."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
from public_names import public_names

import jitney as jt
from jitney import train


@pytest.mark.parametrize("name", [m.name for m in pkgutil.iter_modules(train.__path__)])
def test_examples(name):
    module = importlib.import_module(f"jitney.train.{name}")
    assert not doctest.testmod(module, extraglobs={"jt": jt, "np": np}).failed


def test_public_names_are_documented():
    assert not [name for name in public_names(train) if not getattr(train, name).__doc__]
