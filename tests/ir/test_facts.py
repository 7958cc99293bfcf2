"""What records say of their ops beside the rules, held against what the ops do."""

import functools
from collections.abc import Iterator

import numpy as np
import pytest
from sampling import Case, cases

from jitney.codegen.lowering.pointwise import RULES
from jitney.codegen.math import EXPANSIONS
from jitney.codegen.scalar import FREE, var
from jitney.ir.cost import OF_FAMILY, Cost
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate_op
from jitney.ir.opdef import OPS, Commutes, OpDef, register
from jitney.ir.passes import hoist_invariants
from jitney.ir.passes.peak import predicted_peak
from jitney.ir.text_parser import parse_graph

ALL = sorted(OPS)
MANY = 16  # nodes of an expansion, up to which an op is cheap
STORED = {np.dtype(c) for c in "?bhilBHILfd"}  # the dtypes that compiled code knows
OF_PARTS = {"complex", "real", "imag", "conj"}  # which no compiled code knows


def values(case: Case, arrays: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return evaluate_op(case.graph().ops[0], arrays)[0]


def same(a: np.ndarray, b: np.ndarray, bits: bool) -> bool:
    """Equal, any NaN being as good as another; with `bits` zeros have their signs."""
    if not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"):
        return False
    signs = bits and a.dtype.kind == "f"
    return not signs or np.array_equal(np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b))


def of_two(*families: str) -> list[str]:
    """The ops of two operands of one dtype."""
    return [
        name
        for name in ALL
        if OPS[name].family in families
        and all([a.dtype for a in e.args] == ["T", "T"] for e in OPS[name].extra["examples"])
    ]


def draws(name: str) -> Iterator[tuple[Case, list[np.ndarray]]]:
    rng = np.random.default_rng(1)
    for case in cases(OPS[name]):
        if case.dtype in STORED and not (name == "pow" and case.dtype.kind == "i"):
            for _ in range(8):
                yield case, case.sample(rng, wild=True)


def test_a_record_says_what_it_costs() -> None:
    with pytest.raises(ValueError, match="op 'novel' does not say what it costs"):
        register(OpDef("novel", "elementwise", lambda x: x, lambda x: x))
    assert "novel" not in OPS
    for definition in OPS.values():
        assert isinstance(definition.cost, Cost), definition.name
        assert definition.cost is OF_FAMILY.get(definition.family, definition.cost)


@pytest.mark.parametrize("name", sorted(EXPANSIONS))
def test_what_is_written_out_at_length_is_not_cheap(name: str) -> None:
    longest = 0
    for case in cases(OPS[name]):
        op = case.graph().ops[0]
        if any(v.dtype not in STORED for v in op.operands):
            continue
        operands = [var((name, i), v.dtype) for i, v in enumerate(op.operands)]
        pending, seen = [EXPANSIONS[name](*operands, **op.attrs)], set()
        while pending:
            node = pending.pop()
            if node not in seen:
                seen.add(node)
                pending += node.args
        longest = max(longest, sum(node.op not in FREE for node in seen))
        if any(node.op == "loop" for node in seen):
            longest = max(longest, MANY + 1)
    assert (longest > MANY) == (OPS[name].cost >= Cost.LONG), longest
    assert (longest == 0) == (OPS[name].cost is Cost.FREE) or name in ("convert", "bitcast")


def test_what_is_pointwise_has_an_expression() -> None:
    known = {*RULES, *EXPANSIONS, "optimization_barrier", "lanes_while"}
    # These are expressions in places: `codegen.lowering.one_hot`, and where nothing is in memory.
    known -= {"scatter", "materialize"}
    assert {n for n in ALL if OPS[n].pointwise} - OF_PARTS == known


@pytest.mark.parametrize("name", of_two("elementwise"))
def test_commutative_ops_commute_and_others_do_not(name: str) -> None:
    equal = {True: True, False: True}
    for case, (x, y) in draws(name):
        for bits in equal:
            equal[bits] &= same(values(case, [x, y]), values(case, [y, x]), bits)
    commutes = OPS[name].commutative
    assert bool(commutes) == equal[False]
    assert equal[True] or commutes is not Commutes.BITS


