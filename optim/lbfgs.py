"""L-BFGS: steps along the gradient times an inverse of the second derivative, of which the latest steps
tell.

All parameters are one vector here, but for those of the last step, which are trees like them: so these
are overwritten where they are. What is known of the second derivative, and the search along a step,
are those of `jt.solve`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import jitney as jt

from .classes import Configured
from .leaves import cast, downhill, overwrite, real_of, working
from .scaling import scale, scale_by_learning_rate
from .transform import State, Transform, ask_for_params, chain
from .trees import Tree, beside, check_each, check_some, dtype_of, is_trained, refuse

__autograph__ = False  # see `leaves`


class Last(NamedTuple):
    """The state: parameters and gradients of the last step, and what steps have told."""

    params: Any
    grads: Any
    known: Any
    count: Any


def lbfgs(
    learning_rate: Any = None, memory_size: int = 10, scale_init_precond: bool = True
) -> Transform:
    """L-BFGS without a line search, as Optax's with `linesearch=None`; `LBFGS` has one.

    >>> opt = jt.optim.lbfgs()
    >>> params = np.array([1.0, 2.0])
    >>> state = opt.init(params)
    >>> for _ in range(5):
    ...     updates, state = opt.update(np.array([1.0, 10.0]) * params, state, params)
    ...     params = jt.optim.apply_updates(params, updates)
    >>> bool(abs(params).max() < 1e-3)
    True
    """
    rate = scale(-1.0) if learning_rate is None else scale_by_learning_rate(learning_rate)
    return chain(scale_by_lbfgs(memory_size, scale_init_precond), rate)


def scale_by_lbfgs(
    memory_size: int = 10,
    scale_init_precond: bool = True,
    *,
    first_norm: int = 2,
    least: float = -np.inf,
) -> Transform:
    """L-BFGS's direction, made of the latest `memory_size` steps and changes of the gradient; the first
    one is no longer than 1. A step is remembered whose product with the change of the gradient is
    above `least` and not 0.

    With `first_norm=1, least=1e-10` it is PyTorch's.
    """
    if memory_size < 1:
        refuse(f"L-BFGS cannot remember {memory_size} steps", "give how many: 1 or more.")

    def init(params: Tree) -> State:
        leaves, structure = jt.tree.flatten(params)
        x = flat(leaves, leaves)
        known = jt.solve.InverseHessian.empty(x.size, memory_size, x.dtype)
        x, g = (jt.tree.unflatten(structure, _wide([None] * len(leaves), leaves)) for _ in "xg")
        return Last(x, g, known, np.int64(0))

    def update(updates: Tree, state: State, params: Tree = None, **more: Any) -> tuple[Tree, State]:
        if params is None:
            ask_for_params("L-BFGS")
        leaves, structure = jt.tree.flatten(params)
        given = beside(params, updates, "gradients")
        check_each(params, given, leaves)
        now, grads = _wide(leaves, leaves), _wide(given, leaves)
        is_first = state.count == 0
        s = _change(params, now, state.params, leaves)
        y = _change(params, grads, state.grads, leaves)
        s, y = (jt.where(is_first, np.zeros_like(v), v) for v in (s, y))
        g = flat(given, leaves)
        known = state.known.updated(s, y, least)
        short = np.minimum(1.0, 1 / jt.linalg.norm(g, first_norm)).astype(g.dtype)
        rest = known.scale if scale_init_precond else jt.ones_like(known.scale)
        direction = known.product(g, jt.where(is_first & scale_init_precond, short, rest))
        rows = zip(parts(direction, leaves), given, strict=True)
        new = [None if g is None else u for u, g in rows]
        x, g = (jt.tree.unflatten(structure, values) for values in (now, grads))
        return jt.tree.unflatten(structure, new), Last(x, g, known, state.count + 1)

    return Transform(init, update)


class LBFGS(Configured):
    """L-BFGS. `minimize` takes up to `max_iter` steps in one go, and ends earlier where no gradient is
    above `tolerance_grad`, no parameter or loss changes by more than `tolerance_change`, or the loss was
    asked for `max_eval` times (1.25 times `max_iter`).

    With `line_search_fn="strong_wolfe"` the length of each step is searched for, from `lr` times
    L-BFGS's; without, it is that. `step(grads)` takes one step without a search.

    >>> w = np.array([-1.2, 1.0])
    >>> opt = jt.optim.LBFGS(w, max_iter=100, line_search_fn="strong_wolfe")
    >>> fall = jt.jit(lambda: opt.minimize(lambda w: 100 * (w[1] - w[0] ** 2) ** 2 + (1 - w[0]) ** 2))
    >>> float(fall().round(3)), w.round(3)
    (24.2, array([1., 1.]))
    """

    @staticmethod
    def rule(lr: Any, history_size: int) -> Transform:
        step = scale_by_lbfgs(history_size, first_norm=1, least=1e-10)
        return chain(step, scale_by_learning_rate(lr))

    def __init__(
        self,
        params: Tree,
        lr: Any = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            refuse(
                f"L-BFGS has no line search {line_search_fn!r}",
                'give line_search_fn="strong_wolfe", or None.',
            )
        super().__init__(params, lr, history_size)
        self.max_iter = max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.searches = line_search_fn is not None

    def minimize(self, loss: Callable[..., Any], *args: Any, has_aux: bool = False) -> Any:
        """Steps down `loss(params, *args)`; returns what that was before.

        Compile it: not compiled, all evaluations and steps run one by one in Python.
        """
        result, grads = self.compute_gradients(loss, *args, has_aux=has_aux)
        given = beside(self.params, grads, "gradients")
        check_some(given)
        every = jt.tree.leaves(self.params)
        places = [i for i, g in enumerate(given) if g is not None]
        leaves = [every[i] for i in places]

        def vectors(result: Any, given: Sequence[Any]) -> tuple[Any, Any]:
            g = flat(downhill([given[i] for i in places]), leaves)
            return cast(jt.asarray(result[0] if has_aux else result), g.dtype), g

        def evaluate(x: Any) -> tuple[Any, Any]:
            _put(x, leaves)
            result, grads = self.compute_gradients(loss, *args, has_aux=has_aux)
            return vectors(result, beside(self.params, grads, "gradients"))

        def body(carry: Any) -> Any:
            x, f, g, n, evaluations, _ = carry
            rate = self._rate()
            p = flat(self._updates(parts(g, leaves), places), leaves)
            falls = g @ p <= -self.tolerance_change * rate
            if self.searches:
                most = jt.where(falls, self.max_eval - evaluations, 0)
                a, f_new, g_new, calls = jt.solve.wolfe_search(evaluate, x, f, g, p, 1.0, most)
                p = a * p
            else:
                p = jt.where(falls, p, 0 * p)
                calls, more = 1, n + 1 < self.max_iter
                f_new, g_new = jt.cond(more, lambda: evaluate(x + p), lambda: (f, g))
            _put(x + p, leaves)
            least = self.tolerance_change
            moves = (np.max(np.abs(p)) > least) & (np.abs(f_new - f) >= least)
            n, evaluations = n + 1, evaluations + calls
            going = falls & moves & self._is_steep(g_new)
            going &= (n < self.max_iter) & (evaluations < self.max_eval)
            return x + p, f_new, g_new, n, evaluations, going

        f, g = vectors(result, given)
        carry = (flat(leaves, leaves), f, g, 0, 1, self._is_steep(g))
        jt.while_loop(lambda carry: carry[5], body, carry)
        return result

    def _updates(self, grads: Sequence[Any], places: Sequence[int]) -> list[Any]:
        """The next updates in those places of the parameters; the state learns of the gradients."""
        tree: list[Any] = [None] * len(jt.tree.leaves(self.params))
        for i, g in zip(places, grads, strict=True):
            tree[i] = g
        given = jt.tree.unflatten(jt.tree.structure(self.params), tree)
        updates, state = self.transform.update(given, self.state, self.params, **self.more)
        overwrite(jt.tree.leaves(self.state), jt.tree.leaves(state))
        found = beside(self.params, updates, "updates")
        return [found[i] for i in places]

    def _rate(self) -> Any:
        rate = self.rates[0]
        return rate(self.state[0].count) if callable(rate) else rate

    def _is_steep(self, g: Any) -> Any:
        return np.max(np.abs(g)) > self.tolerance_grad


def _put(vector: Any, leaves: Sequence[Any]) -> None:
    overwrite(leaves, parts(vector, leaves))


def _wide(values: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
    """The values that stand beside the trained ones of the leaves in the dtypes in which they are
    computed with, 0 for None; and None beside the others."""
    found: list[Any] = []
    for v, p in zip(values, leaves, strict=True):
        v = np.zeros_like(p) if v is None and is_trained(p) else v
        found.append(cast(v, working(dtype_of(p))) if is_trained(p) else None)
    return found


def _change(params: Tree, now: Sequence[Any], before: Tree, leaves: Sequence[Any]) -> Any:
    """What was added to values in the latest step, as a vector."""
    pairs = zip(now, beside(params, before, "state"), strict=True)
    return flat([None if v is None else v - old for v, old in pairs], leaves)


def flat(values: Sequence[Any], leaves: Sequence[Any]) -> Any:
    """The values that stand beside the trained ones of the leaves as one real vector; 0 for None."""
    trained = [(v, p) for v, p in zip(values, leaves, strict=True) if is_trained(p)]
    dtype = np.result_type(*[real_of(p) for _, p in trained])
    rows = []
    for v, p in trained:
        v = jt.reshape(np.zeros_like(p) if v is None else v, (-1,))
        halves = [v.real, v.imag] if dtype_of(v).kind == "c" else [v]
        rows += [cast(half, dtype) for half in halves]
    return jt.concatenate(rows)


def parts(vector: Any, leaves: Sequence[Any]) -> list[Any]:
    """What `flat` made the vector of; None beside leaves that are not trained."""
    found: list[Any] = []
    start = 0
    for p in leaves:
        if not is_trained(p):
            found.append(None)
            continue
        size, dtype = int(np.prod(np.shape(p))), dtype_of(p)
        v = vector[start : start + size]
        if dtype.kind == "c":
            start += size
            v = v + 1j * vector[start : start + size]
        start += size
        found.append(jt.reshape(cast(v, dtype), np.shape(p)))
    return found
