"""Errors as users catch them: their classes, their names, and the lines that they name."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.tracer.messages import errors as messages

X = np.arange(3.0)


def test_lines_of_notebook_cells() -> None:
    import linecache

    cell = "def f(x):\n    if x[0] > 0:\n        return x\n    return -x\n"
    name = "<ipython-input-7-abc>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell, name, "exec"), names)
    with pytest.raises(TypeError, match="<ipython-input-7-abc>:2") as info:
        jt.jit(names["f"], autograph=False)(X)
    assert "if x[0] > 0:" in str(info.value)


def test_errors_of_compiled_code_name_the_line() -> None:
    @jt.jit
    def f(x, i):
        return x[i]  # the line

    np.testing.assert_array_equal(f(X, np.array([0, 2])), [0.0, 2.0])
    with pytest.raises(IndexError, match="7") as info:
        f(X, np.array([7]))
    assert "test_error_classes.py:" in info.value.__notes__[0]


def test_errors_are_the_classes_that_numpy_programs_catch() -> None:
    for name, kind in vars(jt.errors).items():
        if isinstance(kind, type) and issubclass(kind, jt.errors.JitneyError):
            builtin = issubclass(
                kind,
                (
                    *(TypeError, ValueError, IndexError, AssertionError),
                    *(NameError, AttributeError, RecursionError, ArithmeticError),
                ),
            )
            assert builtin or kind is jt.errors.JitneyError, name


def test_errors_are_named_where_users_find_them() -> None:
    of_tracer = [kind for kind in vars(messages).values() if isinstance(kind, type)]
    kinds = [kind for kind in of_tracer if issubclass(kind, (jt.errors.JitneyError, UserWarning))]
    assert len(kinds) > 20
    for kind in kinds:
        assert kind.__module__ == "jitney.errors" and getattr(jt.errors, kind.__name__) is kind
        assert pickle.loads(pickle.dumps(kind)) is kind
    with pytest.raises(jt.errors.ShapeError) as caught:
        jt.jit(lambda x: x @ np.ones(7))(X)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is jt.errors.ShapeError and str(again) == str(caught.value)
    assert again.line == caught.value.line
    assert traceback.format_exception_only(again)[0].startswith("jitney.errors.ShapeError: ")


def test_equal_functions_of_two_files_have_lines_of_their_own():
    for file in ("one.py", "two.py"):
        scope: dict[str, Any] = {"np": np}
        exec(compile("def f(x):\n    return x @ np.ones(4)\n", file, "exec"), scope)
        with pytest.raises(ValueError, match=rf"{file}:2"):
            jt.jit(scope["f"])(np.ones(3))


def test_endless_lists_are_refused_by_name() -> None:
    def grow(x):
        x.append(x)
        return len(x)

    def ring(x):
        y = [x]
        y.append(y)
        return y

    for f, x in ((grow, [1.0]), (ring, 1.0)):
        with pytest.raises(TypeError, match="contains itself"):
            jt.jit(f)(x)


def test_diagonals_that_numpy_itself_compares() -> None:
    for f in (lambda k: np.eye(3, k=k), lambda k: np.tri(3, k=k)):
        with pytest.raises(TypeError, match=r"write jt\.(eye|tri)"):
            jt.jit(f, autograph=False)(np.array(1))
