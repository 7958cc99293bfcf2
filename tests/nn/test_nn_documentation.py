"""The examples in the docstrings of `jt.nn` run, and every public name has its text."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
from public_names import public_names

import jitney as jt
from jitney import nn

MODULES = [m.name for m in pkgutil.walk_packages(nn.__path__, "jitney.nn.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    nn.seed(0)
    failed, _ = doctest.testmod(importlib.import_module(name), extraglobs={"jt": jt, "np": np})
    assert not failed


def test_public_names_are_documented() -> None:
    for name in public_names(nn):
        assert getattr(nn, name).__doc__, name
