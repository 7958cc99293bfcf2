"""`f.explain(x)`: kernels in order, loops and branches with their counts, times that add up."""

import ast

import numpy as np
import pytest

import jitney as jt
from jitney.tracer.explain.explanation import Explanation


def names(explanation: Explanation) -> list[str]:
    return [kernel.name for kernel in explanation.kernels]


def trips(steps, text="while"):
    """Iterations of the loops, in order."""
    found = []
    for step in steps:
        if step.text == text or step.text.startswith(text):
            found += [block.runs for block in step.blocks if not block.text]
        for block in step.blocks:
            found += trips(block.steps, text)
    return found


def product_loop(x, n):
    total = x
    for _ in range(n):
        total = total @ x
        total = total / np.abs(total).max()
    return total.sum()


def test_kernels_stand_in_the_order_in_which_they_run():
    def f(x, y):
        a = np.sort(x)
        b = y @ y
        return np.cumsum(a), np.exp(b).sum(axis=0)

    explanation = jt.jit(f).explain(np.arange(100.0), np.eye(64))
    ops = [kernel.ops for kernel in explanation.kernels]
    order = [next(i for i, each in enumerate(ops) if op in each) for op in ("sort", "cumsum")]
    assert order == sorted(order)
    dots = next(i for i, each in enumerate(ops) if "dot" in each)
    assert dots < next(i for i, each in enumerate(ops) if "exp" in each)
    assert [k.name for k in jt.jit(f).lower(np.arange(100.0), np.eye(64)).kernels] == names(
        explanation
    )


@pytest.mark.parametrize("n", [0, 1, 17])
def test_iterations_of_a_loop_are_those_of_the_call(n):
    explanation = jt.jit(product_loop).explain(np.eye(40) * 0.5, n)
    assert trips(explanation.steps) == [n]
    assert f"while: {n} iterations" in explanation
    dot = next(kernel for kernel in explanation.kernels if "dot" in kernel.ops)
    assert dot.runs == n


def test_iterations_of_nested_loops_are_counted_over_all():
    def f(x, n):
        for i in range(n):
            for _ in range(i):
                x = x @ x
            x = x / np.abs(x).max()
        return x

    explanation = jt.jit(f).explain(np.eye(40), 6)
    assert trips(explanation.steps) == [6, 15]
    assert "15 iterations, entered 6 times" in explanation


def test_a_scan_says_its_length():
    def f(x):
        return jt.scan(lambda c, a: (c @ a, c.sum()), np.eye(24), x)

    explanation = jt.jit(f).explain(np.stack([np.eye(24)] * 12))
    assert "for 12 iterations" in explanation
    assert trips(explanation.steps, "for 12") == [12]


def test_branches_say_how_often_they_were_taken():
    def f(x, n):
        for i in range(n):
            x = x @ x if i % 3 == 0 else np.sort(x, axis=0)
        return x

    explanation = jt.jit(f).explain(np.eye(30), 10)
    assert "4 of 10 times" in explanation
    assert "6 of 10 times" in explanation


def sorted_or_summed(x):
    y = np.sort(x) if x.sum() > 0 else np.cumsum(x)
    return y * 2


def by_elements(x):
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0.5:
            total += np.sqrt(x[i])
    return total


def counted(x):
    counts = np.zeros(50)
    np.add.at(counts, (x * 50).astype(np.int64), 1.0)
    return counts


V = np.random.default_rng(0).random(50_000)
M = V[:40_000].reshape(200, 200)
PROGRAMS = {
    "softmax": (lambda x: np.exp(x - x.max(1, keepdims=True)) / x.sum(1, keepdims=True), M),
    "a layer": (lambda x: np.tanh(x @ x).sum(), M),
    "gradient of a layer": (jt.grad(lambda x: np.tanh(x @ x).sum()), M),
    "a loop": (lambda x: jt.fori_loop(0, 9, lambda i, c: np.tanh(c) * c.mean(), x), M),
    "a scan": (
        lambda x: jt.scan(lambda c, a: (c @ np.tanh(a), c.sum()), np.eye(20), x),
        V[:8000].reshape(20, 20, 20),
    ),
    "a branch": (sorted_or_summed, V),
    "elements": (by_elements, V),
    "counts": (counted, V),
    "an order": (lambda x: np.sort(x)[::-1].cumsum(), V),
    "equations": (lambda x: np.linalg.solve(x @ x.T + np.eye(200), x), M),
    "a transform": (lambda x: np.abs(np.fft.fft(x)), V),
    "medians": (lambda x: np.median(x, axis=1), M),
    "a convolution": (lambda x: np.convolve(x, np.ones(32)), V),
    "transposed": (lambda x: x.T * 2 + x, M),
    "indices": (lambda x: x[np.argsort(x)] - x.mean(), V),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_times_of_fifteen_programs_add_up_to_the_whole(name):
    """Within a tenth: all are of one call, so no other work that the machine has shows."""
    function, argument = PROGRAMS[name]
    explanation = jt.jit(function).explain(argument)
    total = sum(step.seconds for step in explanation.steps)
    assert total == pytest.approx(explanation.seconds, rel=0.1)


def test_times_of_the_steps_add_up_to_that_of_the_call():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 300))
    explanation = jt.jit(product_loop).explain(x, 10)
    assert explanation.seconds > 0
    total = sum(step.seconds for step in explanation.steps)
    assert total <= explanation.seconds
    shares = sum(step.share for step in explanation.steps)
    assert shares == pytest.approx(total / explanation.seconds)
    assert all(step.seconds > 0 and step.runs == 1 for step in explanation.steps)