@pytest.mark.parametrize("name", of_two("elementwise"))
def test_idempotent_ops_give_what_both_operands_are(name: str) -> None:
    found = [(x, values(case, [x, x])) for case, (x, _) in draws(name)]
    assert OPS[name].idempotent == all(z.dtype == x.dtype and same(x, z, True) for x, z in found)


@pytest.mark.parametrize("name", [n for n in ALL if OPS[n].combiner])
def test_folds_and_scans_combine_by_their_op(name: str) -> None:
    combine = OPS[OPS[name].combiner].reference
    rng = np.random.default_rng(0)
    attrs = dict.fromkeys(OPS[name].attrs, (0,)) | {"axis": 0, "reverse": False, "axes": (0,)}
    if name.startswith("window"):
        attrs |= {"window": (5,), "strides": (1,), "dilation": (1,)}
    x = rng.integers(-3, 4, 5) if "b" not in OPS[name].dtypes else rng.integers(0, 2, 5) > 0
    found = OPS[name].reference(x, **{a: attrs[a] for a in OPS[name].attrs})
    assert np.ravel(found)[-1] == functools.reduce(combine, x)


def test_families_of_folds_say_by_which_op() -> None:
    places = {"argmax", "argmin", "window_argmax", "window_argmin"}
    folds = {n for n in ALL if OPS[n].family in ("reduction", "scan")} - places
    assert {n for n in ALL if OPS[n].combiner} == folds | {"sum", "cumsum", "window_sum"}


@pytest.mark.parametrize("name", [n for n in ALL if OPS[n].family == "linear"])
def test_views_hold_elements_of_their_operand_at_places_of_their_own(name: str) -> None:
    definition = OPS[name]
    case = next(c for c in cases(definition) if c.dtype == np.float64)
    op = case.graph().ops[0]
    rng = np.random.default_rng(3)
    first, *others = case.sample(rng)
    numbered = np.arange(1.0, first.size + 1).reshape(first.shape)
    moved = set(values(case, [numbered, *others]).ravel()) <= set(numbered.ravel())
    alone = len(op.operands) == 1 and definition.pointwise and name != "checkpoint_name"
    assert definition.view == (alone and moved and definition.cost is Cost.FREE)


@pytest.mark.parametrize("name", ["update_slice", "dynamic_update_slice", "scatter"])
def test_updates_change_at_most_what_is_written(name: str) -> None:
    assert {n for n in ALL if OPS[n].updates} == {"update_slice", "dynamic_update_slice", "scatter"}
    for case in cases(OPS[name]):
        if case.dtype == np.float64:
            x, new, *places = case.sample(np.random.default_rng(0))
            assert np.sum(values(case, [x, new, *places]) != x) <= new.size


def test_what_need_not_run_but_may_is_hoisted() -> None:
    """Attention and transforms of loop invariants, which a list of ops that may run had left out."""
    for op in ("%s = fft %x inverse=false factor=1.0", "%s = det %x"):
        dtype = "c64" if "fft" in op else "f32"
        shape = "4,4" if "fft" in op else ""
        made = f"{dtype}[{shape}]"
        graph: Graph = parse_graph(
            f"""
graph f(%x: {dtype}[4,4], %c: {made}) -> {made} {{
  %y = scan %x, %c consts=1 carries=1 length=3 reverse=false : {made} {{
    graph body(%x: {dtype}[4,4], %c: {made}) -> {made} {{
      {op} : {made}
      %d = add %c, %s : {made}
      return %d
    }}
  }}
  return %y
}}
"""
        )
        name = op.split()[2]
        moved = hoist_invariants(graph)
        assert [o.name for o in moved.ops] == [name, "scan"]
        assert [o.name for o in moved.ops[1].regions[0].ops] == ["add"]


def test_a_sum_takes_memory_in_the_prediction() -> None:
    """Sums are linear, as movement is; the prediction took them for part of what reads them."""
    graph = parse_graph(
        """
graph f(%x: f32[64,256], %w: f32[256,256]) -> f32[256] {
  %s = sum %x axes=[0] : f32[256]
  %y = dot %s, %w contract=[[0],[0]] batch=[[],[]] : f32[256]
  return %y
}
"""
    )
    assert predicted_peak(graph) == 4 * 256
