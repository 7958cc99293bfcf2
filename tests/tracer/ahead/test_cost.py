"""`jt.cost`: bytes are those that a count of accesses gives, memory what a call allocates."""

import itertools

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.loop_ir.kernel import Kernel
from jitney.codegen.program import compile as programs
from jitney.codegen.schedule.traffic import bytes_moved
from jitney.runtime import machine_limits
from jitney.runtime.machine_limits import MachineLimits
from jitney.tracer.ahead.cost import _spent as spent_of
from jitney.tracer.ahead.formulas import Formula, count, simple, total
from jitney.tracer.ahead.shapes import bare
from jitney.tracer.data.pytree import tree_map
from jitney.tracer.jit.decorator import unbound
from jitney.tracer.jit.specialise import outlined

S = jt.ShapeDtype


def three_point(x):
    return x[:-2] + x[2:] - 2 * x[1:-1]


def five_point(u):
    inner = u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1]
    return inner - 4 * u[1:-1, 1:-1]


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def updated(x):
    x[1:-1] += x[2:]
    return x


KERNELS = {
    "elementwise": (lambda x, y: np.tanh(x) * y + 1, (S(60), S(60))),
    "part": (lambda x: x[:7] + x[-7:], (S(100),)),
    "steps": (lambda x: x[::3] * 2, (S(99),)),
    "three points": (three_point, (S(50),)),
    "five points": (five_point, (S((14, 16)),)),
    "softmax": (softmax, (S((12, 20), np.float32),)),
    "transposed": (lambda x: x.T + x, (S((9, 9)),)),
    "broadcast": (lambda x, y: x[:, None] * y[None, :], (S(11), S(13))),
    "reduction": (lambda x: (x * x).sum(axis=0), (S((30, 8)),)),
    "gather": (lambda x, i: x[i], (S(40), S(6, np.int64))),
    "concatenation": (lambda x, y: np.concatenate([x, y * 2]), (S(5), S(9))),
    "assignment": (updated, (S(64),)),
    "running sum": (lambda x: np.cumsum(x, axis=1) * 2, (S((6, 10)),)),
}


def counted(kernel: Kernel) -> tuple[int, int]:
    """Bytes that a kernel moves, by walking its loops and noting each element that it touches."""
    made, reads, writes = set(), {}, {}
    for stage in kernel.stages:
        for point in itertools.product(*map(range, stage.extents)):
            at = dict(zip(stage.dims, point, strict=True))
            for access in stage.reads:
                if access.array not in made:
                    reads.setdefault(access.array, set()).add(place(access.flat, at))
            writes.setdefault(stage.array, set()).add(place(stage.write.flat, at))
        if stage.whole:
            made.add(stage.array)
    sizes = ({a: len(p) * a.dtype.itemsize for a, p in d.items()} for d in (reads, writes))
    read, written = sizes
    return sum(read.values()), sum(n for a, n in written.items() if a not in kernel.local)


