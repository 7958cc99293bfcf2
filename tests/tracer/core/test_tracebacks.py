"""Tracebacks: from the user's call to the user's line, without the frames in between and behind."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.tracer.core import tracing
from jitney.tracer.messages.tracebacks import shortened

X = np.ones(3)
ROWS = np.ones((2, 3))
M = np.ones((5, 5))


def wrong(x: Any) -> Any:
    y = x + 1
    return y @ M


def raising(x: Any) -> Any:
    raise LookupError("of the user's own")


def indexed(x: Any, i: Any) -> Any:
    return x[i]


class Model:
    @jt.jit
    def method(self, x: Any) -> Any:
        return wrong(x)

    def __call__(self, x: Any) -> Any:
        return wrong(x)


@jt.custom_vjp
def with_vjp(x: Any) -> Any:
    return (x * x).sum()


with_vjp.defvjp(lambda x: (with_vjp(x), x), lambda x, ct: (wrong(x),))


@jt.custom_jvp
def with_jvp(x: Any) -> Any:
    return (x * x).sum()


with_jvp.defjvp(lambda primals, tangents: (with_jvp(*primals), wrong(primals[0])))

# The functions of this file through which the error comes, behind the call itself.
CALLS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "jit": (lambda: jt.jit(wrong)(X), ["wrong"]),
    "jit, by keyword": (lambda: jt.jit(wrong)(x=X), ["wrong"]),
    "interpreter": (lambda: jt.jit(wrong, backend="interpreter")(X), ["wrong"]),
    "autograph": (lambda: jt.jit(wrong, autograph=True)(X), ["wrong"]),
    "jit in jit": (lambda: jt.jit(lambda x: jt.jit(wrong)(x))(X), ["<lambda>", "wrong"]),
    "user's error": (lambda: jt.jit(raising)(X), ["raising"]),
    "user's error in grad": (lambda: jt.grad(raising)(X), ["raising"]),
    "grad": (lambda: jt.grad(wrong)(X), ["wrong"]),
    "jit of grad": (lambda: jt.jit(jt.grad(wrong))(X), ["wrong"]),
    "vjp": (lambda: jt.vjp(wrong, X), ["wrong"]),
    "vjp_fn": (lambda: jt.vjp(np.sin, X)[1](3), []),
    "jvp": (lambda: jt.jvp(wrong, (X,), (X,)), ["wrong"]),
    "linearize": (lambda: jt.linearize(wrong, X), ["wrong"]),
    "f_lin": (lambda: jt.linearize(np.sin, X)[1](3), []),
    "linear_transpose": (lambda: jt.linear_transpose(wrong, X), ["wrong"]),
    "vmap": (lambda: jt.vmap(wrong)(ROWS), ["wrong"]),
    "jit of vmap": (lambda: jt.jit(jt.vmap(wrong))(ROWS), ["wrong"]),
    "vectorize": (lambda: jt.vectorize(wrong)(X), ["wrong"]),
    "jacfwd": (lambda: jt.jacfwd(wrong)(X), ["wrong"]),
    "jacrev": (lambda: jt.jacrev(wrong)(X), ["wrong"]),
    "hessian": (lambda: jt.hessian(wrong)(X), ["wrong"]),
    "hvp": (lambda: jt.hvp(wrong, (X,), (X,)), ["wrong"]),
    "checkpoint": (lambda: jt.grad(jt.checkpoint(wrong))(X), ["wrong"]),
    "custom_vjp": (lambda: jt.grad(with_vjp)(X), ["<lambda>", "wrong"]),
    "custom_vjp in jit": (lambda: jt.jit(jt.grad(with_vjp))(X), ["<lambda>", "wrong"]),
    "custom_jvp": (lambda: jt.jvp(with_jvp, (X,), (X,)), ["<lambda>", "wrong"]),
    "scan": (
        lambda: jt.jit(lambda x: jt.scan(lambda c, _: (wrong(c), c), x, X))(X),
        ["<lambda>", "<lambda>", "wrong"],
    ),
    "scan in Python": (
        lambda: jt.scan(lambda c, _: (wrong(c), c), X, X),
        ["<lambda>", "wrong"],
    ),
    "while_loop": (
        lambda: jt.jit(lambda x: jt.while_loop(lambda c: c[0] > 0, wrong, x))(X),
        ["<lambda>", "wrong"],
    ),
    "cond": (
        lambda: jt.jit(lambda x: jt.cond(x[0] > 0, wrong, wrong, x))(X),
        ["<lambda>", "wrong"],
    ),
    "switch": (lambda: jt.switch(0, [wrong], X), ["wrong"]),
    "case": (lambda: jt.case([(True, lambda: wrong(X))]), ["<lambda>", "wrong"]),
    "map_fn": (lambda: jt.map_fn(wrong, ROWS), ["wrong"]),
    "method": (lambda: Model().method(X), ["method", "wrong"]),
    "object": (lambda: jt.jit(Model())(X), ["__call__", "wrong"]),
    "trace": (lambda: jt.jit(wrong).trace(X), ["wrong"]),
    "lower": (lambda: jt.jit(wrong).lower(X), ["wrong"]),
    "explain": (lambda: jt.jit(wrong).explain(X), ["wrong"]),
    "at run time": (lambda: jt.jit(indexed)(X, 7), []),
    "at run time, interpreted": (lambda: jt.jit(indexed, backend="interpreter")(X, 7), []),
    "at run time, by name": (lambda: jt.jit(indexed)(x=X, i=7), []),
    "argument": (lambda: jt.jit(np.sin)("a"), []),
    "argument of grad": (lambda: jt.grad(np.sin)(3), []),
    "no function": (lambda: jt.grad(3), []),
    "no function to compile": (lambda: jt.jit(3), []),
    "attribute": (lambda: jt.jit(lambda x: x.nothing)(X), ["<lambda>"]),
    "conversion": (lambda: jt.jit(lambda x: np.asarray([x, 1.0]))(X), ["<lambda>"]),
    "random": (lambda: jt.random.normal("a"), []),
}


def frames(call: Callable[[], Any]) -> list[traceback.FrameSummary]:
    try:
        call()
    except Exception as error:
        _, _, *found = traceback.extract_tb(error.__traceback__)
        return list(found)
    raise AssertionError("it raised nothing")


@pytest.mark.parametrize("name", CALLS)
def test_errors_end_at_the_user(name: str) -> None:
    call, expected = CALLS[name]
    found = frames(call)
    assert [f.name for f in found] == expected
    assert all(f.filename == __file__ for f in found)
    if expected[-1:] == ["wrong"]:
        assert found[-1].line == "return y @ M"


def test_causes_end_at_the_user() -> None:
    def callback(x: Any) -> Any:
        return jt.pure_callback(np.sin, x, x)

    with pytest.raises(TypeError, match="cannot be differentiated") as caught:
        jt.jit(jt.grad(lambda x: callback(x).sum()))(X)
    shown = "".join(traceback.format_exception(caught.value))
    ours = shown.replace(__file__, "")
    assert "tracer" not in ours


def test_threads() -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(frames(lambda: jt.jit(wrong)(X))))
    thread.start()
    thread.join()
    assert [f.name for f in found] == ["wrong"]


def test_full_tracebacks() -> None:
    with jt.config(full_tracebacks=True):
        assert len(frames(lambda: jt.jit(wrong)(X))) > 5
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JITNEY_FULL_TRACEBACKS", "1")
        assert len(frames(lambda: jt.jit(wrong)(X))) > 5
    assert len(frames(lambda: jt.jit(wrong)(X))) == 1


def test_our_own_faults_keep_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tracing, "refuse_lazy")
    with pytest.raises(NameError, match="refuse_lazy") as caught:
        jt.jit(lambda x: np.sin(x))(X)
    names = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert "trace_function" in names


def test_good_calls_cost_nothing() -> None:
    def plain(x: int) -> int:
        return x

    guarded = shortened(plain)
    code = guarded.__code__  # type: ignore[attr-defined]
    assert code.co_exceptiontable  # a `try` without instructions on the way in
    if sys.gettrace() is None:
        start = time.perf_counter()
        for _ in range(10_000):
            guarded(1)
        assert time.perf_counter() - start < 0.1


def test_exceptions_of_callbacks_say_where_they_were_called() -> None:
    def fail(x: Any) -> Any:
        raise LookupError("nothing there")

    @jt.jit
    def f(x: Any) -> Any:
        with jt.name_scope("table"):
            return jt.pure_callback(fail, jt.ShapeDtype((), float), x) + 1

    line = f.__wrapped__.__code__.co_firstlineno + 3
    with pytest.raises(LookupError, match="nothing there") as caught:
        f(1.0)
    (note,) = caught.value.__notes__
    assert note.startswith("in ") and "fail, called at " in note
    assert f"{__file__}:{line}, in " in note and note.endswith("scope table")


def test_errors_of_compiled_code_show_the_line() -> None:
    @jt.jit
    def f(x: Any, i: Any) -> Any:
        return x[i] + 1

    with pytest.raises(IndexError, match="index 9 is out of bounds") as caught:
        f(np.ones(3), np.int64(9))
    assert caught.value.__notes__[0].splitlines()[-1] == "    return x[i] + 1"


def test_dev_mode_shows_all_frames() -> None:
    with jt.config(full_tracebacks=None):
        assert jt.config.full_tracebacks == sys.flags.dev_mode


def test_attributes_that_the_user_asks_for_are_no_faults_of_ours() -> None:
    class Unfinished:
        @jt.jit
        def step(self, x: Any) -> Any:
            return x * self.rate  # type: ignore[attr-defined]

    @jt.jit
    def marks(x: Any) -> Any:
        x.seen = True
        return x

    for call in (Unfinished().step, marks):
        with pytest.raises(AttributeError, match="has no attribute '(rate|seen)'") as caught:
            call(X)
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert all("/tests/" in frame.filename for frame in frames)
        assert frames[-1].name in ("step", "marks")


def test_results_that_do_not_fit_in_memory() -> None:
    outer = jt.jit(lambda x: np.outer(x, x))
    outer(X)
    for _ in range(2):  # the second call is a native one
        with pytest.raises(MemoryError, match="Unable to allocate the results or temporaries"):
            outer(np.ones(4_000_000))
