"""custom_vjp and custom_jvp: rules against derived derivatives, in every mode, nesting and backend."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney.ir.passes import inline_calls
from jitney.ir.verify import verify

X = np.linspace(-1.0, 2.0, 5)


@pytest.fixture(params=[None, "interpreter", "native"])
def wrap(request: pytest.FixtureRequest) -> Callable[..., Any]:
    backend = request.param
    return (lambda f: f) if backend is None else lambda f: jt.jit(f, backend=backend)


def product_vjp(scale: float = 1.0) -> Any:
    """sin(x) * y, with a reverse rule that is `scale` times the true one."""

    @jt.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return jt.sin(x) * y

    def fwd(x: Any, y: Any) -> Any:
        return f(x, y), (x, y)

    def bwd(residuals: Any, ct: Any) -> Any:
        x, y = residuals
        return scale * ct * jt.cos(x) * y, scale * ct * jt.sin(x)

    f.defvjp(fwd, bwd)
    return f


def product_jvp(scale: float = 1.0) -> Any:
    @jt.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return jt.sin(x) * y

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        x, y = primals
        tx, ty = tangents
        return f(x, y), scale * (jt.cos(x) * y * tx + jt.sin(x) * ty)

    return f


def plain(x: Any, y: Any) -> Any:
    return jt.sin(x) * y


def along(f: Any) -> Any:
    """The directional derivative of f, by reverse mode."""
    return lambda x: jt.sum(jt.grad(f)(x) * X)


MAKERS = [product_vjp, product_jvp]


@pytest.mark.parametrize("make", MAKERS)
def test_the_rule_is_what_is_used(make: Any, wrap: Any) -> None:
    f = make(10.0)
    assert wrap(f)(0.5, 2.0) == pytest.approx(np.sin(0.5) * 2)
    dx, dy = wrap(jt.grad(f, (0, 1)))(0.5, 2.0)
    assert (dx, dy) == (pytest.approx(20 * np.cos(0.5)), pytest.approx(10 * np.sin(0.5)))


@pytest.mark.parametrize("make", MAKERS)
def test_a_true_rule_agrees_with_differentiating_through(make: Any, wrap: Any) -> None:
    f = make()

    def loss(g: Any) -> Any:
        return lambda x: jt.sum(g(x * 2, jt.exp(x)) ** 2)

    for order in (1, 2, 3):
        a, b = loss(f), loss(plain)
        for _ in range(order - 1):
            a, b = along(a), along(b)
        np.testing.assert_allclose(wrap(jt.grad(a))(X), jt.grad(b)(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", MAKERS)
def test_forward_over_reverse(make: Any, wrap: Any) -> None:
    f = make()
    got = wrap(lambda x, v: jt.hvp(lambda x: jt.sum(f(x, x)), (x,), (v,)))(X, X + 1)
    want = jt.hvp(lambda x: jt.sum(plain(x, x)), (X,), (X + 1,))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_check_grads_to_second_order() -> None:
    f = product_jvp()
    jt.check_grads(f, (X, X + 1), order=2)
    jt.check_grads(jt.jit(f), (X, X + 1), order=2)
    jt.check_grads(product_vjp(), (X, X + 1), order=2, modes=("rev",))
    with pytest.raises(AssertionError, match="reverse mode"):
        jt.check_grads(product_vjp(1.01), (X, X + 1), modes=("rev",))


@pytest.mark.parametrize("make", MAKERS)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_any_nesting_gives_the_same_numbers(make: Any, data: Any) -> None:
    """jit, vmap, cond and loops around and between, in random order."""
    f = make()
    layers = data.draw(
        st.lists(st.sampled_from(["jit", "vmap", "cond", "loop", "scan", "self"]), max_size=4)
    )

    def build(g: Any) -> Any:
        for layer in layers:
            g = _LAYERS[layer](g)
        return lambda x: jt.sum(jt.jit(g)(x, x + 1.5))

    x = np.array([0.3, -0.4, 0.8])
    np.testing.assert_allclose(
        jt.grad(build(f))(x), jt.grad(build(plain))(x), rtol=1e-8, err_msg=str(layers)
    )
    np.testing.assert_allclose(
        jt.jit(jt.grad(build(f)))(x), jt.grad(build(plain))(x), rtol=1e-8, err_msg=str(layers)
    )


_LAYERS: dict[str, Callable[[Any], Any]] = {
    "jit": jt.jit,
    "vmap": lambda g: lambda x, y: jt.vmap(g)(jt.stack([x, y]), jt.stack([y, x]))[0],
    "cond": lambda g: lambda x, y: jt.cond(jt.sum(x) > 0.5, g, lambda x, y: g(y, x), x, y),
    "loop": lambda g: lambda x, y: jt.fori_loop(0, 3, lambda i, c: g(c, y) * 0.5, x),
    "scan": lambda g: (
        lambda x, y: jt.while_loop(
            lambda c: c[0] < 2, lambda c: (c[0] + 1, g(x, c[1]) * 0.5), (0, y)
        )[1]
    ),
    "self": lambda g: lambda x, y: g(g(x, y), y),
}


@pytest.mark.parametrize("make", MAKERS)
def test_under_vmap(make: Any, wrap: Any) -> None:
    f = make(3.0)
    got = wrap(jt.vmap(jt.grad(f), (0, None)))(X, 2.0)
    np.testing.assert_allclose(got, 6 * np.cos(X))
    got = wrap(jt.grad(lambda x: jt.sum(jt.vmap(f, (0, None))(x, 2.0))))(X)
    np.testing.assert_allclose(got, 6 * np.cos(X))


def test_forward_mode_of_a_custom_vjp_says_what_is_missing(wrap: Any) -> None:
    f = product_vjp()
    for g in (
        lambda x: jt.jvp(f, (x, x), (x, x)),
        lambda x: jt.jacfwd(f)(x, x),
        lambda x: jt.linearize(f, x, x),
    ):
        with pytest.raises(TypeError, match="reverse mode alone.*custom_jvp serves both"):
            wrap(g)(1.0)


# Structures


def test_trees_go_in_and_out(wrap: Any) -> None:
    @jt.custom_vjp
    def f(params: Any, n: Any) -> Any:
        return {"a": params["w"] * n, "b": [params["v"][0], n]}

    def fwd(params: Any, n: Any) -> Any:
        return f(params, n), {"w": params["w"], "n": n, "tag": "kept"}

    def bwd(residuals: Any, ct: Any) -> Any:
        assert residuals["tag"] == "kept"
        assert ct["b"][1] is None  # an integer
        return {"w": ct["a"] * 7, "v": (ct["b"][0] * 5, None)}, None

    f.defvjp(fwd, bwd)

    def loss(params: Any, n: Any) -> Any:
        out = f(params, n)
        return jt.sum(out["a"]) + 2 * jt.sum(out["b"][0]) + out["b"][1]

    params = {"w": X, "v": (X[:2], X[:3])}
    found = wrap(jt.grad(loss))(params, np.array(3))
    np.testing.assert_allclose(found["w"], 7 * np.ones(5))
    np.testing.assert_allclose(found["v"][0], 10 * np.ones(2))
    np.testing.assert_allclose(found["v"][1], np.zeros(3))


def test_tangents_of_trees(wrap: Any) -> None:
    @jt.custom_jvp
    def f(p: Any, n: Any) -> Any:
        return p["x"] * n, n

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (p, n), (tp, tn) = primals, tangents
        assert tn is None
        return f(p, n), (tp["x"] * n * 2, None)

    out, tangent = wrap(lambda x: jt.jvp(lambda x: f({"x": x}, np.array(3)), (x,), (x,)))(X)
    np.testing.assert_allclose(out[0], 3 * X)
    np.testing.assert_allclose(tangent[0], 6 * X)
    assert out[1] == 3 and tangent[1] is None
    np.testing.assert_allclose(
        wrap(jt.grad(lambda x: jt.sum(f({"x": x}, np.array(3))[0])))(X), np.full(5, 6.0)
    )


@pytest.mark.parametrize("kind", [jt.custom_vjp, jt.custom_jvp])
def test_nondiff_arguments_may_be_anything(kind: Any, wrap: Any) -> None:
    @functools.partial(kind, nondiff_argnums=(0, 2))
    def apply(g: Any, x: Any, mode: str = "twice") -> Any:
        return g(x) * 2

    if kind is jt.custom_vjp:

        def fwd(g: Any, x: Any, mode: str) -> Any:
            return apply(g, x, mode), x

        def bwd(g: Any, mode: str, x: Any, ct: Any) -> Any:
            assert mode == "twice"
            return (ct * g(x) * 100,)

        apply.defvjp(fwd, bwd)
    else:

        @apply.defjvp
        def rule(g: Any, mode: str, primals: Any, tangents: Any) -> Any:
            assert mode == "twice"
            return apply(g, *primals, mode), tangents[0] * g(primals[0]) * 100

    got = wrap(jt.grad(lambda x: jt.sum(apply(jt.sin, x))))(X)
    np.testing.assert_allclose(got, 100 * np.sin(X))
    got = wrap(jt.grad(lambda x: jt.sum(apply(g=jt.sin, x=x, mode="twice"))))(X)
    np.testing.assert_allclose(got, 100 * np.sin(X))


def test_defjvps(wrap: Any) -> None:
    @jt.custom_jvp
    def f(x: Any, y: Any, k: Any) -> Any:
        return x * y * k

    f.defjvps(lambda t, out, x, y, k: t * out, None, None)
    assert wrap(jt.grad(lambda x: f(x, 3.0, 2)))(5.0) == pytest.approx(30.0)
    assert wrap(jt.grad(lambda y: f(5.0, y, 2)))(3.0) == 0.0
    assert wrap(lambda x: jt.jvp(lambda x: f(x, x, 1), (x,), (1.0,))[1])(2.0) == pytest.approx(4.0)


def test_decorators_methods_and_names() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

        @functools.partial(jt.custom_vjp, nondiff_argnums=(0,))
        def times(self, x: Any) -> Any:
            """Documented."""
            return x * self.by

    Scale.times.defvjp(lambda self, x: (x * self.by, None), lambda self, r, ct: (ct * 1000,))
    assert Scale.times.__name__ == "times" and Scale.times.__doc__ == "Documented."
    assert jt.grad(lambda x: Scale(2.0).times(x))(1.0) == 1000
    assert "times" in repr(Scale.times)


# Closures


@pytest.mark.parametrize("kind", [jt.custom_vjp, jt.custom_jvp])
def test_closing_over_what_is_differentiated(kind: Any, wrap: Any) -> None:
    def times(w: Any) -> Any:
        @kind
        def f(x: Any) -> Any:
            return x * w

        if kind is jt.custom_vjp:
            f.defvjp(lambda x: (x * w, None), lambda _, ct: (ct * w * w,))
        else:
            f.defjvp(lambda p, t: (p[0] * w, t[0] * w * w))
        return f

    # With respect to its argument: the rule. Another derivative then goes through what it closes over.
    assert wrap(lambda w: jt.grad(times(w))(2.0))(3.0) == 9.0
    assert wrap(jt.grad(lambda w: jt.grad(times(w))(2.0)))(3.0) == 6.0
    # With respect to what it closes over: nobody knows.
    with pytest.raises(TypeError, match="closes over.*make the value an argument"):
        wrap(jt.grad(lambda w: times(w)(2.0 * w)))(3.0)


def test_closed_over_arrays_are_read_at_each_call() -> None:
    table = np.arange(3.0)

    @jt.custom_vjp
    def f(x: Any) -> Any:
        return jt.sum(x * table)

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * table * 10,))
    gradient = jt.jit(jt.grad(f))
    np.testing.assert_allclose(gradient(np.ones(3)), [0, 10, 20])
    table[:] = 5
    np.testing.assert_allclose(gradient(np.ones(3)), [50, 50, 50])


# What it is not evaluated for


def test_a_call_that_nothing_differentiates_is_a_plain_call() -> None:
    f = product_vjp()
    ran = []
    f.defvjp(lambda x, y: ran.append(1), lambda *_: ran.append(2))
    assert jt.jit(f)(1.0, 2.0) == pytest.approx(np.sin(1) * 2)
    np.testing.assert_allclose(jt.jit(jt.vmap(f))(X, X), np.sin(X) * X)
    jt.jit(jt.grad(lambda x: x * jt.sum(np.sin(X))))(1.0)
    assert not ran
    assert not any(op.name == "custom_vjp" for op in jt.jit(f).trace(1.0, 2.0).ops)


def test_forward_and_function_are_called_once_when_eager() -> None:
    """Outside of jit fwd sees values: it may branch on them, and hand them to NumPy."""
    calls = []

    @jt.custom_vjp
    def f(x: Any) -> Any:
        raise RuntimeError("fwd is called in its place")

    def fwd(x: Any) -> Any:
        calls.append(float(x))
        return (x * x if x > 0 else -x), x

    f.defvjp(fwd, lambda x, ct: (ct * 2 * x,))
    assert jt.value_and_grad(f)(3.0) == (9.0, 6.0)
    assert calls == [3.0]
    assert jt.grad(f)(-3.0) == -6.0


def test_the_op_is_in_the_graph_until_it_is_differentiated(wrap: Any) -> None:
    f = product_vjp()
    graph = jt.jit(jt.grad(lambda x: jt.sum(f(x, x)))).trace(X)
    verify(graph)
    assert [op.name for op in graph.ops].count("custom_vjp") == 1
    inlined = inline_calls(graph)
    verify(inlined)
    assert not any(op.name == "custom_vjp" for op in inlined.walk())
    again = jt.parse_graph(str(graph))
    assert str(again) == str(graph)


# Errors


def wrong(**change: Any) -> Any:
    @jt.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return {"out": x[0] + y}

    rules = {
        "fwd": lambda x, y: ({"out": x[0] + y}, None),
        "bwd": lambda r, ct: ((ct["out"], None), ct["out"]),
        **change,
    }
    f.defvjp(rules["fwd"], rules["bwd"])
    return lambda x: jt.sum(f((x, x), 2 * x)["out"])


def test_the_right_one_is_right(wrap: Any) -> None:
    np.testing.assert_allclose(wrap(jt.grad(wrong()))(X), np.full(5, 3.0))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"fwd": lambda x, y: x[0]}, "must return a pair"),
        ({"bwd": lambda r, ct: ct["out"]}, "one cotangent per argument, 2 of them"),
        ({"bwd": lambda r, ct: (ct["out"],)}, "one cotangent per argument, 2 of them"),
        ({"bwd": lambda r, ct: ([ct["out"]] * 2, None)}, r"(?s)\(\*, \*\).*\[\*, \*\]"),
        ({"bwd": lambda r, ct: (None, (ct["out"],))}, r"(?s)argument 1.*expected \*.*\(\*,\)"),
        ({"bwd": lambda r, ct: (None, ct["out"][:2])}, r"shape \(2,\).*\(5,\)"),
        ({"bwd": lambda r, ct: (None, jt.float32(1) * ct["out"].astype("f4"))}, "float32.*float64"),
        ({"bwd": lambda r, ct: (None, "zero")}, "no array, a str"),
    ],
)
def test_wrong_rules_are_named_with_both_structures_and_the_line(
    change: Any, message: str, wrap: Any
) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        wrap(jt.grad(wrong(**change)))(X)
    assert "test_custom.py" in str(caught.value)


def test_wrong_tangents() -> None:
    def with_rule(rule: Any) -> Any:
        f = jt.custom_jvp(lambda x: (x, x * 2))
        f.defjvp(rule)
        return lambda: jt.jvp(f, (X,), (X,))

    for rule, message in [
        (lambda p, t: p[0], "must return a pair"),
        (lambda p, t: (p[0], t[0]), r"(?s)structure \*.*\(\*, \*\)"),
        (lambda p, t: ((p[0], p[0]), [t[0], t[0]]), r"(?s)expected \(\*, \*\).*\[\*, \*\]"),
        (lambda p, t: ((p[0], p[0]), (t[0], t[0][1:])), r"shape \(4,\).*\(5,\)"),
    ]:
        with pytest.raises(TypeError, match=message):
            with_rule(rule)()


def test_a_function_without_a_rule_says_so() -> None:
    for kind, word in ((jt.custom_vjp, "defvjp"), (jt.custom_jvp, "defjvp")):
        with pytest.raises(TypeError, match=word):
            kind(jt.sin)(1.0)
    with pytest.raises(TypeError, match="callable"):
        jt.custom_vjp(3)
    with pytest.raises(TypeError, match="nondiff_argnums"):
        jt.custom_vjp(jt.sin, nondiff_argnums=(-1,))


# Programs


def newton(g: Any, x0: Any, *args: Any) -> Any:
    """A root of g(x, *args), by Newton's method, with a trip count known only at run time."""

    def step(state: Any) -> Any:
        x, _ = state
        new = x - g(x, *args) / jt.grad(g)(x, *args)
        return new, jt.abs(new - x)

    return jt.while_loop(lambda s: s[1] > 1e-12, step, (x0, jt.inf))[0]