def place(index, at):
    """An element's number at a point; of one that is read from memory, as if each were another."""
    value = index.const
    for atom, factor in index.terms.items():
        if atom in at:
            value += factor * at[atom]
        elif hasattr(atom, "expr"):
            value += factor * (hash(tuple(sorted(at[v] for v in atom.vars))) % 1000)
        else:
            inner = place(atom.index, at)
            value += factor * (inner % atom.n if type(atom).__name__ == "Mod" else inner // atom.n)
    return value


@pytest.mark.parametrize("name", KERNELS)
def test_bytes_are_within_a_tenth_of_those_that_are_counted(name, monkeypatch):
    function, specs = KERNELS[name]
    kernels = []
    whole = programs.lowered

    def noting(*args):
        low = whole(*args)
        kernels.extend(s for s in programs.steps_within(low.program) if isinstance(s, Kernel))
        return low

    monkeypatch.setattr(programs, "lowered", noting)
    jt.cost(function, *specs)
    assert kernels
    for kernel in kernels:
        assert bytes_moved(kernel) == pytest.approx(counted(kernel), rel=0.1)


MEMORY = {
    "softmax": (softmax, (np.ones((300, 200)),)),
    "products": (lambda a: np.tanh(a @ a) @ a, (np.ones((96, 96)),)),
    "sorted": (lambda x: np.cumsum(np.sort(x))[::-1] * 2, (np.arange(5000.0),)),
    "gradient": (jt.grad(lambda w: np.tanh(w @ w).sum()), (np.ones((64, 64)),)),
    "loop": (lambda x: jt.fori_loop(0, 5, lambda i, c: np.tanh(c @ x), x), (np.eye(48),)),
    "in place": (updated, (np.ones(1000),)),
}


@pytest.mark.parametrize("name", MEMORY)
def test_peak_memory_is_what_a_call_allocates(name):
    function, arguments = MEMORY[name]
    predicted = jt.cost(function, *(S.like(a) for a in arguments)).peak_memory
    module = jt.jit(function).lower(*arguments).executable.module
    assert predicted == module.arena_bytes + sum(t.nbytes for t in module.outputs)


def product_loop(x, n):
    for _ in range(n):
        x = x @ x
        x = x / np.abs(x).max()
    return x


def test_a_loop_that_nobody_can_count_makes_formulas():
    cost = jt.cost(product_loop, S((40, 40)), 3)
    assert list(cost.loops) == ["n1"] and "test_cost.py" in cost.loops["n1"]
    one, ten = cost(n1=1), cost(n1=10)
    assert not one.loops and isinstance(one.flops, (int, float))
    assert cost(n1=10).flops - cost(n1=9).flops >= 2 * 40**3
    assert ten.flops - one.flops == pytest.approx(9 * (cost(n1=2).flops - one.flops))
    assert "·n1" in str(cost) and cost.peak_memory == one.peak_memory
    with pytest.raises(TypeError, match="n1"):
        cost(n2=4)


def test_loops_in_loops_multiply():
    def f(x, n):
        for i in range(n):
            for _ in range(i):
                x = x @ x
        return x

    cost = jt.cost(f, S((40, 40)), 3)
    assert len(cost.loops) == 2
    assert cost(n1=3, n2=5).flops == pytest.approx(15 * 2 * 40**3, rel=0.2)


def test_scalar_loops_are_counted_trip_by_trip():
    def steps(n):
        k = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            k += 1
        return k

    cost = jt.cost(steps, 27)
    assert isinstance(cost.flops, Formula)
    assert cost(n1=111).flops > 10 * cost(n1=10).flops * 0.9


def test_a_scan_is_counted_exactly():
    def f(x, steps):
        return jt.scan(lambda c, a: (c @ a, c.sum()), x, steps)

    short, long = (jt.cost(f, S((32, 32)), S((n, 32, 32))) for n in (10, 20))
    assert long.flops - short.flops == pytest.approx(10 * 2 * 32**3, rel=0.1)


def test_the_dearer_branch_counts():
    def f(x, flag):
        return jt.cond(flag > 0, lambda: x @ x @ x, lambda: x + 1)

    assert jt.cost(f, S((64, 64)), 1).flops >= 2 * 2 * 64**3


def test_formulas_add_and_multiply():
    n, m = count("n1"), count("n2")
    formula = total([3, 2 * n, n * (m + 4)])
    assert formula.at(n1=2, n2=5) == 3 + 4 + 18
    assert formula.at(n1=2) == 15 + 2 * m and repr(formula) == "3 + 6·n1 + 1·n1·n2"
    assert simple(n + -1 * n) == 0 and formula.names == ("n1", "n2")


LIMITS = MachineLimits(
    bandwidths=((1 << 10, 4e10), (1 << 30, 1e10)),
    flops=((4, 1e11), (8, 5e10)),
    operations=((4, 4e10), (8, 2e10)),
    accesses=((1 << 12, 1e9), (1 << 26, 1e7)),
    sorting=4e9,
    scalars=3e9,
)


def seconds(function, *args):
    """Predicted for a machine of these limits, of one thread or several."""
    compiled, args = unbound(function, tree_map(bare, args))
    module = compiled._looked_at(outlined, args, {})
    return spent_of(module, LIMITS, LIMITS)[0].seconds


def test_nothing_is_measured_before_seconds_are_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(machine_limits, "machine_limits", lambda **how: asked.append(how) or LIMITS)
    cost = jt.cost(lambda x: (x * x).sum(), S(1000))
    assert (cost.flops, cost.bytes_read) == (2000, 8000) and not asked
    assert cost.seconds > 0 and len(asked) == 2


def test_what_takes_long_is_predicted_to_take_long():
    x, n = S((1 << 20,), np.float32), 1 << 20
    plain = seconds(lambda x: x + 1, x)
    assert plain == pytest.approx(8 * n / LIMITS.bandwidth(8 * n), rel=0.5)
    assert seconds(lambda x: 1 / (1 / (1 / x + 1) + 1), x) > 1.5 * plain  # divisions
    assert seconds(np.sort, x) == pytest.approx(16 * n / 4e9, rel=0.5)
    a = S((512, 512), np.float32)
    assert seconds(lambda a: a @ a, a) == pytest.approx(2 * 512**3 / 1e11, rel=0.2)
    indices = S((n,), np.int32)
    few = seconds(lambda t, i: t[i], S((1024,), np.float32), indices)
    many = seconds(lambda t, i: t[i], S((1 << 24,), np.float32), indices)
    assert many > 10 * few > 5 * plain
    assert seconds(lambda a: np.linalg.eigvalsh(a), S((256, 256))) > 1e-3


def test_a_call_takes_time_by_itself():
    one = seconds(lambda x: x + 1, S((4,)))
    many = seconds(lambda *xs: [x + 1 for x in xs], *[S((4,))] * 10)
    assert 2e-7 < one < 2e-6 and many > 3 * one


def test_loops_that_each_element_has_for_itself_are_formulas():
    def f(x):
        return jt.vmap(lambda a: jt.while_loop(lambda a: a > 1.0, lambda a: a * 0.5, a))(x)

    cost = jt.cost(f, S((100_000,)))
    assert list(cost.loops) == ["n1"]
    assert cost(n1=100).seconds > 5 * cost(n1=1).seconds
    assert cost(n1=3).flops - cost(n1=2).flops >= 100_000
