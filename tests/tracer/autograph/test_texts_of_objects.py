"""What objects say of themselves, where traced values are in them."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitney as jt


@dataclass
class Point:
    x: Any
    y: Any = 0


def in_fields(x):
    return f"{Point(x[0], x[1] * 2)}!"


def by_str(x):
    return str(Point(x[0], Point(x.sum())))


def by_repr(x):
    return repr(SimpleNamespace(q=x[0], n=3))


def by_percent(x):
    return "%s and %s" % (Point(x[0]), 1)  # noqa: UP031


def known(x):
    return str(Point(1.5)), f"{Point(2)}"


@pytest.mark.parametrize("f", [in_fields, by_str, by_repr, by_percent, known])
def test_texts_are_pythons(f):
    x = np.array([1.5, -2.0])
    g = jt.jit(f)
    assert g(x) == f(x)
    assert g(x + 1) == f(x + 1)


def test_printed_and_raised(capsys):
    @jt.jit
    def f(x):
        print(Point(x[0]))
        if x[1] > 0:
            raise ValueError(f"bad {Point(x[1])}")
        return x

    for x in (np.array([1.0, -1.0]), np.array([2.0, -1.0])):
        f(x)
    assert capsys.readouterr().out.count("Point(x=np.float64(") == 2
    with pytest.raises(ValueError, match=r"bad Point\(x=np\.float64\(3\.0\), y=0\)"):
        f(np.array([1.0, 3.0]))


def test_characters_are_not_known_while_tracing():
    with pytest.raises(TypeError, match="its characters are known only when the compiled"):
        jt.jit(lambda x: len(str(Point(x[0]))))(np.ones(2))