@functools.partial(jt.custom_vjp, nondiff_argnums=(0,))
def root(g: Any, x0: Any, a: Any) -> Any:
    return newton(g, x0, a)


def root_fwd(g: Any, x0: Any, a: Any) -> Any:
    x = root(g, x0, a)
    return x, (x, a)


def root_bwd(g: Any, residuals: Any, ct: Any) -> Any:
    """The implicit function theorem: dx/da = -(dg/da) / (dg/dx)."""
    x, a = residuals
    gx, ga = jt.grad(g, (0, 1))(x, a)
    return None, -ct * ga / gx


root.defvjp(root_fwd, root_bwd)


def test_newton_by_the_implicit_function_theorem_and_through_the_loop(wrap: Any) -> None:
    def cubic(x: Any, a: Any) -> Any:
        return x * x * x - a

    def implicit(a: Any) -> Any:
        return root(cubic, a, a)

    def through(a: Any) -> Any:
        return newton(cubic, a, a)

    for a in (2.0, 5.0):
        value = a ** (1 / 3)
        assert wrap(implicit)(a) == pytest.approx(value)
        first, second = value / a / 3, -2 / 9 * value / a**2
        assert wrap(jt.grad(implicit))(a) == pytest.approx(first, rel=1e-9)
        assert wrap(jt.grad(through))(a) == pytest.approx(first, rel=1e-9)
        assert wrap(jt.grad(jt.grad(implicit)))(a) == pytest.approx(second, rel=1e-8)
        assert wrap(jt.grad(jt.grad(through)))(a) == pytest.approx(second, rel=1e-8)


