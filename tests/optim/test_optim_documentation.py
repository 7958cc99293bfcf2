"""The examples in the docstrings of `jt.optim` run, and every public name has its text."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
from public_names import public_names

import jitney as jt
from jitney import optim


def test_examples() -> None:
    for found in pkgutil.walk_packages(optim.__path__, "jitney.optim."):
        module = importlib.import_module(found.name)
        failed, _ = doctest.testmod(module, extraglobs={"jt": jt, "np": np})
        assert not failed, found.name


def test_public_names_are_documented() -> None:
    for name in public_names(optim):
        assert getattr(optim, name).__doc__, name
