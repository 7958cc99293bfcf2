"""The problems in lineax, optimistix and diffrax, jitted, in 64 bits; some with several solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import lineax
import optimistix

from . import problems as p
from .problems import TOLERANCE

jax.config.update("jax_enable_x64", True)
T = {"rtol": TOLERANCE, "atol": TOLERANCE}
FORMS: dict[str, dict[str, Callable[..., Any]]] = {}


def forms(**solvers: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters the function, whose last argument is a solver, with each of them."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        def bound(solver: Any) -> Callable[..., Any]:
            return lambda *inputs: function(*inputs, solver)

        FORMS[function.__name__] = {name: bound(solver) for name, solver in solvers.items()}
        return function

    return enter


def system(product: Callable[..., Any], b: Any, tags: Any = ()) -> Any:
    like = jax.eval_shape(lambda: b)
    return lineax.FunctionLinearOperator(lambda v: product(jnp, v), like, tags)


@forms(CG=lineax.CG(**T))
def cg(b: Any, solver: Any) -> Any:
    operator = system(p.diffusion, b, lineax.positive_semidefinite_tag)
    return lineax.linear_solve(operator, b, solver).value


@forms(GMRES=lineax.GMRES(**T))
def gmres(b: Any, solver: Any) -> Any:
    return lineax.linear_solve(system(p.convection, b), b, solver).value


@forms(BiCGStab=lineax.BiCGStab(**T))
def bicgstab(b: Any, solver: Any) -> Any:
    return lineax.linear_solve(system(p.convection, b), b, solver).value


@forms(Newton=optimistix.Newton(**T), Dogleg=optimistix.Dogleg(**T))
def root(k: Any, solver: Any) -> Any:
    start = -jnp.ones(p.UNKNOWNS)
    found = optimistix.root_find(lambda x, k: p.tridiagonal(jnp, x, k), solver, start, k)
    return found.value


@forms(Newton=optimistix.Newton(**T), Dogleg=optimistix.Dogleg(**T))
def roots(mean: Any, eccentricity: Any, solver: Any) -> Any:
    def one(m: Any, e: Any) -> Any:
        start = jnp.stack([m, jnp.ones_like(m)])
        equations = lambda x, _: p.orbits(jnp, x, m, e)  # noqa: E731
        return optimistix.root_find(equations, solver, start).value

    return jax.vmap(one)(mean, eccentricity)


@forms(BFGS=optimistix.BFGS(**T))
def bfgs(x: Any, solver: Any) -> Any:
    loss = lambda x, _: p.rosenbrock(jnp, x)  # noqa: E731
    return optimistix.minimise(loss, solver, x, max_steps=1000).value


@forms(
    LM=optimistix.LevenbergMarquardt(**T),
    IndirectLM=optimistix.IndirectLevenbergMarquardt(**T),
    Dogleg=optimistix.Dogleg(**T),
)
def fit(t: Any, y: Any, solver: Any) -> Any:
    residuals = lambda q, _: p.peak(jnp, q, t) - y  # noqa: E731
    return optimistix.least_squares(residuals, solver, jnp.ones(4)).value


def _hunted(parameters: Any, at: Any, solver: Any, adjoint: Any) -> Any:
    found = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, q: p.hunt(jnp, t, y, q)),
        solver,
        *p.SPAN,
        None,
        jnp.asarray(p.ANIMALS),
        parameters,
        saveat=diffrax.SaveAt(ts=at) if at is not None else diffrax.SaveAt(t1=True),
        stepsize_controller=diffrax.PIDController(**T),
        adjoint=adjoint,
    )
    return found.ys.T


@forms(Dopri5=diffrax.Dopri5(), Tsit5=diffrax.Tsit5(), Dopri8=diffrax.Dopri8())
def hunt(parameters: Any, solver: Any) -> Any:
    checkpointed = diffrax.RecursiveCheckpointAdjoint()
    return _hunted(parameters, jnp.asarray(p.MOMENTS), solver, checkpointed)


@forms(Kvaerno5=diffrax.Kvaerno5(), Kvaerno4=diffrax.Kvaerno4(), Kvaerno3=diffrax.Kvaerno3())
def robertson(rates: Any, solver: Any) -> Any:
    found = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, k: p.robertson(jnp, t, y, k)),
        solver,
        0.0,
        p.LATE[-1],
        None,
        jnp.array([1.0, 0.0, 0.0]),
        rates,
        saveat=diffrax.SaveAt(ts=jnp.asarray(p.LATE)),
        stepsize_controller=diffrax.PIDController(100 * TOLERANCE, TOLERANCE / 100),
    )
    return found.ys.T


def _at_end(parameters: Any, solver: Any, adjoint: Any) -> Any:
    loss = lambda q: jnp.sum(_hunted(q, None, solver, adjoint) ** 2)  # noqa: E731
    return jax.grad(loss)(parameters)


@forms(Dopri5=diffrax.Dopri5(), Tsit5=diffrax.Tsit5())
def steps_grad(parameters: Any, solver: Any) -> Any:
    return _at_end(parameters, solver, diffrax.RecursiveCheckpointAdjoint())


@forms(Dopri5=diffrax.Dopri5(), Tsit5=diffrax.Tsit5())
def adjoint_grad(parameters: Any, solver: Any) -> Any:
    return _at_end(parameters, solver, diffrax.BacksolveAdjoint())


@forms(Newton=optimistix.Newton(**T), Dogleg=optimistix.Dogleg(**T))
def root_grad(k: Any, solver: Any) -> Any:
    return jax.grad(lambda k: jnp.sum(root(k, solver) ** 2))(k)[None]


@forms(LU=lineax.LU())
def linear_grad(a: Any, b: Any, solver: Any) -> Any:
    def loss(a: Any, b: Any) -> Any:
        return jnp.sum(lineax.linear_solve(lineax.MatrixLinearOperator(a), b, solver).value ** 2)

    by_a, by_b = jax.grad(loss, argnums=(0, 1))(a, b)
    return jnp.concatenate([by_a, by_b[:, None]], axis=1)


def ready(name: str, inputs: tuple[Any, ...]) -> dict[str, Callable[[], Any]]:
    """Calls of the jitted programs, by the solvers' names."""
    arguments = [jnp.asarray(x, jnp.float64) for x in inputs]

    def call(function: Callable[..., Any]) -> Callable[[], Any]:
        compiled = jax.jit(function)
        return lambda: jax.block_until_ready(compiled(*arguments))

    return {solver: call(function) for solver, function in FORMS[name].items()}
