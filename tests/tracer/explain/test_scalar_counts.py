"""`f.explain(x)`: iterations of loops in scalar code are those that Python would make."""

import numpy as np

import jitney as jt


def bodies(steps):
    """What each loop, and each branch that was taken or not, has of runs, in order."""
    found = []
    for step in steps:
        found += [(block.text, block.runs) for block in step.blocks if block.text != "test"]
        for block in step.blocks:
            found += bodies(block.steps)
    return found


def counts(function, *args):
    """Runs of the blocks inside of the one kernel with loops, and that kernel."""
    steps = jt.jit(function, autograph=True).explain(*args).steps
    (step,) = (s for s in steps if s.kernel is not None and s.blocks)
    return bodies(step.blocks[0].steps), step


def test_loops_and_branches_in_loops_are_counted_exactly():
    def f(a, out):
        halved = large = 0
        for i in range(a.shape[0]):
            k = a[i]
            while k > 1.0:
                halved += 1
                k = k * 0.5
            for j in range(i):
                if a[j] > k * 300:
                    large += 1
                    out[j] += k
        return out, halved, large

    a = np.random.default_rng(0).uniform(0, 1000, 150)
    _, halved, _ = f(a, np.zeros_like(a))
    inner = 150 * 149 // 2
    found, step = counts(f, a, np.zeros_like(a))
    assert found == [("", 150), ("", halved), ("", inner)]  # the branch chooses what is added
    assert step.kernel.flops > halved + inner
    shown = jt.jit(f, autograph=True).explain(a, np.zeros_like(a))
    assert f"while: {inner:,} iterations, entered 150 times" in shown


def test_loops_that_end_early():
    def f(a, least):
        n = 0
        for i in range(a.shape[0]):
            n += 1
            if a[i] > least:
                break
        return n

    found, _ = counts(f, np.arange(5000.0), 1234.0)
    assert ("", 1235) in found  # of the 1,236 iterations, the first stands before the loop


def test_trips_of_the_threads_add_up():
    def f(a, out):
        for i in jt.prange(a.shape[0]):
            k = a[i]
            n = 0
            while k > 1.0 and n < 200:
                k = np.sin(k) + k * 0.999
                n += 1
            out[i] = n
        return out

    a = np.random.default_rng(1).uniform(1, 50, 3000)
    found, step = counts(f, a, np.zeros_like(a))
    assert ("", int(jt.jit(f, autograph=True)(a, np.zeros_like(a)).sum())) in found
    assert step.runs == 1


def test_scalar_code_in_a_loop_of_kernels():
    def f(x, n):
        total = 0
        for _ in range(n):
            x = x @ x
            k = x[0, 0]
            while k > 1.0:
                k = k * 0.5
                total += 1
            x = x / np.abs(x).max()
        return total, x

    explanation = jt.jit(f, autograph=True).explain(np.full((40, 40), 1000.0), 3)
    total, _ = jt.jit(f, autograph=True)(np.full((40, 40), 1000.0), 3)
    assert ("", int(total)) in bodies(explanation.steps)


def test_code_that_runs_has_no_counters():
    def f(a):
        n = 0
        while a > 1.0:
            a = a * 0.5
            n += 1
        return n

    lowered = jt.jit(f, autograph=True).lower(100.0)
    assert "iterations" in lowered.explain()
    assert lowered.executable.module.arena_bytes == 0
