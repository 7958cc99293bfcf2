"""The face of PyTorch: an object that knows its parameters, and moves them where they are.

    opt = optim.Adam(model, 1e-3)

    @jt.jit
    def train(x, y):
        return opt.minimize(loss, x, y)  # loss(model, x, y)

A step runs the rule of the other face, and writes what it returns into the arrays of the parameters
and of the state. Compiled, nothing is copied: `jit(inplace="require")` accepts it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import jitney as jt

from .leaves import cast, downhill, moved_all, overwrite
from .transform import Transform, check_transforms
from .trees import Tree, beside, check_some, dtype_of, is_trained, refuse


class Optimizer:
    """Any transformation, in place.

    `params` is a module or a tree of arrays, which are changed; `state` a tree of arrays, which are the
    optimiser's own. Saving both, and writing them back, goes on with the same bits.

    >>> params = {"w": np.array([2.0, -4.0])}
    >>> opt = jt.optim.Optimizer(params, jt.optim.chain(jt.optim.clip(1.0), jt.optim.sgd(0.5)))
    >>> float(opt.minimize(lambda p: (p["w"] ** 2).sum()))
    20.0
    >>> params
    {'w': array([ 1.5, -3.5])}
    """

    if not TYPE_CHECKING:
        __getattr__ = jt.errors.elsewhere.of_objects(
            init="jt.optim.adam(1e-3), a rule that has init and update",
            param_groups="groups=[(jt.nn.path('head'), {'lr': 1e-4})] where it is made",
            state_dict="jt.train.save(folder, {'model': model, 'optimiser': optimiser})",
            update="optimiser.step(grads), or jt.optim.adam(1e-3), a rule that has init and update",
            zero_grad="optimiser.minimize(loss, x, y) or optimiser.step(grads) alone: nothing is kept",
        )

    def __init__(self, params: Tree, transform: Transform) -> None:
        _check_params(params)
        check_transforms((transform,), type(self).__name__)
        self.params = params
        self.transform = transform
        self.state: Tree = jt.tree.map(np.array, transform.init(params))

    def step(self, grads: Tree) -> None:
        """Moves the parameters. `grads` is a tree like them, with None where nothing is trained."""
        params = jt.tree.leaves(self.params)
        given = beside(self.params, grads, "gradients")
        check_some(given)
        grads = jt.tree.unflatten(jt.tree.structure(self.params), downhill(given))
        updates, state = self.transform.update(grads, self.state, self.params, **self.more)
        overwrite(jt.tree.leaves(self.state), jt.tree.leaves(state))
        overwrite(params, moved_all(params, beside(self.params, updates, "updates")))

    apply_gradients = step

    def compute_gradients(self, loss: Callable[..., Any], *args: Any, has_aux: bool = False) -> Any:
        """`(loss(params, *args), gradients)`, to be looked at or changed before `step`.

        With `has_aux` the loss function returns `(loss, more)`, and so does this in its place. Under
        `scale_loss` the gradients are multiplied by the scale; the loss is not.
        """
        if not callable(loss):
            refuse(
                f"the loss is {jt.errors.describe(loss)}, and no function of the parameters",
                "write opt.minimize(loss, *args), where loss(params, *args) computes it.",
                jt.errors.ArgumentError,
            )
        scale = self.state["scale"] if self._scales else None

        def scaled(params: Tree, *args: Any) -> Any:
            result = loss(params, *args)
            value = result[0] if has_aux else result
            return value if scale is None else value * cast(scale, dtype_of(value)), result

        (_, result), grads = jt.value_and_grad(scaled, has_aux=True)(self.params, *args)
        return result, grads

    def minimize(self, loss: Callable[..., Any], *args: Any, has_aux: bool = False) -> Any:
        """One step down `loss(params, *args)`; returns what that was before."""
        value, grads = self.compute_gradients(loss, *args, has_aux=has_aux)
        self.step(grads)
        return value

    @property
    def more(self) -> dict[str, Any]:
        """What the transformation is told beside gradients, state and parameters."""
        return {}

    @property
    def slots(self) -> dict[str, Tree]:
        """What is kept beside the parameters, by name: trees like them; `opt.slots["mean"]["w"]`."""
        found: dict[str, Tree] = {}
        _collect(self.state, found)
        return found

    @property
    def _scales(self) -> bool:
        return isinstance(self.state, dict) and "scale" in self.state


def _collect(state: Tree, found: dict[str, Tree]) -> None:
    if isinstance(state, tuple):
        for part in state:
            _collect(part, found)
    elif isinstance(state, dict):
        for name, part in state.items():
            if name == "inner":
                _collect(part, found)
            elif not (isinstance(part, np.ndarray) and part.ndim == 0):
                found[name] = part


def _check_params(params: Tree) -> None:
    """There are parameters, and they are arrays that can be changed."""
    missing = jt.nn.unbuilt(params)
    if missing:
        refuse(
            f"an optimiser has to know the parameters, and nothing has built {', '.join(missing)}",
            "write nn.init(model, example) first, or call the model once, or give the sizes of inputs.",
            jt.errors.ArgumentError,
        )
    leaves = jt.tree.leaves(params)
    if not any(map(is_trained, leaves)):
        refuse(
            "there is nothing to train: no leaf of the parameters is an array of floats",
            "give a module or a tree of float arrays.",
            jt.errors.ArgumentError,
        )
    for leaf in leaves:
        read_only = isinstance(leaf, np.ndarray) and not leaf.flags.writeable
        if is_trained(leaf) and (read_only or not hasattr(leaf, "__setitem__")):
            kind = f"{'read-only ' * read_only}{type(leaf).__name__}"
            refuse(
                f"a parameter is a {kind}, which cannot be changed in place",
                "make it an array, np.array(x), or use the functions: opt.update, optim.apply_updates.",
                jt.errors.ArgumentError,
                parameter=leaf,
            )
