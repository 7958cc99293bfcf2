"""Draws by native code against the generators themselves: every law, source and shape, to the bit, and
where the generator is afterwards."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.kernels.draws.laws import OF_CLASS, law_of
from jitney.codegen.kernels.draws.sources import SOURCES
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.ops.control.draws import HANDLE
from jitney.ir.types import BOOL, F32, F64, I64
from jitney.runtime.compile import compile
from jitney.tracer.data.generators import handle_of, kind_of

MAKERS: dict[str, Any] = {
    "PCG64": lambda: np.random.default_rng(1),
    "MT19937": lambda: np.random.Generator(np.random.MT19937(1)),
    "SFC64": lambda: np.random.Generator(np.random.SFC64(1)),
    "Philox": lambda: np.random.Generator(np.random.Philox(1)),
    "RandomState": lambda: np.random.RandomState(1),
    "RandomState of PCG64": lambda: np.random.RandomState(np.random.PCG64(1)),
    "Random": lambda: random.Random(1),
}
GENERATORS = ("PCG64", "MT19937", "SFC64", "Philox")
LEGACY = ("RandomState", "RandomState of PCG64")
SHAPES = ((), (3,), (1001,), (20, 30), (0,))
PARAMETERS: dict[str, list[tuple[float, ...]]] = {
    "poisson": [(3.5,), (30.0,)],
    "geometric": [(0.2,), (0.6,)],
    "beta": [(0.5, 0.7), (3.0, 2.0)],
    "standard_gamma": [(2.5,), (0.5,)],
    "gamma": [(2.5, 2.0)],
    "standard_cauchy": [()],
    "standard_exponential": [()],
    "standard_normal": [()],
    "random": [()],
    "triangular": [(0.0, 1.0, 3.0)],
    "logseries": [(0.5,)],
    "negative_binomial": [(5.0, 0.3)],
    "zipf": [(2.5,)],
    **{n: [(3.0,)] for n in ("chisquare", "standard_t", "pareto", "weibull", "power", "rayleigh")},
    **{
        n: [(1.0, 2.0)]
        for n in ("f", "vonmises", "lognormal", "wald", "laplace", "gumbel", "logistic")
    },
    "noncentral_chisquare": [(3.0, 4.0)],
    "noncentral_f": [(3.0, 4.0, 1.0)],
}
COUNTS = ("poisson", "geometric", "logseries", "negative_binomial", "zipf")


def state(generator: Any) -> Any:
    """All that a generator is, to be compared: printing its arrays takes longer than drawing."""

    def plain(x: Any) -> Any:
        if isinstance(x, dict):
            return {name: plain(value) for name, value in x.items()}
        return x.tolist() if isinstance(x, np.ndarray) else x

    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return plain(generator.bit_generator.state)
    return plain(generator.get_state(legacy=False))


Draw = tuple[Any, ...]  # the law, the shape, the dtype, and the law's parameters


def check(maker: str, *draws: Draw, n: int = 3) -> None:
    """n of each, one after the other, with what comes between two of them left in the generator."""
    asked, drawn = MAKERS[maker](), MAKERS[maker]()
    kind = kind_of(asked)
    assert kind is not None
    graph = Graph("draws")
    b = Builder(graph)
    handle = graph.add_param(HANDLE)
    token = b.op("create_token")
    for law, shape, dtype, *params in draws:
        for _ in range(n):
            values = [b.const(np.asarray(p)) for p in params]
            x, token = b.op(
                "draw", handle, *values, token,
                law=law, source=kind.source, shape=shape, dtype=np.dtype(dtype), options=(),
            )  # fmt: skip
            graph.outputs.append(x)
    want = evaluate(graph, [handle_of(asked)])
    got = compile(graph)(handle_of(drawn))
    for k, (a, b_) in enumerate(zip(want, got, strict=True)):
        assert a.tobytes() == b_.tobytes(), draws[k // n]
    assert state(asked) == state(drawn), draws


def test_states_are_known() -> None:
    """Otherwise everything is asked of the generators, and the rest here says little."""
    sources = {kind_of(make()).source for make in MAKERS.values()}  # type: ignore[union-attr]
    assert sources == set(SOURCES)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("maker", GENERATORS)
def test_floats_of_generators(maker: str, shape: tuple[int, ...]) -> None:
    laws = ("random", "standard_normal", "standard_exponential")
    draws: list[Draw] = [(law, shape, dtype) for law in laws for dtype in (F64, F32)]
    check(maker, *draws, ("standard_gamma", shape, F32, np.float32(2.5)))


@pytest.mark.parametrize("law", sorted(PARAMETERS))
@pytest.mark.parametrize("maker", [*GENERATORS, *LEGACY])
def test_laws(maker: str, law: str) -> None:
    dtype = I64 if law in COUNTS else F64
    check(maker, *[(law, s, dtype, *params) for params in PARAMETERS[law] for s in ((), (37,))])


@pytest.mark.parametrize("maker", [*GENERATORS, *LEGACY])
def test_integers(maker: str) -> None:
    bounds = ((0, 5), (0, 0), (1, 77), (0, 127))
    for shape in SHAPES:
        draws: list[Draw] = [("integers", shape, BOOL, np.int64(0), np.int64(1))]
        for k, name in enumerate(("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")):
            for low, high in bounds if shape == (1001,) else (bounds[k % 4],):
                draws.append(("integers", shape, name, np.int64(low), np.int64(high)))
        check(maker, *draws)


@pytest.mark.parametrize("maker", [*GENERATORS, *LEGACY])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        *((-(2**62), 2**62), (-(2**63), 2**63 - 1), (0, 2**32 - 1), (0, 2**32 - 2)),
        *((0, 2**32), (0, 3 * 2**30), (-5, -5), (-(2**31), 2**31)),
    ],
)
def test_wide_integers(maker: str, low: int, high: int) -> None:
    """Spans where a word of 32 bits is just enough, or not, and where many words are refused."""
    draws = [("integers", shape, I64, np.int64(low), np.int64(high)) for shape in ((), (50,))]
    check(maker, *draws, n=20)


def test_refused_words() -> None:
    """A span of which each second word is refused, often."""
    for maker in ("PCG64", "RandomState"):
        check(maker, ("integers", (), I64, np.int64(0), np.int64(2**31)), n=300)


@pytest.mark.parametrize("maker", [*GENERATORS, *LEGACY])
def test_counts_with_whole_parameters(maker: str) -> None:
    pairs = ((10, 0.3), (1000, 0.7), (0, 0.5), (5, 0.0), (5, 1.0), (100, 0.31), (1, 0.5))
    draws: list[Draw] = [("binomial", (7,), I64, np.int64(n), p) for n, p in pairs]
    check(maker, *draws, ("hypergeometric", (7,), I64, np.int64(10), np.int64(20), np.int64(7)))


@pytest.mark.parametrize("maker", list(MAKERS))
@pytest.mark.parametrize("n", [1, 2, 50, 700])
def test_permutations(maker: str, n: int) -> None:
    check(maker, ("permutation", (n,), I64))


def test_twister_of_python() -> None:
    check("Random", ("random", (), F64), n=700)
    spans = (1, 2, 3, 7, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**40 + 7, 2**62)
    draws: list[Draw] = [("below", (), I64, np.int64(span)) for span in spans]
    draws += [("bits", (), I64, np.int64(k)) for k in (1, 7, 31, 32)]
    draws += [(f"python.{law}", (), F64, 0.0, 1.0) for law in ("gauss", "normalvariate")]
    check("Random", *draws, ("python.expovariate", (), F64, 1.0), n=20)
    check("Random", ("sample", (5,), I64, np.int64(50)))


def test_long_streams() -> None:
    """Far enough for every rare branch of the methods that have instructions of their own."""
    for maker, law in (
        *(("PCG64", "random"), ("PCG64", "standard_normal"), ("PCG64", "standard_exponential")),
        *(("RandomState", "random"), ("RandomState", "standard_normal")),
    ):
        check(maker, (law, (1_000_000,), F64), n=1)
    check("PCG64", ("integers", (1_000_000,), I64, np.int64(0), np.int64(999)), n=1)


@pytest.mark.parametrize("maker", ["PCG64", "SFC64", "RandomState"])
def test_checked_code(maker: str) -> None:
    """What code is given to NumPy's functions, and what it reads itself, is checked as all else."""
    with jt.config(sanitize=True):
        for shape in ((), (9,)):
            laws = ("random", "standard_normal", "standard_exponential")
            dtypes = (F64,) if maker == "RandomState" else (F64, F32)
            draws: list[Draw] = [(law, shape, dtype) for law in laws for dtype in dtypes]
            for name in ("i1", "i2", "i4", "i8", "bool"):
                draws.append(("integers", shape, name, np.int64(0), np.int64(1)))
            draws.append(("binomial", shape, I64, np.int64(10), 0.3))
            check(maker, *draws, ("poisson", shape, I64, 3.0), ("permutation", (9,), I64))


def test_every_law_of_native_code_was_drawn() -> None:
    known = {*PARAMETERS, "integers", "permutation", "binomial", "hypergeometric", "below", "bits"}
    known |= {"python.expovariate", "python.normalvariate"}
    assert {law for laws in OF_CLASS.values() for law in laws} <= known
    assert law_of("gamma", "RandomState:MT19937", F64, ()) is None
    assert law_of("random", "Generator:asked", F64, ()) is None
