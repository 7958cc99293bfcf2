"""Op records: complete, and each reference gives exactly what its type rule says."""

from __future__ import annotations

import inspect
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native import native
from sampling import Case, cases

from jitney.codegen.math import EXPANSIONS
from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS, GraphError
from jitney.ir.types import (
    BOOL,
    DTYPE_NAMES,
    F32,
    F64,
    I32,
    I64,
    TOKEN,
    TensorType,
    dtype_kind,
    is_small,
    type_of,
)

ALL = sorted(OPS)
# Need regions, tokens or tapes: tested by hand.
OF_MATRICES = ("library", "composition")  # see test_linalg and test_fourier
SPECIAL = set(
    "assert create_token tape_new tape_push tape_pop pure_callback io_callback draw store "
    "custom_vjp custom_jvp implicit remat require recursion recurse "
    "all_reduce all_gather reduce_scatter all_to_all ppermute send_all reduce_to "
    "send receive barrier".split()
)
NO_DERIVATIVE = {
    # Results are integers or bools, or the op takes no floats: there is nothing to differentiate.
    *"isnan isinf isfinite signbit eq ne lt le gt ge any all argmax argmin argsort true_indices".split(),
    *"frexp_exponent invert gcd lcm bitwise_and bitwise_or bitwise_xor".split(),
    *"add_fits sub_fits mul_fits".split(),
    *"left_shift right_shift constant iota create_token window_argmax window_argmin".split(),
    *"tape_new threefry bitcast".split(),
    *"widen narrow require watched".split(),  # of graphs that are differentiated already
    *"recursion recurse".split(),
    "axis_index",
}


def run(name: str, *operands: object, **attrs: object) -> np.ndarray:
    """The op on arrays, through the type rule and the interpreter."""
    arrays = [np.asarray(x) for x in operands]
    graph = Graph(name)
    params = [graph.add_param(type_of(a)) for a in arrays]
    graph.outputs = [Builder(graph).op(name, *params, **attrs)]
    (result,) = evaluate(graph, arrays)
    return result


def refused(name: str, *types: object, **attrs: object) -> str:
    graph = Graph(name)
    params = [graph.add_param(t) for t in types]
    with pytest.raises(GraphError) as caught:
        Builder(graph).op(name, *params, **attrs)
    return str(caught.value)


def test_the_contract_of_names() -> None:
    wanted = """
    constant iota exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos
    arctan sinh cosh tanh arcsinh arccosh arctanh erf erfinv floor ceil trunc rint
    frexp_fraction threefry
    frexp_exponent neg abs sign invert isnan isinf isfinite signbit stop_gradient add sub mul div
    floor_divide remainder fmod pow maximum minimum fmax fmin arctan2 hypot copysign nextafter
    logaddexp logaddexp2 heaviside gcd lcm ldexp bitwise_and bitwise_or bitwise_xor left_shift
    right_shift fma bitcast eq ne lt le gt ge select convert reshape
    transpose broadcast slice flip pad concat
    update_slice gather scatter dynamic_slice dynamic_update_slice sum prod max min any all argmax
    argmin cumsum cumprod cummax cummin sort argsort dot cond while scan lanes_while assert create_token
    tape_new tape_push tape_pop"""
    assert set(wanted.split()) <= set(OPS)


@pytest.mark.parametrize("name", ALL)
def test_record_is_complete(name: str) -> None:
    definition = OPS[name]
    assert definition.name == name
    assert definition.family in (
        "elementwise linear bilinear reduction scan opaque structured effect source tape "
        "library composition".split()
    )
    assert definition.dtypes and set(definition.dtypes) <= set("biufc")
    if name not in SPECIAL and definition.family not in OF_MATRICES:
        assert definition.extra["examples"], "no example for the generic tests"
        for example in definition.extra["examples"]:
            assert set(example.attrs) == set(definition.attrs)
    has_rules = (definition.jvp is not None, definition.vjp is not None)
    if definition.family in OF_MATRICES:
        assert has_rules[0] == has_rules[1], "one rule of two"
    elif name in NO_DERIVATIVE:
        assert not any(has_rules), "a rule, though NO_DERIVATIVE has it"
    else:
        assert all(has_rules), "no rule for derivatives: with none, NO_DERIVATIVE says so"


