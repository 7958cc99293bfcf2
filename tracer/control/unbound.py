"""What stands in a variable that has no value."""

from __future__ import annotations

from typing import NoReturn

from ..data import pytree
from ..messages import errors
from ..messages.errors import complain


class Undefined:
    """Stands in a variable that is not bound. `why` says how it came to that under tracing.

    `asked`: whoever reads the variable asks for this (`autograph.variables.ld`), so that it may be an
    option of a union.
    """

    __slots__ = ("asked", "name", "why")

    def __init__(self, name: str, why: str = "", asked: bool = False) -> None:
        self.name = name
        self.why = why
        self.asked = asked

    @property
    def is_form(self) -> bool:
        """Whether it can be one of the forms of a value."""
        return self.asked and not self.why

    @property
    def message(self) -> str:
        """What Python says."""
        return f"cannot access local variable {self.name!r} where it is not associated with a value"

    def refuse(self) -> NoReturn:
        if not self.why:
            raise UnboundLocalError(self.message)
        complain(
            errors.UndefinedVariableError,
            f"the variable {self.name!r} may have no value here: {self.why}",
            f"give {self.name} a value before that, of the type that it has later.",
        )


def unbound(name: str) -> Undefined:
    """For a local variable that has no value yet, or none any more."""
    return Undefined(name, asked=True)


pytree.register_pytree(Undefined, lambda x: ((), x.name), lambda name, _: unbound(name))
