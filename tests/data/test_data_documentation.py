"""The examples in the docstrings of `jt.data` run, and each public name has one."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
from public_names import public_names

import jitney as jt
from jitney import data


@pytest.mark.parametrize("name", [m.name for m in pkgutil.iter_modules(data.__path__)])
def test_examples(name):
    module = importlib.import_module(f"jitney.data.{name}")
    assert not doctest.testmod(module, extraglobs={"jt": jt, "np": np}).failed


def test_public_names_have_examples():
    assert not [name for name in public_names(data) if ">>>" not in getattr(data, name).__doc__]
    methods = {k: v for k, v in vars(data.Dataset).items() if callable(v) and k[0] != "_"}
    assert not [
        k for k, v in methods.items() if ">>>" not in v.__doc__ and k not in ("start", "describe")
    ]