@pytest.mark.parametrize("name", ALL)
def test_attributes_are_what_the_type_rule_takes(name: str) -> None:
    if OPS[name].family in OF_MATRICES:  # the family's rule hands attributes on
        return
    signature = inspect.signature(OPS[name].infer)
    named = {p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
    if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        assert OPS[name].attrs == ()
    else:
        assert named - {"regions"} == set(OPS[name].attrs)


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize("name", [n for n in ALL if OPS[n].extra["examples"]])
def test_reference_gives_the_inferred_type(name: str, wild: bool) -> None:
    rng = np.random.default_rng(ALL.index(name))
    for case in cases(OPS[name]):
        graph = case.graph()
        arrays = case.sample(rng, wild)
        before = [a.copy() for a in arrays]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            results = evaluate(graph, arrays)
        for result, output in zip(results, graph.outputs, strict=True):
            assert isinstance(result, np.ndarray)
            assert type_of(result) == output.type, str(case)
        for a, b in zip(arrays, before, strict=True):
            assert a.tobytes() == b.tobytes(), f"{case} changed its operand"


@pytest.mark.parametrize("name", [n for n in ALL if OPS[n].family == "elementwise"])
def test_elementwise_refuses_other_shapes_dtypes_and_counts(name: str) -> None:
    definition = OPS[name]
    own_rules = ("select", "convert", "widen", "narrow")
    case = next(cases(definition))
    types = [type_of(a) for a in case.sample(np.random.default_rng(0))]
    attrs = dict(case.example.attrs)
    refused(name, *types, types[0], **attrs) if name not in own_rules else None
    if len(types) > 1:
        wrong = [*types[:-1], TensorType((7,), types[-1].dtype)]
        message = refused(name, *wrong, **attrs)
        assert str(types[0]) in message or str(wrong[-1]) in message
        other = next(d for d in (I32, F64, F32) if d != types[-1].dtype)
        message = refused(name, *types[:-1], TensorType(types[-1].shape, other), **attrs)
        assert str(TensorType(types[-1].shape, other)) in message
    for dtype in DTYPE_NAMES.values():
        if dtype_kind(dtype) not in definition.dtypes:
            refused(name, *(TensorType((2,), dtype) for _ in types), **attrs)


NUMPY_NAMES = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "true_divide",
    "neg": "negative",
    "conj": "conjugate",
    "abs": "absolute",
    "pow": "power",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
UFUNCS = {
    name: ufunc
    for name in ALL
    if OPS[name].family == "elementwise"
    and isinstance(ufunc := getattr(np, NUMPY_NAMES.get(name, name), None), np.ufunc)
}


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_elementwise_is_the_ufunc(name: str) -> None:
    rng = np.random.default_rng(7)
    for case in cases(OPS[name]):
        if name == "copysign" and case.dtype.name.endswith("fnuz"):
            continue  # ml_dtypes gives NaN for a zero with a minus sign, which such a dtype has not
        arrays = case.sample(rng, wild=True)
        if name == "pow" and case.dtype.kind == "i":
            arrays[1] = abs(arrays[1] % 5)
        with np.errstate(all="ignore"):
            expected = np.asarray(UFUNCS[name](*arrays))
        result = run(name, *arrays)
        assert result.dtype == expected.dtype, str(case)
        if is_small(result.dtype):
            result, expected = result.astype(F64), expected.astype(F64)
        np.testing.assert_array_equal(result, expected, err_msg=str(case))


def test_fma_rounds_once() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 300)) * 10.0 ** rng.integers(-9, 9, (2, 300))
    z = np.concatenate([-(x * y)[:200], rng.normal(size=100)])
    exact = [
        float(Fraction(a) * Fraction(b) + Fraction(c)) for a, b, c in zip(x, y, z, strict=True)
    ]
    np.testing.assert_array_equal(run("fma", x, y, z), exact)
    np.testing.assert_array_equal(native(EXPANSIONS["fma"], [F64] * 3)(x, y, z), exact)
    wild = np.array([np.inf, 1e300, 0.0, np.nan]), np.array([0.0, 1e10, -2.0, 1.0]), np.ones(4)
    np.testing.assert_array_equal(run("fma", *wild), [np.nan, np.inf, 1.0, np.nan])


