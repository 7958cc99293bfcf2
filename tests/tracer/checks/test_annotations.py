"""Annotations of shapes and dtypes are checked while tracing; arrays of different ranks on request."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitney as jt


class ArrayType:
    """What jaxtyping's annotations have."""

    def __init__(self, dtypes: Any, dim_str: str) -> None:
        self.dtypes, self.dim_str = dtypes, dim_str
        self.__name__ = f"Array[{dim_str!r}]"

    def __call__(self) -> None: ...


FLOATS = ("float16", "float32", "float64", "bfloat16")


def array(dims: str, dtypes: Any = FLOATS) -> Any:
    return ArrayType(dtypes, dims)


def annotated(f: Any, result: Any = None, **arguments: Any) -> Any:
    f.__annotations__ = {**arguments, **({} if result is None else {"return": result})}
    return jt.jit(f)


A, B = np.ones((2, 3)), np.ones((3, 4))


def test_what_fits() -> None:
    f = annotated(lambda x, w: x @ w, array("n k"), x=array("n m"), w=array("m k"))
    np.testing.assert_array_equal(f(A, B), A @ B)
    for dims, x in [
        ("...", A), ("*b m", A), ("_ _", A), ("#n 3", np.ones((1, 3))), ("2 3", A), ("n n+1", A),
        ("", 1.0), ("rows=2 cols=3", A), ("*b", np.float64(1)),
    ]:  # fmt: skip
        annotated(lambda x: x, x=array(dims))(x)
    annotated(lambda x: (x, x.T), tuple[array("a b"), array("b a")], x=array("a b"))(A)  # type: ignore[misc]
    annotated(lambda x: x, x=array("n", object()))(np.arange(3))  # any dtype
    annotated(lambda x: x, x=int)(3)


WRONG: list[Any] = [
    (
        {"x": array("n n")},
        None,
        "argument x of <lambda> has shape [2, 3], its annotation is Array['n n'], where n is 2",
    ),
    (
        {"x": array("n")},
        None,
        "argument x of <lambda> has shape [2, 3], its annotation is Array['n']",
    ),
    (
        {"x": array("n n*2")},
        None,
        "has shape [2, 3], its annotation is Array['n n*2'], where n is 2",
    ),
    ({"x": array("... a b c")}, None, "has shape [2, 3]"),
    ({"x": array("#n 4")}, None, "has shape [2, 3]"),
    ({"x": array("a b", ("int32",))}, None, "argument x of <lambda> has dtype float64"),
    ({"x": array("a b")}, array("b a"), "the result of <lambda> has shape [2, 3]"),
    ({"x": array("*s")}, array("*s 1"), "the result of <lambda> has shape [2, 3]"),
]


@pytest.mark.parametrize(("arguments", "result", "says"), WRONG)
def test_what_does_not(arguments: Any, result: Any, says: str) -> None:
    f = annotated(lambda x: x * 2, result, **arguments)
    with pytest.raises(jt.errors.FailedAssertion) as caught:
        f(A)
    assert says in str(caught.value)


def test_names_are_one_size_in_a_call() -> None:
    f = annotated(lambda x, y: x + y, x=array("n"), y=array("n"))
    f(np.ones(3), np.ones(3))
    f(np.ones(4), np.ones(4))
    with pytest.raises(
        jt.errors.FailedAssertion, match="argument y of <lambda> has shape .*n is 4"
    ):
        f(np.ones(4), np.ones(1))


def test_jaxtyping_itself() -> None:
    jaxtyping = pytest.importorskip("jaxtyping")
    f = annotated(
        lambda x: x.sum(axis=0),
        jaxtyping.Float[np.ndarray, "m"],
        x=jaxtyping.Float[np.ndarray, "n m"],
    )
    assert f(A).shape == (3,)
    with pytest.raises(jt.errors.FailedAssertion, match="has dtype int64, its annotation is Float"):
        f(np.ones((2, 3), int))
    g = annotated(lambda x: x, x=jaxtyping.Shaped[np.ndarray, "n"])
    g(np.arange(3))
    with pytest.raises(jt.errors.FailedAssertion, match="has shape"):
        g(A)


def test_explicit_ranks() -> None:
    f = jt.jit(lambda x, y: x + y)
    f(A, np.ones(3))
    with jt.config(rank_promotion="raise"):
        with pytest.raises(jt.errors.ShapeError, match=r"shapes \(2,3\) and \(3,\) have differ"):
            f(A, np.ones(3))
        f(A, 1.0)
        f(A, np.float32(2))
        f(A, np.ones((1, 3)))
        jt.jit(lambda x: x - x.mean(axis=0, keepdims=True) + x[0][None, :] * 2)(A)
        jt.jit(lambda x: np.cov(x) + np.linalg.norm(x) + np.var(x, axis=0).sum())(A)
        jt.jit(jt.vmap(lambda r: r * 2 + r.sum()))(A)
        jt.jit(jt.grad(lambda x: (x * x.sum()).sum()))(A)
        with pytest.raises(jt.errors.ShapeError, match="different ranks"):
            jt.jit(lambda x: np.maximum(x[0], x))(A)
    f(A, np.ones(3))
    with pytest.raises(jt.errors.ShapeError, match="different ranks"):
        jt.jit(lambda x: x * x[0], check="ranks")(A)
    with pytest.raises(ValueError, match="rank_promotion is 'allow' or 'raise'"):
        jt.config.rank_promotion = "warn"