def test_gradient_clipping_and_the_straight_through_trick(wrap: Any) -> None:
    clip = jt.custom_vjp(lambda x: x)
    clip.defvjp(lambda x: (x, None), lambda _, ct: (jt.clip(ct, -1.0, 1.0),))
    got = wrap(jt.grad(lambda x: jt.sum(clip(x) * 10 * x)))(X)
    np.testing.assert_allclose(got, 10 * X + np.clip(10 * X, -1, 1))

    def rounded(x: Any) -> Any:
        return x + jt.stop_gradient(jt.round(x) - x)

    np.testing.assert_allclose(wrap(rounded)(X), np.round(X))
    np.testing.assert_allclose(wrap(jt.grad(lambda x: jt.sum(rounded(x) ** 2)))(X), 2 * np.round(X))
    np.testing.assert_allclose(
        wrap(jt.vmap(jt.grad(lambda x: rounded(x) ** 2)))(X), 2 * np.round(X)
    )


def test_log1pexp_stays_finite(wrap: Any) -> None:
    """The example of JAX's documentation: a stable derivative where the derived one is NaN."""

    @jt.custom_jvp
    def log1pexp(x: Any) -> Any:
        return jt.log(1 + jt.exp(x))

    @log1pexp.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return log1pexp(x), (1 - 1 / (1 + jt.exp(x))) * t

    assert wrap(jt.grad(log1pexp))(1000.0) == 1.0
    assert np.isnan(wrap(jt.grad(lambda x: jt.log(1 + jt.exp(x))))(1000.0))
    np.testing.assert_allclose(wrap(jt.vmap(jt.grad(log1pexp)))(X), 1 / (1 + np.exp(-X)))