def test_a_call_is_not_changed_by_being_explained():
    class Counter:
        def __init__(self):
            self.total = np.zeros(3)

        def add(self, x):
            self.total += x
            x[0] = 7.0
            return self.total.sum()

    counter, x = Counter(), np.ones(3)
    text = jt.jit(counter.add).explain(x)
    assert "us" in text or "ns" in text
    assert counter.total.tolist() == [0, 0, 0] and x.tolist() == [1, 1, 1]


def test_arrays_that_overlap_themselves_and_others_that_are_updated():
    def f(x, y):
        y += x.sum(axis=0)
        return y

    x, y = np.broadcast_to(np.arange(4.0), (5, 4)), np.zeros(8)[::2]
    assert jt.jit(f).explain(x, y).seconds > 0
    assert jt.jit(f, donate_argnums=1).explain(x, y.copy()).seconds > 0


def test_what_does_more_than_compute_is_not_run():
    def f(x):
        jt.debug_print("{}", x.sum())
        return x + 1

    def g(x, rng):
        return x + rng.standard_normal(3)

    printed = jt.jit(f).explain(np.ones(3))
    assert printed.seconds is None and "a call in compiled code" not in printed
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    jt.jit(g).explain(np.ones(3), rng)
    assert rng.bit_generator.state == before


def test_shapes_are_explained_without_times():
    explanation = jt.jit(product_loop).explain(jt.ShapeDtype((8, 8), np.float64), 4)
    assert explanation.seconds is None
    assert all(kernel.seconds is None for kernel in explanation.kernels)
    assert "while at" in explanation and "dot" in explanation


def test_a_call_that_fails_says_so():
    def f(x, i):
        return x[i]

    with pytest.raises(IndexError):
        jt.jit(f).explain(np.ones(3), np.int64(5))


def test_it_shows_itself():
    explanation = jt.jit(product_loop).explain(np.eye(20), 3)
    assert repr(explanation) == str(explanation)
    assert isinstance(explanation, str)
    html = explanation._repr_html_()
    assert "<table>" in html and "while: 3 iterations" in html and "<code>" in html
    lowered = jt.jit(product_loop).lower(np.eye(20), 3)
    assert "0x" not in repr(lowered) and "product_loop" in repr(lowered)
    assert "<table>" in lowered._repr_html_()


def test_it_is_data():
    data = jt.jit(product_loop).explain(np.eye(20), 3).to_dict()
    assert ast.literal_eval(repr(data)) == data
    assert {kernel["name"] for kernel in data["kernels"]} >= {
        step["kernel"] for step in data["steps"] if step["kernel"]
    }


def test_on_a_gpu_kernels_are_in_the_order_of_launches(gpu):
    explanation = jt.jit(lambda x: np.exp(x @ x).sum(), device="cuda").explain(np.eye(16))
    assert explanation.seconds is None and len(explanation.kernels) > 0
    assert "on cuda" in explanation


def test_functions_and_reads_by_index_have_a_limit_of_their_own():
    def f(x, i):
        return np.tanh(x) * np.exp(-x) / np.sqrt(x), x @ x, x.ravel()[i]

    i = np.random.default_rng(0).integers(0, 4096, 100_000)
    kernels = jt.jit(f).explain(np.full((64, 64), 0.5), i).kernels
    chain = next(k for k in kernels if "tanh" in k.ops)
    assert chain.limit[0] == "elementwise operations" and 0 < chain.of_operations <= 1
    assert next(k for k in kernels if "gather" in k.ops).of_operations > 0
    assert next(k for k in kernels if "dot" in k.ops).of_operations is None
    assert "of this machine's elementwise operations" in str(
        jt.jit(f).explain(np.ones((64, 64)), i)
    )
