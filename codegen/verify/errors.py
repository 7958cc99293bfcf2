"""What the verifier of steps raises, and how it names a step."""

from __future__ import annotations

from typing import Any

from ...ir.opdef import GraphError
from ..loop_ir.kernel import Stage


class StepError(GraphError):
    """A rewriting of steps went wrong: our fault, found before any code was made of it."""


def name_of(step: Any) -> str:
    """A step as error messages name it."""
    if isinstance(step, Stage):
        what = f"the stage ({step.action}) of {step.array!r}"
    else:
        what = f"the {type(step).__name__} {getattr(step, 'name', '')}".strip()
    loc = getattr(step, "loc", None)
    return f"{what} [{loc}]" if loc is not None else what
