"""`explain` says why not: each decision that kept code from being better, with the line and a remedy."""

import os
import subprocess
import sys

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.journal import Refusal, Subject, listening, note, written


def why(function, *args, **options):
    return "\n".join(jt.jit(function, **options).explain(*args).reasons)


def line_of(function, text):
    """The line of a function's source that has this text."""
    import inspect

    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if text in line)


BIG = np.linspace(0.1, 1, 60_000)
TABLE = np.ones((300, 200))


def shifted(x):
    y = np.exp(x) * 2 + np.exp(-x)
    z = np.sort(y)
    return y[1:] * y[:-1], z


def whole(x):
    y = np.exp(x) + np.sqrt(x)
    return y / y.max()


def scanned(x):
    return np.cumsum(x, axis=1)


def scattered(x, at, values):
    np.add.at(x, at, values)
    return x


def sums(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j]
    return total


def recurrence(x):
    for i in range(1, x.shape[0]):
        x[i] = 0.5 * x[i] + x[i - 1] * x[i - 1]
    return x


def chained(x):
    total = 0.0
    for i in range(x.shape[0]):
        total = np.sin(total) + x[i]
    return total


CASES = {
    "read elsewhere": (shifted, (BIG,), "does not share loops", "return y[1:]", ["add"]),
    "needs all of it": (whole, (BIG,), "does not share loops", "return y", ["div", "max"]),
    "a scan": (scanned, (TABLE,), "works on one element at a time", "cumsum", ["first axis"]),
    "a scatter": (
        scattered,
        (np.zeros(50), np.arange(4000) % 50, np.ones(4000)),
        "works on one element at a time",
        "np.add.at",
        ["places that may meet"],
    ),
    "a sum in order": (sums, (TABLE,), "was not made a loop of vectors", "for j", ["fastmath"]),
    "one thread": (sums, (TABLE,), "runs on one thread", "for i", ["array of its own"]),
    "latency": (chained, (BIG,), "runs as scalar code", "for i", ["the one before"]),
    "recurrence": (recurrence, (BIG.copy(),), "the loop", "for i", []),
}


@pytest.mark.parametrize("case", CASES)
def test_what_was_not_done_is_told_with_the_line(case):
    function, args, words, line, more = CASES[case]
    told = why(function, *args)
    sentence = next((s for s in told.splitlines() if words in s), None)
    assert sentence is not None, told
    assert f"test_reasons.py:{line_of(function, line)}" in sentence, told
    assert all(word in told for word in more), told


def test_what_was_done_is_not_lamented():
    def softmax(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    assert why(softmax, np.ones((2000, 128))) == ""
    assert "loop of vectors" not in why(sums, TABLE, fastmath=True)


THREE = np.float64(3)
CASTS = {
    "a NumPy scalar": (lambda x: x * np.float64(0.5), np.float32, "the float64 scalar"),
    "an argument": (lambda x: x + THREE, np.float32, "float64 scalar"),
    "a Python float": (lambda x: x * 0.5, np.int32, "the Python float 0.5"),
}


@pytest.mark.parametrize("case", CASTS)
def test_casts_to_float64_for_a_scalars_sake(case):
    function, dtype, words = CASTS[case]
    told = why(function, np.ones(10, dtype))
    assert f"{np.dtype(dtype)} becomes float64 at test_reasons.py" in told and words in told


def test_casts_that_nobody_asked_for_only():
    for function in (
        lambda x: x * 0.5,
        lambda x: x * np.float32(2),
        lambda x: x.astype(float) * 2.0,
    ):
        assert "becomes float64" not in why(function, np.ones(10, np.float32))
    assert "becomes float64" not in why(lambda x: x * np.float64(2), np.ones(10))


def test_copies_say_how_often_they_happen():
    def f(x, n):
        for _ in range(n):
            y = x.copy()
            y[0] += 1
            x = x + y[::-1] * x.sum()
        return x

    (copy,) = [s for s in why(f, np.ones(5000), 7).splitlines() if "copies" in s and "times" in s]
    assert "7 times a call" in copy and "test_reasons.py" in copy


def test_memory_at_the_peak_has_lines():
    def f(x):
        a = np.sort(x)
        b = np.sort(-x)
        return np.cumsum(a * b[::-1]) + np.sort(a + b)

    explanation = jt.jit(f).explain(BIG)
    memory = explanation.memory
    alive = memory.at_peak
    assert memory.peak == memory.arena + memory.results
    assert 0 < sum(b.nbytes for b in alive) <= memory.arena + 64 * len(alive)
    assert all("test_reasons.py" in b.line for b in alive if b.nbytes >= BIG.nbytes)
    assert "alive at the peak" in explanation
    ends = [b.offset + b.nbytes for b in memory.buffers]
    assert max(ends) <= memory.arena < max(ends) + 64
    assert explanation.to_dict()["memory"]["peak"] == memory.peak


def test_fusion_tells_what_it_spares():
    explanation = jt.jit(lambda x: np.exp(x - x.max(1, keepdims=True))).explain(TABLE)
    assert explanation.memory.spared == 1 and "fusion spares 1 temporary" in explanation


def test_kernels_that_repeat_each_other_are_told_once():
    def f(x):
        for _ in range(6):
            x = np.cumsum(np.sort(x))
        return x

    explanation = jt.jit(f).explain(BIG)
    assert " times in a row" in explanation
    assert len(explanation.kernels) > explanation.count("cumsum")


def test_html_has_the_sentences_and_the_charts():
    page = jt.jit(whole).explain(BIG)._repr_html_()
    assert "<li>" in page and page.count("<svg") == 2 and "Roofline" in page
    assert "nan" not in page


def test_nothing_listens_unless_it_is_asked():
    assert not listening()
    with written(False) as journal:
        note("lanes", Subject("a", None), Refusal("b"))
    assert not journal and not listening()
    with written(True) as journal:
        note("lanes", Subject("a", None), Refusal("b"))
        note("lanes", Subject("a", None), Refusal("b"))
        with written(False):
            note("lanes", Subject("c", None), Refusal("d"))
    assert [r.subject for r in journal] == ["a"]


def triangular(a, out):
    for i in range(a.shape[0]):
        for j in range(i):
            out[i] += a[j] * 0.001
    return out


def test_threads():
    """Loops of unknown length are expected to be long; what is too little says how much would do."""
    a = np.ones(2000)
    assert "one thread" not in why(triangular, a, np.zeros(2000))
    assert "below about 20 us" in why(triangular, a[:40], np.zeros(40))

    def network(x):
        return np.tanh(x) @ x + 1.0

    assert "one thread" not in why(network, np.ones((300, 300), np.float32))


def test_who_has_one_thread_is_told():
    program = "import numpy as np, jitney as jt\nprint(jt.jit(np.sin).explain(np.ones(100_000)))"
    environment = {**os.environ, "JITNEY_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert "one thread: this process has no more" in done.stdout, done.stderr
