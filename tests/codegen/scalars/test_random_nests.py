"""Random loops over elements and walks: as in Python, errors and what is written until then too."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from nests import N, check, written

import jitney as jt
from jitney.codegen.limits import TINY, limited

RANGES = (
    "range({n})",
    "range(1, {n} - 1)",
    "range({n} - 1, -1, -1)",
    "range(0, {n}, 2)",
    "range(m)",
    "range(1, m)",
    "range({outer})",
    "range({outer} + 1, {n})",
    "range({outer}, -1, -1)",
    "range(m - {outer})",
    "range(0)",
)


PLACES = (
    "{i}",
    "{j}",
    "{i} - 1",
    "{i} + 1",
    "-1 - {i}",
    "{i} - {j}",
    "{i} // 2",
    "0",
    "k[{i}]",
    "{i} % 3",
)


SURE = ("k[{i}]", "{i} % 3", "{i} // 2", "0")  # never too large: tracing complains, taken or not
VALUES = (
    "a[{p}, {q}]",
    "v[{p}] * 0.5",
    "s",
    "np.exp(-v[{p}] * v[{p}])",
    "min(v[{p}], s)",
    "float(k[{p}])",
    "float(h[{p}])",
    "{i} * 0.25 - {j}",
    "(a[{p}, {q}] if v[{p}] > 0 else 1.5)",
    "np.sqrt(abs(a[{q}, {p}]))",
)


STATEMENTS = (
    "a[{p}, {q}] = {x}",
    "v[{p}] = {x} - {y}",
    "v[{p}] += {x}",
    "s = s * 0.5 + {x}",
    "s = max(s, {x})",
    "h[{p}] = {x}",
    "k[{p}] = (k[{p}] + 3) % 5",
    "if {x} > {y}:\n{pad}    v[{q}] = {y}\n{pad}else:\n{pad}    s = s + 0.25",
    "if {x} < 0:\n{pad}    s = {y}",
    "if {x} > {y}:\n{pad}    v[{q}] = {y}",
    "if {x} > {y}:\n{pad}    a[{p}, {q}] = {y}\n{pad}    v[{p}] = {x}\n"
    "{pad}else:\n{pad}    a[{p}, {q}] += 1",
    "if {x} > s:\n{pad}    v[{p}] += 0.5\n{pad}elif {y} > s:\n{pad}    v[{p}] = {x}\n"
    "{pad}else:\n{pad}    v[{p}] = 0.25",
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    lines = ["def f(a, v, k, h, m):", "    s = 0.5"]

    def text(template: str, names: list[str], pad: str) -> str:
        def pick(*choices: str) -> str:
            return draw(st.sampled_from(choices))

        def place(sure: bool) -> str:
            places = SURE if sure else PLACES
            return pick(*places).format(i=pick(*names), j=pick(*names))

        def value() -> str:
            chosen = pick(*VALUES)
            p, q = (place(sure or " if " in chosen) for _ in range(2))
            return chosen.format(p=p, q=q, i=pick(*names), j=pick(*names))

        sure = template.startswith("if")
        return template.format(p=place(sure), q=place(sure), x=value(), y=value(), pad=pad)

    def loop(depth: int, names: list[str]) -> None:
        pad = "    " * (depth + 1)
        name = "ijl"[depth]
        outer = names[-1] if names else "3"
        numbers = draw(st.sampled_from(RANGES)).format(n=N, outer=outer)
        lines.append(f"{pad}for {name} in {numbers}:")
        inner = [*names, name]
        for _ in range(draw(st.integers(1, 2))):
            lines.append(
                pad + "    " + text(draw(st.sampled_from(STATEMENTS)), inner, pad + "    ")
            )
        if depth < 2 and draw(st.booleans()):
            loop(depth + 1, inner)

    for _ in range(draw(st.integers(1, 2))):
        loop(0, [])
    return "\n".join([*lines, "    return s", ""])


@settings(max_examples=12, deadline=None)
@given(programs())
def test_random_nests(program: str) -> None:
    with limited(TINY):
        check(written(program))


@settings(max_examples=5, deadline=None)
@given(programs())
def test_random_nests_with_every_access_checked(program: str) -> None:
    with jt.config(sanitize=True), limited(TINY):
        check(written(program))


WALKS = (
    "{j} {less} {stop} and {x} > s",
    "{j} {less} {stop} and a[i, {j}] > s and v[{j}] < 2",
    "{x} > s and {j} {less} {stop}",
    "({j} {less} {stop}) and (k[{j}] > 0 or v[{j}] > s)",
    "{j} {less} {stop} and w < 3",
    "not {j} {more} {stop} and {x} > s",
)


STEPS = (("<", ">=", 1), ("<=", ">", 1), (">", "<=", -1), (">=", "<", -1), ("<", ">=", -1))


@st.composite
def walks(draw: st.DrawFn) -> str:
    """A `while` in a loop that walks until it meets a limit, or something else."""
    less, more, step = draw(st.sampled_from(STEPS))
    starts = ("i", "i - 1", "i + 1", "0", f"{N - 1}", "k[i]", "m - 1")
    stops = ("0", "i", f"{N}", f"{N - 1}", "i + 2", "-1", "m", "m - 1", "k[i]")
    test = draw(st.sampled_from(WALKS)).format(
        j="j",
        less=less,
        more=more,
        stop=draw(st.sampled_from(stops)),
        x=draw(st.sampled_from(("v[j]", "v[j - 1]", "a[j, i]", "v[min(j, 3)]"))),
    )
    body = draw(st.sampled_from(("v[j] = v[j] * 0.5", "s = s + 0.125", "v[j + 1] = s", "pass")))
    start, after = draw(st.sampled_from(starts)), draw(st.sampled_from(("j", "j + 1", "j - 1")))
    return f"""def f(a, v, k, h, m):
    s = -0.5
    w = 0
    for i in range(1, {N} - 1):
        j = {start}
        w = 0
        while {test}:
            {body}
            w += 1
            if w > 12:
                break
            j {"+" if step > 0 else "-"}= 1
        v[{after}] = s + w
    return s