@jt.custom_vjp
def cube(x: Any) -> Any:
    return x**3


cube.defvjp(
    lambda x: (x**3, (x, 2)),
    lambda saved, ct: (ct * 3 * saved[0] ** 2 if saved[0] > 0 else -ct * 3 * saved[0] ** 2,),
)


@jt.custom_jvp
def cube_forward(x: Any) -> Any:
    return x**3


cube_forward.defjvp(
    lambda primals, tangents: (
        cube_forward(*primals),
        tangents[0] * 3 * primals[0] ** 2 * [-1.0, 1.0][int(primals[0] > 0)],
    )
)


@pytest.mark.parametrize("f", [cube, cube_forward])
def test_rules_branch_on_the_values_of_an_eager_derivative(f: Any) -> None:
    for x in (2.0, -2.0):
        sign = np.sign(x)
        assert jt.grad(f)(x) == 3 * x * x * sign
        assert jt.grad(jt.grad(f))(x) == jt.hessian(f)(x) == 6 * x * sign
        assert jt.vjp(f, x)[1](2.0) == (6 * x * x * sign,)
        assert jt.linearize(jt.grad(f), x)[1](2.0) == 12 * x * sign
        assert jt.grad(lambda x: f(2 * x) + x)(x) == 24 * x * x * sign + 1
    found = jt.jacrev(lambda v: jt.stack([f(v[0]), f(v[1])]))(np.array([2.0, -2.0]))
    np.testing.assert_array_equal(found, np.diag([12.0, -12.0]))
    with pytest.raises(TypeError, match="truth value|int"):
        jt.jit(jt.grad(f))(2.0)
    with pytest.raises(TypeError, match="truth value|int"):
        jt.vmap(jt.grad(f))(np.ones(2))


def test_rules_do_not_lose_derivatives_to_numbers() -> None:
    @jt.custom_vjp
    def f(x: Any) -> Any:
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, ct: (ct * 2 * float(x),))
    with pytest.raises(TypeError, match="derivative would be lost"):
        jt.grad(f)(2.0)
    f.defvjp(lambda x: (x * x, x), lambda x, ct: (ct * 2 * float(jt.stop_gradient(x)),))
    assert jt.grad(f)(2.0) == 4


def test_what_an_eager_derivative_knows_is_known_where_a_function_is_batched() -> None:
    def f(x: Any) -> Any:
        return jt.vmap(lambda y: y * x if x > 0 else -y * x)(np.ones(3)).sum()

    assert jt.grad(f)(2.0) == 3 and jt.grad(f)(-2.0) == -3
    assert jt.grad(lambda x: jt.vmap(lambda y: y * float(x))(np.ones(3)).sum())(2.0) == 3
