"""Structured arrays: compiled functions against Python, for packed, aligned and nested layouts."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

PACKED = np.dtype([("x", "f8"), ("y", "f8"), ("id", "i4")])
ALIGNED = np.dtype([("x", "f8"), ("y", "f8"), ("id", "i4")], align=True)
NESTED = np.dtype([("pos", "f8", 3), ("m", [("a", "f4"), ("b", "i2", (2,))]), ("ok", "?")])
SPREAD = np.dtype(
    {
        "names": ["x", "y", "id"],
        "formats": ["f4", "f8", "u2"],
        "offsets": [12, 0, 20],
        "itemsize": 40,
    }
)


def sample(dtype: np.dtype[Any], n: int = 6, seed: int = 0) -> np.ndarray[Any, Any]:
    """An array of such records with small numbers in it."""
    rng = np.random.default_rng(seed)
    made = np.zeros(n, dtype)

    def fill(part: np.ndarray[Any, Any]) -> None:
        if part.dtype.names:
            for name in part.dtype.names:
                fill(part[name])
        else:
            part[...] = rng.integers(0, 6, part.shape)

    fill(made)
    return made


def copied(args: Any) -> Any:
    return [copy.deepcopy(a) if not isinstance(a, np.ndarray) else a[...].copy() for a in args]


def outcome(function: Callable[..., Any], args: Any) -> Any:
    """What a call gives, and what becomes of its arguments."""
    try:
        result = function(*args)
    except (ValueError, IndexError, TypeError) as error:
        return next(c for c in (ValueError, IndexError, TypeError) if isinstance(error, c))
    return result, args, [result is a for a in args]


def shown(value: Any) -> Any:
    """All that there is to see of a value."""
    if isinstance(value, (list, tuple)):
        return type(value), [shown(part) for part in value]
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return type(value), value.dtype, value.shape, str(value.tolist())
    return type(value), value


def check(
    function: Callable[..., Any], *args: Any, backend: Any = "native", times: int = 2
) -> None:
    """`function` compiled, called again and again, beside itself as Python."""
    compiled = jt.jit(function, backend=backend)
    want = outcome(function, copied(args))
    for _ in range(times):
        assert shown(outcome(compiled, copied(args))) == shown(want)


# Programs of arrays with the fields x, y, id


def total(p):
    return p["x"].sum() + p["id"].sum()


def push(p):
    p["x"] += 0.5 * p["y"]
    return p


def push_elements(p):
    for i in range(len(p)):
        p[i]["x"] += 0.5 * p[i]["y"]
        p["id"][i] = i
    return p["x"].max()


def push_records(p):
    for q in p:
        q["x"] += q["y"]
        if q["id"] > 2:
            q["y"] = 0
            q["id"] -= 1


def numbered(p):
    s = 0.0
    for i, q in enumerate(p):
        s += i * q["x"]
    for a, b in itertools.pairwise(p):
        s += a["x"] * b["y"]
    return s


def assign_tuples(p):
    for i in range(len(p)):
        p[i] = (i, 2.0, i)
    p[0] = p[1]


def swap(p):
    for i in range(len(p) // 2):
        j = len(p) - 1 - i
        t = p[i].copy()
        p[i] = p[j]
        p[j] = t


def swap_views(p):
    p[0], p[1] = p[1], p[0]


def chosen(p):
    return p[p["x"] > 2]


def means_of_chosen(p):
    q = p[p["x"] > 2]
    return q["y"].sum(), len(q), q.shape


def zero_chosen(p):
    p[p["x"] > 2] = (0, 0, 0)
    p["y"][p["id"] > 2] = 7


def some_fields(p):
    q = p[["x", "y"]]
    q["x"] = 1
    return q


def assign_some_fields(p):
    p[["x", "y"]] = (1.0, 2.0)


def part(p):
    q = p[1:4]
    q["y"] = 9
    return q


def backwards(p):
    return p[::-1]


def copy_and_change(p):
    q = p.copy()
    q["x"] = 0
    return q


def one(p):
    return p[2]


def last(p):
    return p[-1]["y"], p[-1][0]


def unpacked(p):
    x, y, n = p[1]
    return x + y, n


def equal(p):
    q = p.copy()
    q["id"][1] += 1
    return p == q, p != q, p[0] == q[0], np.array_equal(p, q), np.array_equal(p, p)


def by_number(p):
    return p[np.argsort(p["id"], kind="stable")]


def by_fields(p):
    return np.sort(p, order=["id", "y"]), np.sort(p)


def sort_in_place(p):
    p.sort(order="y")
    return p


def fill_all(p):
    p[:] = p[2]
    p[1:3] = 3


def like(p):
    q = np.zeros_like(p)
    q["x"] = p["y"]
    return q, np.empty_like(p).shape, np.ones_like(p)


def joined(p):
    return np.concatenate([p, p[:2]]), np.append(p, p[0:1])


def moved(p):
    return np.roll(p, 1), p.reshape(2, 3).T, p.take([0, 2]), np.flip(p), np.repeat(p, 2)


def in_branches(p):
    if p["x"][0] > 2:
        p["x"] += 1
    else:
        p[1:]["y"] = 0
    return p


def record_of_branch(p):
    q = p[0] if p["x"][0] > p["x"][1] else p[1]
    q["y"] = 9.0
    return q["id"]


def greatest(p):
    best = p[0]
    for q in p:
        if q["x"] > best["x"]:
            best = q
    return best["id"], best


def first_with(p):
    i = 0
    while i < len(p) and p[i]["id"] != 3:
        i += 1
    return i


def what_it_is(p):
    q = p[0]
    return (
        isinstance(p, np.ndarray),
        isinstance(q, np.void),
        p.dtype.names,
        p.shape,
        p.ndim,
        len(p),
        p.nbytes,
    )


def by_names(p):
    return {name: p[name].mean() for name in p.dtype.names}


def helper(p):
    def kick(q, h):
        q["x"] += h

    for q in p:
        kick(q, 0.5)
    kick(p, 1.0)


def python_numbers(p):
    return p[0].item(), p.tolist()


def where_either(p):
    return np.where(p["x"] > 2, p, p[::-1])


def no_such_field(p):
    return p["nothing"]


def too_short(p):
    p[0] = (1, 2)


def outside(p):
    return p[len(p)]


PROGRAMS = [
    *(total, push, push_elements, push_records, numbered, assign_tuples, swap, swap_views, chosen),
    *(means_of_chosen, zero_chosen, some_fields, assign_some_fields, part, backwards, one, last),
    *(copy_and_change, unpacked, equal, by_number, by_fields, sort_in_place, fill_all, like),
    *(joined, moved, in_branches, record_of_branch, greatest, first_with, what_it_is, by_names),
    *(helper, python_numbers, where_either, no_such_field, too_short, outside),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: Callable[..., Any]) -> None:
    for dtype in (PACKED, ALIGNED):
        check(program, sample(dtype, seed=len(program.__name__)))


@pytest.mark.parametrize("program", PROGRAMS[::3])
def test_programs_interpreted(program: Callable[..., Any]) -> None:
    check(program, sample(SPREAD), backend="interpreter", times=1)


LAYOUTS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "part": lambda p: p[1:],
    "every other": lambda p: p[::2],
    "backwards": lambda p: p[::-1],
    "none": lambda p: p[:0],
    "other byte order": lambda p: p.astype(p.dtype.newbyteorder(">")),
    "spread": lambda p: p.astype(SPREAD),
    "misaligned": lambda p: np.frombuffer(bytearray(b" " + p.tobytes()), p.dtype, offset=1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_are_written_in_place(layout: str) -> None:
    for program in (push, push_records, some_fields):
        whole, again = (sample(PACKED, 9) for _ in range(2))
        p, q = LAYOUTS[layout](whole), LAYOUTS[layout](again)
        want, got = program(p), jt.jit(program)(q)
        assert shown((want, p, whole)) == shown((got, q, again))
        assert want is not p or got is q


# Nested fields, and those that are arrays


def nested_fields(p):
    p["pos"] += 1.0
    p["m"]["b"][:, 1] = 3
    return p["m"]["a"].sum(), p["m"], p["ok"].any()


def nested_elements(p):
    for i in range(len(p)):
        p[i]["pos"][0] += p["m"]["a"][i]
        p["m"][i]["b"][1] = 3
    return p[2]["m"], p[1]["pos"], p[2]["m"]["b"]


def nested_tuples(p):
    p[0] = p[1]
    p["m"][2] = (1.5, (2, 3))
    p[3] = ((1.0, 2.0, 3.0), (4.0, (5, 6)), True)
    return p == p[::-1]


def nested_made(p):
    q = np.zeros(3, NESTED)
    q["pos"][1] = p["pos"][0]
    return q, p["pos"].shape, p["pos"][..., 0]


@pytest.mark.parametrize("program", [nested_fields, nested_elements, nested_tuples, nested_made])
def test_nested_fields(program: Callable[..., Any]) -> None:
    check(program, sample(NESTED))


# Arrays that are made inside


def made_by_zeros(x):
    p = np.zeros(4, dtype=PACKED)
    p["x"] = x
    for i in range(4):
        p[i]["id"] = i * 2
    return p


def made_by_empty(x):
    p = np.empty((2, 2), PACKED)
    p[0] = (x, 1.0, 2)
    p[1, 0] = (0.0, x, 3)
    p[1, 1] = p[0, 0]
    return p, p.shape


def made_of_tuples(x):
    p = np.array([(1, 2.0, 3), (x, 3.0, 4)], dtype=PACKED)
    q = np.array([(1.0, 2.0, 3), (4.0, 5.0, 6)], dtype=PACKED)
    q["x"][1] = x
    q[0]["y"] = x
    return p, q


def constant_records(x):
    table = np.array([(1.0, 2.0, 3), (4.0, 5.0, 6)], dtype=PACKED)
    s = 0.0
    for i in range(int(x)):
        s += table[i % 2]["x"] * x
    return s


def collected(x):
    rows = []
    for i in range(3):
        rows.append((x * i, 2.0, i))
    return np.array(rows, dtype=PACKED)


@pytest.mark.parametrize(
    "program", [made_by_zeros, made_by_empty, made_of_tuples, constant_records, collected]
)
def test_arrays_that_are_made_inside(program: Callable[..., Any]) -> None:
    check(program, 2.5)


# recarrays, records, containers, several arrays


def attributes(p):
    p.x += 1
    p[1].y = 4.0
    for q in p:
        q.id = 2
    return p.x.sum(), p[0].x, type(p).__name__


def test_recarrays() -> None:
    for program in (attributes, push, part, one, backwards):
        check(program, sample(PACKED).view(np.recarray))

    def viewed(p):
        return p.view(np.recarray).x * 2

    check(viewed, sample(ALIGNED))


def test_records_are_arguments() -> None:
    check(lambda r: (r["x"] + r["y"], r[2], r), sample(PACKED)[1])
    check(lambda p, i: (p[i]["x"], p[i]), sample(PACKED), 2)
    check(lambda p, i: p[i]["x"], sample(PACKED), 6)


def test_containers_of_structured_arrays() -> None:
    def both(d, pair):
        d["p"]["x"] *= 2
        pair[0]["y"] = pair[1]["x"]
        return d, pair[0]

    check(both, {"p": sample(PACKED)}, [sample(ALIGNED), sample(ALIGNED, seed=1)])


def test_one_array_twice_and_a_field_beside_it() -> None:
    def mix(p, q):
        p["x"] += 1
        q["y"] = p["x"]
        return q["x"].sum()

    def beside(p, x):
        p["x"] += 1
        return x.sum()

    for function, make in ((mix, lambda p: (p, p)), (beside, lambda p: (p, p["x"]))):
        ours, theirs = sample(ALIGNED), sample(ALIGNED)
        compiled = jt.jit(function)
        for _ in range(2):
            assert compiled(*make(ours)) == function(*make(theirs))
            assert shown(ours) == shown(theirs)


# Outside of the function


class Particles:
    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.p = sample(dtype)
        self.named = {"p": self.p}

    def step(self, h: float) -> Any:
        self.p["x"] += h * self.p["y"]
        for q in self.p:
            if q["id"] > 2:
                q["y"] -= h
        return self.p

    def replace(self, h: float) -> Any:
        self.p = self.p.copy()
        self.p["x"] *= h
        return self.named["p"]


@pytest.mark.parametrize("dtype", [PACKED, ALIGNED, NESTED], ids=["packed", "aligned", "nested"])
def test_attributes(dtype: np.dtype[Any]) -> None:
    methods = [Particles.step, Particles.replace] if dtype is not NESTED else []
    for method in methods:
        ours, theirs = Particles(dtype), Particles(dtype)
        compiled = jt.jit(method)
        for h in (0.5, 2.0, 3.0):
            got, want = compiled(ours, h), method(theirs, h)
            assert (got is ours.p) == (want is theirs.p)
            assert (got is ours.named["p"]) == (want is theirs.named["p"])
            assert shown((got, ours.p, ours.named)) == shown((want, theirs.p, theirs.named))
    if dtype is NESTED:
        body = Particles(dtype)
        jt.jit(lambda: body.p["m"]["b"].fill(4))()
        assert (body.p["m"]["b"] == 4).all()


def test_closed_over() -> None:
    table = sample(PACKED)

    def read(i):
        return table[i]["x"] * 2, table["id"].sum()

    def write(k):
        table["y"] += k
        return table

    compiled = jt.jit(read)
    for i in (1, 2):
        assert shown(compiled(i)) == shown(read(i))
        table["x"] += 1
    before = table["y"].copy()
    assert jt.jit(write)(2.0) is table
    np.testing.assert_array_equal(table["y"], before + 2)


# Calls, transformations


def test_calls_are_native_and_traced_once() -> None:
    p = sample(ALIGNED)
    compiled = jt.jit(push_elements)
    for n in range(3):
        compiled(p)
        p = p.copy() if n else p
    assert len(compiled.cache_info().entries) == 1
    ours, theirs = sample(PACKED), sample(PACKED)
    for _ in range(6):  # the ways of a first call, and of later ones
        compiled(ours)
        push_elements(theirs)
    assert shown(ours) == shown(theirs)
    assert len(compiled.cache_info().entries) == 2
    assert sum(program.hits for program in compiled._programs) > 0


def test_gradients_and_batches() -> None:
    dtype = np.dtype([("m", "f8"), ("r", "f8", 2)])
    p = sample(dtype)

    def energy(p):
        return (p["m"] * (p["r"] ** 2).sum(axis=1)).sum()

    def of_one(q):
        return q["m"] * (q["r"] ** 2).sum()

    for grad in (jt.grad(energy), jt.jit(jt.grad(energy))):
        g = grad(p)
        assert g.dtype == dtype
        np.testing.assert_allclose(g["m"], (p["r"] ** 2).sum(axis=1))
        np.testing.assert_allclose(g["r"], 2 * p["m"][:, None] * p["r"])
    np.testing.assert_allclose(jt.vmap(of_one)(p), p["m"] * (p["r"] ** 2).sum(axis=1))

    def scaled(s, p):
        q = p.copy()
        q["m"] *= s
        return energy(q)

    np.testing.assert_allclose(jt.grad(scaled)(2.0, p), energy(p))


# What is refused


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "arithmetic": (lambda p: p + 1, r"name the field: p\['x'\]"),
    "a function": (lambda p: np.cumsum(p), r"p\['x'\]"),
    "a reduction": (lambda p: np.sum(p), r"p\['x'\]"),
    "a method": (lambda p: p.mean(), r"apply it to the fields"),
    "comparison with a number": (lambda p: p == 1, "compare fields"),
    "a view of numbers": (lambda p: p.view("f8"), "apply it to the fields"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(what: str) -> None:
    function, remedy = REFUSED[what]
    with pytest.raises(jt.errors.JitneyError, match=remedy) as error:
        jt.jit(function)(sample(PACKED))
    assert "test_records.py" in str(error.value)


def test_unknown_attributes_raise_as_in_numpy() -> None:
    with pytest.raises(AttributeError, match="no attribute 'x'"):
        jt.jit(lambda p: p.x)(sample(PACKED))
