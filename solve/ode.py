"""`solve_ivp`: ordinary differential equations, with the arguments and results of
`scipy.integrate.solve_ivp`."""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from . import common, ode_events
from .common import Function, refuse
from .ode_adjoint import with_adjoint
from .ode_methods import METHODS, STIFF, polynomial
from .ode_steps import END, EVENT, TOO_MANY, TOO_SMALL, Limits, Plan, Problem, integrate
from .results import OptimizeResult

_MESSAGES = {
    END: "The solver successfully reached the end of the integration interval.",
    EVENT: "A termination event occurred.",
    TOO_SMALL: "Required step size is less than spacing between numbers.",
    TOO_MANY: "There are more steps, or events, than max_steps.",
}


class OdeSolution:
    """The solution between the ends of the integration: `sol(t)` for a number or a vector of times."""

    def __init__(self, ts: Any, ys: Any, dense: Any, count: Any) -> None:
        self.ts, self._ys, self._dense, self._count = ts, ys, dense, count

    def __call__(self, t: Any) -> Any:
        t = common.floats(t)
        flat = jt.reshape(t, (-1,))
        size = self._dense.shape[0]
        forward = jt.where(self.ts[self._count] >= self.ts[0], 1.0, -1.0)
        made = np.arange(1, size + 1) < self._count
        inner = jt.where(made, forward * self.ts[1 : size + 1], np.inf)
        k = jt.searchsorted(inner, forward * flat)
        x = (flat - self.ts[k]) / (self.ts[k + 1] - self.ts[k])
        y = jt.vmap(polynomial)(self._ys[k], self._dense[k], x)
        return jt.reshape(y.T, (self._ys.shape[1], *t.shape))


jt.register_pytree(
    OdeSolution,
    lambda s: ([s.ts, s._ys, s._dense, s._count], None),
    lambda _, parts: OdeSolution(*parts),
)


