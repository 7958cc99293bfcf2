"""From the outputs of compiled code to what the user's function returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...runtime.cuda.array import DeviceArray
from ..data import pytree
from .traced import Result, Traced


def finisher(
    traced: Traced, present: Callable[[Result, list[Any], Sequence[Any]], Any] | None = None
) -> Callable[[list[Any], Sequence[Any]], Any]:
    """A function from the graph's outputs and its inputs to what the user's function returns."""
    results, tree = traced.results, traced.out_tree
    arrays = all(
        r.output is not None and (present or not r.scalar) and not r.views for r in results
    )
    present = present or _present
    if len(results) == 1 and tree.is_leaf():
        (result,) = results
        if arrays:
            (position,) = (r.output for r in results)
            assert position is not None
            return lambda outputs, given: outputs[position]
        return lambda outputs, given: present(result, outputs, given)
    if arrays:
        positions = [r.output for r in results if r.output is not None]
        simple = pytree.flatten(tuple(results))[1]
        if tree == simple:
            return lambda outputs, given: tuple([outputs[i] for i in positions])

    def finish(outputs: list[Any], inputs: Sequence[Any]) -> Any:
        return pytree.unflatten(tree, [present(r, outputs, inputs) for r in results])

    return finish


def _present(result: Result, outputs: list[Any], inputs: Sequence[Any]) -> Any:
    if result.output is not None:
        array = outputs[result.output]
        for view in result.views:
            array = view(array)
        if not result.scalar:
            return array
        return array.item() if result.weak else array[()]
    if result.argument is not None:
        value = inputs[result.argument]
        if result.views and isinstance(value, (bool, int, float, complex)):
            value = np.asarray(value)
        for view in result.views:
            value = view(value)
        return value
    return result.static


def device_finisher(traced: Traced) -> Callable[[list[Any], Sequence[Any]], Any]:
    """A function from the outputs and the inputs of a run to what the user's function returns."""
    return finisher(traced, _present_on_device)


def device_effects_finisher(traced: Traced) -> Callable[[list[Any], Sequence[Any]], Any]:
    """The same of the leaves of effects: what goes back into the place of a Python number is one."""
    finish = device_finisher(traced)
    numbers = [k for k, result in enumerate(traced.results) if result.weak and result.scalar]

    def finish_effects(outputs: list[Any], inputs: Sequence[Any]) -> list[Any]:
        leaves = list(finish(outputs, inputs))
        for k in numbers:
            leaves[k] = np.asarray(leaves[k]).item()
        return leaves

    return finish_effects


def _present_on_device(
    result: Result, outputs: Sequence[DeviceArray], inputs: Sequence[DeviceArray]
) -> Any:
    if result.output is not None:
        return outputs[result.output]
    if result.argument is not None:
        return inputs[result.argument]  # views are traced: arrays on a device have none
    return result.static
