"""What is refused says which call of the user's asked for a value, and what to write instead."""

import fractions
import itertools
import json
import statistics
import struct

import numpy as np
import pytest

import jitney as jt

X = np.array([3.0, 1.0, 2.0])


def shape_in_a_list(x):
    return jt.map_fn(lambda v: np.zeros([int(v), 2]), x)


REFUSED = {
    "sorted": (lambda x: sorted([[x[0]], [x[1]]]), "`sorted([[x[0]], [x[1]]])`", "np.argsort"),
    "median": (lambda x: statistics.median([x[0], x[1]]), "`statistics.median(", "before the call"),
    "zeros": (
        lambda x: jt.map_fn(lambda v: np.zeros(int(v)), x),
        "`np.zeros(int(v))` needs an integer",
        "argument",
    ),
    "zeros of a list": (shape_in_a_list, "`np.zeros([int(v), 2])` needs", "argument"),
    "mgrid": (lambda x: np.mgrid[0 : x[0]], "bounds of np.mgrid", "np.arange(n)"),
    "ogrid": (
        lambda x: jt.map_fn(lambda v: np.ogrid[0:3, 0 : int(v)], x),
        "bounds of np.mgrid and np.ogrid",
        "np.arange",
    ),
    "text": (lambda x: len(f"{x[0]}"), "text has traced values", "format them outside"),
    "masked": (lambda x: np.ma.masked_where(x > 1, x), "`np.ma.masked_where(x > 1, x)`", "py_func"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_call_is_named(name):
    f, says, remedy = REFUSED[name]
    with pytest.raises(jt.errors.JitneyError) as info:
        jt.jit(f)(X)
    message = str(info.value)
    assert says in message
    assert remedy in message.splitlines()[-1]
    assert len(message.splitlines()) < 8
    assert f"{__file__}:" in message  # the user's line, and not a library's


PYTHONS_OWN = {
    "Fraction": lambda x: fractions.Fraction(int(x[0])),
    "dumps": lambda x: json.dumps(float(x[0])),
    "pack": lambda x: struct.pack("d", x[0]),
    "islice": lambda x: list(itertools.islice([1, 2], int(x[0]))),
    "mean": lambda x: statistics.mean(x),
}


@pytest.mark.parametrize("name", PYTHONS_OWN)
def test_what_python_itself_refuses_has_a_remedy(name):
    f = PYTHONS_OWN[name]
    with pytest.raises((TypeError, ValueError, struct.error)) as info:
        jt.jit(f)(X)
    (note,) = info.value.__notes__
    assert f"{name} was called while the function was traced" in note
    assert "jt.py_func(" in note


def test_errors_of_the_users_own_have_no_note():
    def f(x):
        return len(x) + int("a")

    with pytest.raises(ValueError, match="invalid literal") as info:
        jt.jit(f)(X)
    assert not getattr(info.value, "__notes__", None)