def test_erf() -> None:
    special = pytest.importorskip("scipy.special")
    for dtype, tolerance in ((np.float64, 4e-16), (np.float32, 6e-8)):
        x = np.concatenate([np.linspace(-7, 7, 501), [0, -0.0, np.inf, -np.inf, np.nan, 1e-310]])
        x = x.astype(dtype)
        got = run("erf", x)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, special.erf(x.astype(np.float64)), rtol=tolerance)
    assert np.signbit(run("erf", -0.0))


def test_integer_edges() -> None:
    low = np.int8(-128)
    assert run("floor_divide", low, np.int8(-1)) == np.floor_divide(np.int16(-128), 1)
    assert run("floor_divide", np.int8(5), np.int8(0)) == 0
    assert run("remainder", np.int8(5), np.int8(0)) == 0
    assert run("remainder", np.int64(-7), np.int64(3)) == 2
    assert run("fmod", np.int64(-7), np.int64(3)) == -1
    assert run("abs", low) == -128
    assert run("neg", np.uint8(1)) == 255
    assert run("left_shift", np.int32(1), np.int32(40)) == 0
    assert run("right_shift", np.int32(-1), np.int32(40)) == -1
    with pytest.raises(ValueError, match="negative integer powers"):
        run("pow", np.array([2, 3], np.int32), np.array([2, -1], np.int32))


def test_nan_in_maxima() -> None:
    nan = np.nan
    x, y = np.array([nan, 1.0, nan]), np.array([1.0, nan, nan])
    assert np.isnan(run("maximum", x, y)).all() and np.isnan(run("minimum", x, y)).all()
    np.testing.assert_array_equal(run("fmax", x, y), [1, 1, nan])
    np.testing.assert_array_equal(run("fmin", x, y), [1, 1, nan])
    data = np.array([[3.0, nan, 5.0], [1.0, 4.0, 4.0]])
    np.testing.assert_array_equal(run("max", data, axes=(1,)), [nan, 4])
    assert run("argmax", data, axis=1).tolist() == [1, 1]
    assert run("argmin", data, axis=1).tolist() == [1, 0]
    np.testing.assert_array_equal(
        run("cummax", data, axis=1, reverse=False), [[3, nan, nan], [1, 4, 4]]
    )
    np.testing.assert_array_equal(run("sort", data, axis=1, stable=True)[0], [3, 5, nan])


def test_reductions_keep_their_dtype() -> None:
    x = np.full((3, 5), 100, np.int8)
    assert run("sum", x, axes=(0,)).tolist() == [44] * 5
    assert run("sum", x, axes=(0,)).dtype == np.int8
    assert run("prod", x, axes=(0, 1)).shape == ()
    assert run("cumsum", x, axis=1, reverse=True)[0].tolist() == [-12, -112, 44, -56, 100]
    assert run("sum", np.zeros((0, 3)), axes=(0,)).tolist() == [0, 0, 0]
    assert run("prod", np.zeros((0, 3)), axes=(0,)).tolist() == [1, 1, 1]
    assert run("max", np.zeros((0, 3)), axes=(1,)).shape == (0,)
    assert "zero elements" in refused("max", TensorType((0, 3), F64), axes=(0,))
    assert "zero elements" in refused("argmin", TensorType((3, 0), F64), axis=1)