def solve_ivp(
    fun: Function,
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    args: Any = (),
    *,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    first_step: Any = None,
    max_step: Any = np.inf,
    jac: Any = None,
    max_steps: int | None = None,
    gradient: str = "steps",
    checkpoint: str | int = "all",
) -> OptimizeResult:
    """`scipy.integrate.solve_ivp`: y(t) with `dy/dt = fun(t, y, *args)`, from `t_span[0]`, where it is
    y0, to `t_span[1]`.

    method: "RK45" (Dormand and Prince, order 5), "RK23", or for stiff problems "Rodas4", a Rosenbrock
    method of order 4, whose exact Jacobian is made if `jac` does not give it; "Radau", "BDF" and "LSODA"
    stand for it. t_eval: times to give; without, all steps. events: functions of `(t, y, *args)` whose
    zeros are found; SciPy's attributes `terminal` and `direction` say what they do.

    The result has `t`, `y` of shape (n, times), `sol` with dense_output, `t_events` and `y_events`,
    `nfev`, `status`, `success`, `message`. In compiled code memory for steps is of a fixed size,
    `max_steps`; plain calls find one.

    gradient: "steps" is the derivative of the numbers that are computed, by the reverse of the loop,
    whose memory `checkpoint` bounds as in `jt.while_loop`; both modes. "adjoint" solves the adjoint
    equation backwards in time, with the memory of one step; for y0, t_eval and floats in `args`, in
    reverse mode.

    Raises jt.errors.ArgumentError for unknown methods, and for shapes that do not fit.

    >>> res = jt.solve.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], t_eval=[0.5, 1.0], rtol=1e-8)
    >>> np.round(res.y, 5), bool(res.success)
    (array([[0.60653, 0.36788]]), True)
    """
    name = "Rodas4" if method in STIFF else method
    common.function_of(fun, "fun", "t and y")
    common.choose("method", method, (*METHODS, *STIFF), "solve_ivp")
    common.choose("gradient", gradient, ("steps", "adjoint"), "solve_ivp")
    common.above_zero(rtol=rtol, first_step=first_step, max_step=max_step, max_steps=max_steps)
    start, end = common.pair_of(t_span, "t_span")
    y0 = common.floats(y0)
    if y0.ndim > 1:
        refuse(f"y0 has shape {y0.shape}", "give a vector; reshape it in the function.")
    y0 = jt.reshape(y0, (-1,))
    at = None if t_eval is None else _times(t_eval, start, end)
    watched = (
        () if events is None else tuple(events) if isinstance(events, (list, tuple)) else (events,)
    )
    if gradient == "adjoint" and (at is None or watched or dense_output):
        refuse(
            "the adjoint gives what t_eval asks for, and no events or dense output",
            'give t_eval=[t1], or leave gradient="steps".',
        )
    kinds = ode_events.kinds(watched)
    limits = Limits(rtol, atol, first_step, max_step)
    steps = max(64, min(1024, 2**20 // max(y0.size, 1))) if max_steps is None else int(max_steps)
    plan = Plan(name, at is None or dense_output, dense_output, steps, kinds, checkpoint)

    def solved(plan: Plan) -> dict[str, Any]:
        return _solve(
            fun, jac, watched, (start, end), y0, at, common.arguments(args), limits, plan, gradient
        )

    fields = solved(plan)
    if max_steps is None and not jt.is_traced(fields["status"]):
        fields = _with_room(solved, fields, plan)
    return _presented(fields, at, watched, plan, first_step is not None)


def _times(t_eval: Any, start: Any, end: Any) -> Any:
    """Times to give, which lie between the ends, in order."""
    at = jt.reshape(common.floats(t_eval), (-1,))
    if not jt.is_traced(at) and not jt.is_traced(start) and not jt.is_traced(end):
        way = np.concatenate([[start], at, [end]]) * (1 if end >= start else -1)
        if (np.diff(way) < 0).any():
            what = f"t_eval={at} does not go from {start} to {end}"
            refuse(
                what, "sort it, and leave out what is not between the ends of t_span.", ValueError
            )
    return at


def _with_room(solved: Function, fields: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """The fields, again with more memory for steps while there was too little."""
    while fields["status"] == TOO_MANY:
        plan = plan._replace(steps=16 * plan.steps)
        fields = solved(plan)
    return fields


@jt.jit(static_argnames=("plan", "gradient"))
def _solve(
    fun: Function,
    jac: Any,
    events: Any,
    span: Any,
    y0: Any,
    at: Any,
    args: Any,
    limits: Any,
    plan: Plan,
    gradient: str,
) -> dict[str, Any]:
    def f(t: Any, y: Any, *args: Any) -> Any:
        slope = fun(t, y, *args)
        slope = jt.stack(slope) if isinstance(slope, (list, tuple)) else jt.asarray(slope)
        slope = jt.reshape(slope, (-1,)) if slope.ndim == 0 else slope
        if slope.shape != y.shape:
            refuse(
                f"fun gives shape {slope.shape}, and y has {y.shape}",
                "give dy/dt, as long as y; fun is called as fun(t, y, *args).",
            )
        return slope.astype(y.dtype)

    t0, end = span
    zero = jt.zeros((), np.float64)
    span = (t0 + zero, end + zero)
    if gradient == "adjoint":
        return with_adjoint(f, span, y0, at, args, limits, plan)

    def jacobian(t: Any, y: Any) -> Any:
        return jt.asarray(jac(t, y, *args) if callable(jac) else jac)

    def bound(function: Function) -> Function:
        return lambda t, y: function(t, y, *args)

    functions = bound(f), None if jac is None else jacobian, tuple(map(bound, events))
    return common.numbers(integrate(Problem(*functions, span, at, limits, plan), y0))


def _first(rows: Any, count: Any) -> Any:
    """So many of the rows; in compiled code an array whose length is known when it runs."""
    return rows[np.arange(rows.shape[0]) < count]


def _presented(
    fields: dict[str, Any],
    at: Any,
    events: tuple[Function, ...],
    plan: Plan,
    first_is_given: bool,
) -> OptimizeResult:
    """The result of what was written: cut to the length that it has."""
    status, steps = fields["status"], fields["steps"]
    calls = METHODS[plan.method].calls * fields["tries"] + (1 if first_is_given else 2)
    result: dict[str, Any] = {}
    if at is None:
        result["t"] = _first(fields["times"], steps + 1)
        result["y"] = _first(fields["all"], steps + 1).T
    elif any(kind.most for kind in plan.events) or not jt.is_traced(status):
        result["t"] = _first(at, fields["written"])
        result["y"] = _first(fields["rows"], fields["written"]).T
    else:  # SciPy gives fewer where it fails: these are NaN
        result["t"], result["y"] = at, fields["rows"].T
    if plan.dense:
        parts = fields["times"], fields["all"], fields["dense"], steps
        result["sol"] = OdeSolution(*parts)
    if events:
        record = fields["events"]
        counts = [record["count"][i] for i in range(len(events))]
        result["t_events"] = [_first(record["t"][i], k) for i, k in enumerate(counts)]
        result["y_events"] = [_first(record["y"][i], k) for i, k in enumerate(counts)]
    result |= {"nfev": calls, "status": status, "success": status >= 0}
    return OptimizeResult(_MESSAGES, **result)
