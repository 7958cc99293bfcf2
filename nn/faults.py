"""Errors about layers: what `jt.errors.complain` says, and which layer of the model it is about."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NoReturn

import numpy as np

import jitney as jt

from .module import Module, modules

Array = Any  # an array, a tracer, or what NumPy makes one of


def complain(kind: type[Exception], what: str, remedy: str, **operands: Any) -> NoReturn:
    """Raise `kind` with the user's line, operands by name, and a remedy."""
    jt.errors.complain(kind, what, remedy, operands=operands)


def refuse(
    layer: object,
    what: str,
    remedy: str,
    kind: type[Exception] = jt.errors.ShapeError,
    **operands: Any,
) -> NoReturn:
    """The same about a layer, of which `what` is said, with its place in the model."""
    place = f"layer: {_place(layer)}"
    what = f"{type(layer).__name__} {what}"
    jt.errors.complain(kind, what, remedy, operands=operands, details=(place,))


def check(holds: Any, kind: type[Exception], what: str, remedy: str, **operands: Any) -> None:
    """The same unless something holds everywhere, also in compiled code, which checks when it runs."""
    if jt.is_traced(holds):
        jt.check(holds, f"{what}: {remedy}".replace("{", "{{").replace("}", "}}"), error=kind)
    elif not np.all(holds):
        complain(kind, what, remedy, **operands)


def _place(layer: object) -> str:
    """Where a layer is in the outermost of the models whose methods are running.

    `CNN.body.layers[2] (Conv2d)`: found when an error needs it, so that calls pay nothing for it.
    """
    frame: FrameType | None = sys._getframe(1)
    name = place = type(layer).__name__
    while frame is not None:
        names = frame.f_code.co_varnames
        owner = frame.f_locals.get(names[0]) if frame.f_code.co_argcount else None
        if isinstance(owner, Module) and owner is not layer:
            paths = (path for path, module in modules(owner) if module is layer)
            if path := next(paths, ""):
                place = f"{type(owner).__name__}.{path} ({name})"
        frame = frame.f_back
    return place