def test_movement_against_numpy() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(
        run("broadcast", x, shape=(5, 2, 3, 6, 4), dims=(1, 2, 4)),
        np.broadcast_to(x[None, :, :, None, :], (5, 2, 3, 6, 4)),
    )
    np.testing.assert_array_equal(
        run("slice", x, start=(0, 1, 0), stop=(2, 3, 4), step=(1, 1, 3)), x[:, 1:, ::3]
    )
    np.testing.assert_array_equal(
        run("pad", x, 7.0, low=(0, 1, 2), high=(1, 0, 3), interior=(0, 0, 0)),
        np.pad(x, ((0, 1), (1, 0), (2, 3)), constant_values=7.0),
    )
    spread = run("pad", x, 0.0, low=(0, 0, 1), high=(0, 0, 0), interior=(0, 1, 2))
    assert spread.shape == (2, 5, 11)
    np.testing.assert_array_equal(spread[:, ::2, 1::3], x)
    assert spread.sum() == x.sum()
    expected = x.copy()
    expected[1:, 0:3:2, 1:4:2] = -1
    np.testing.assert_array_equal(
        run("update_slice", x, np.full((1, 2, 2), -1.0), start=(1, 0, 1), step=(1, 2, 2)), expected
    )
    assert x.min() == 0  # the operand is untouched


def test_gather_scatter_against_numpy() -> None:
    x = np.arange(60).reshape(3, 4, 5)
    i, j = np.array([[0, -1], [2, 1]]), np.array([[4, 0], [-5, 2]])
    got = run("gather", x, i, j, axes=(0, 2), mode="check")
    np.testing.assert_array_equal(got, np.moveaxis(x, 1, 2)[i, j])
    assert got.shape == (2, 2, 4)
    clipped = run("gather", x, np.array([-9, 9]), axes=(1,), mode="clip")
    np.testing.assert_array_equal(clipped, np.moveaxis(x[:, [0, 3]], 1, 0))
    for combine, expected in {
        "set": [3, 1, 4, 1],
        "add": [6, 1, 5, 1],
        "multiply": [6, 1, 4, 1],
        "max": [3, 1, 4, 1],
        "min": [1, 1, 1, 1],
    }.items():
        got = run(
            "scatter",
            np.ones(4, np.int64),
            np.array([2, 4, 3]),
            np.array([0, 2, -4]),
            axes=(0,),
            mode="check",
            combine=combine,
        )
        assert got.tolist() == expected, combine


@pytest.mark.parametrize("bad", [3, -4])
def test_indices_are_checked(bad: int) -> None:
    message = f"index {bad} is out of bounds for axis of size 3"
    with pytest.raises(IndexError, match=message):
        run("gather", np.zeros(3), np.array([0, bad]), axes=(0,), mode="check")
    with pytest.raises(IndexError, match=message):
        args = np.zeros(3), np.zeros(1), np.array([bad])
        run("scatter", *args, axes=(0,), mode="check", combine="add")