""".replace("            if w > 12:\n                break\n" if draw(st.booleans()) else "\t", "")


@settings(max_examples=12, deadline=None)
@given(walks())
def test_walks_until_a_limit_or_something_else(program: str) -> None:
    with limited(TINY):
        check(written(program))


INNER = (
    "t = t * 0.5 + a[i, {p}]",
    "t += a[{p}, j] * v[{p}]",
    "t = max(t, a[{p}, j] - v[j])",
    "if a[{p}, j] > v[j]:\n{pad}    t -= v[j]\n{pad}    w += 1",
    "if t < v[j]:\n{pad}    t = t + np.exp(-t * t)\n{pad}else:\n{pad}    t *= v[{p}]",
    "w = w + k[j] % 3",
    "b[i, j] = b[i, j] * 0.5 + t",
    "if w > 4:\n{pad}    b[i, j] = v[{p}]",
)


LOOPS = (
    "for p in range({n}):",
    "for p in range(1, {n} - 1):",
    "for p in range(j):",
    "for p in range(i + 1):",
    "for p in range(m):",
    "for p in range(abs(k[j])):",
    "while t < 3.0 and w < 9:\n{pad}    w += 1\n{pad}    t = t + abs(v[j]) + 0.1",
)


@st.composite
def independent(draw: st.DrawFn) -> str:
    """Trips of i and j that touch elements of their own, with loops inside that carry numbers."""
    width = draw(st.sampled_from((N, N - 1, 4)))
    lines = [
        "def f(a, v, k, b, m):",
        f"    for i in range({N}):",
        f"        for j in range({width}):",
        "            t = v[j] - 0.25",
        "            w = k[i] % 2",
    ]
    for _ in range(draw(st.integers(1, 2))):
        pad = "            "
        head = draw(st.sampled_from(LOOPS)).format(n=N, pad=pad)
        lines.append(pad + head)
        pad += "    "
        place = "p" if head.startswith("for") and "abs" not in head else "i"
        for _ in range(draw(st.integers(1, 3))):
            lines.append(pad + draw(st.sampled_from(INNER)).format(p=place, pad=pad))
    lines.append(draw(st.sampled_from(("            b[i, j] = t + w", "            b[i, j] += t"))))
    if draw(st.booleans()):
        lines.append("            if t > v[i]:\n                b[i, j] = w")
    return "\n".join([*lines, "    return 0", ""])


def own_arguments() -> list[Any]:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, N, N))
    return [a, rng.standard_normal(N), rng.integers(0, 4, N), b, np.int64(N)]


@settings(max_examples=12, deadline=None)
@given(independent())
def test_random_lanes(program: str) -> None:
    with limited(TINY):
        check(written(program), own_arguments)


@settings(max_examples=5, deadline=None)
@given(independent())
def test_random_lanes_with_every_access_checked(program: str) -> None:
    with jt.config(sanitize=True), limited(TINY):
        check(written(program), own_arguments)