def test_dynamic_windows_are_clamped() -> None:
    x = np.arange(5.0)
    for start, first in ((-3, 0), (1, 1), (9, 3)):
        got = run("dynamic_slice", x, np.int64(start), sizes=(2,))
        assert got.tolist() == [first, first + 1]
        got = run("dynamic_update_slice", x, np.array([-1.0, -2.0]), np.int64(start))
        assert got[first : first + 2].tolist() == [-1, -2] and got.sum() < 8


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_dot_is_einsum(data: st.DataObject) -> None:
    letters = "abcdef"
    sizes = {c: data.draw(st.integers(0, 3)) for c in letters}
    left = data.draw(st.permutations("abcd"))[: data.draw(st.integers(0, 4))]
    right = data.draw(st.permutations("cdef"))[: data.draw(st.integers(0, 4))]
    shared = [c for c in left if c in right]
    batch = [c for c in shared if data.draw(st.booleans())]
    contract = [c for c in shared if c not in batch]
    out = batch + [c for c in left if c not in shared] + [c for c in right if c not in shared]
    rng = np.random.default_rng(len(out))
    dtype = data.draw(st.sampled_from([np.int32, np.uint8, np.float64]))
    a = rng.integers(0, 50, [sizes[c] for c in left]).astype(dtype)
    b = rng.integers(0, 50, [sizes[c] for c in right]).astype(dtype)

    def axes(chosen: list[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return tuple(left.index(c) for c in chosen), tuple(right.index(c) for c in chosen)

    got = run("dot", a, b, contract=axes(contract), batch=axes(batch))
    expected = np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", a, b)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, expected)


f8 = TensorType((2, 3), F64)
WRONG = [
    ("reshape", (f8,), {"shape": (4,)}, ["f64[2,3]", "(4,)"]),
    ("transpose", (f8,), {"perm": (0, 0)}, ["f64[2,3]"]),
    ("broadcast", (f8,), {"shape": (2, 4), "dims": (0, 1)}, ["f64[2,3]", "(2, 4)"]),
    ("slice", (f8,), {"start": (0, 0), "stop": (2, 4), "step": (1, 1)}, ["f64[2,3]"]),
    ("slice", (f8,), {"start": (0,), "stop": (2,), "step": (1,)}, ["one entry per axis"]),
    ("flip", (f8,), {"axes": (2,)}, ["rank 2"]),
    ("pad", (f8, f8), {"low": (0, 0), "high": (0, 0), "interior": (0, 0)}, ["0-d"]),
    ("concat", (f8, TensorType((2, 3), F32)), {"axis": 0}, ["f64[2,3]", "f32[2,3]"]),
    ("concat", (f8, TensorType((3, 3), F64)), {"axis": 1}, ["f64[2,3]", "f64[3,3]"]),
    ("update_slice", (f8, f8), {"start": (1, 0), "step": (1, 1)}, ["does not fit"]),
    ("gather", (f8, TensorType((2,), I32)), {"axes": (0,), "mode": "check"}, ["i32[2]", "i64"]),
    ("gather", (f8, TensorType((2,), I64)), {"axes": (0,), "mode": "wrap"}, ["wrap"]),
    (
        "scatter",
        (f8, f8, TensorType((4,), I64)),
        {"axes": (0,), "mode": "check", "combine": "set"},
        ["f64[2,3]", "f64[4,3]"],
    ),
    ("dynamic_slice", (f8, TensorType((), I64)), {"sizes": (1, 1)}, ["f64[2,3]"]),
    ("sum", (f8,), {"axes": (1, 0)}, ["increasing"]),
    ("sum", (TensorType((2,), BOOL),), {"axes": (0,)}, ["bool[2]"]),
    ("cumsum", (f8,), {"axis": 2, "reverse": False}, ["axis=2"]),
    ("dot", (f8, f8), {"contract": ((1,), (0,)), "batch": ((), ())}, ["f64[2,3]"]),
    ("dot", (f8, TensorType((3,), F32)), {"contract": ((1,), (0,)), "batch": ((), ())}, ["f32[3]"]),
    ("select", (f8, f8, f8), {}, ["bool"]),
    ("convert", (f8,), {"dtype": np.dtype(np.longdouble)}, ["float128"]),
    ("iota", (), {"shape": (2,), "dtype": I64, "axis": 1}, ["axis=1"]),
    ("constant", (), {"value": np.zeros(2)}, ["writeable"]),
    ("add", (f8, TOKEN), {}, ["token"]),
]


@pytest.mark.parametrize("name, types, attrs, words", WRONG)
def test_type_rules_refuse(name: str, types: tuple, attrs: dict, words: list[str]) -> None:
    message = refused(name, *types, **attrs)
    assert message.startswith(f"{name}: ")
    for word in words:
        assert word in message


def test_interpreter_checks_what_it_is_given() -> None:
    graph = Graph("f")
    graph.outputs = [graph.add_param(f8)]
    with pytest.raises(TypeError, match="takes 1 arrays, got 0"):
        evaluate(graph, [])
    with pytest.raises(TypeError, match=r"f32\[2,3\]"):
        evaluate(graph, [np.zeros((2, 3), np.float32)])


def test_interpreter_lets_go_of_dead_values() -> None:
    """A long chain over a large array needs memory for a few arrays, not for all."""
    import tracemalloc

    graph = Graph("f")
    x = graph.add_param(TensorType((1 << 17,), F64))
    b = Builder(graph)
    y = x
    for _ in range(30):
        y = b.op("sin", y)
    graph.outputs = [y]
    data = np.ones(1 << 17)
    tracemalloc.start()
    evaluate(graph, [data])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * data.nbytes


def test_samples_cover_every_op_and_dtype() -> None:
    combinations = {(c.definition.name, c.dtype) for n in ALL for c in cases(OPS[n])}
    assert len(combinations) > 500
    assert all(isinstance(c, Case) for c in cases(OPS["add"]))
