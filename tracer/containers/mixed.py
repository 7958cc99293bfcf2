"""Numbers that are ints here and floats there, through the branches and loops of containers' methods.

    d.get(key, 0.5)     # an int of the dict's, or the float
    max(items)          # of items that are some of each

A branch or loop carries one number of one type. What may be either is taken apart for it into the words
of an element, the number and whether it is an int, and put together behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..control.control import cond
from ..core.tracers import as_value, wrap
from .kinds import Form, Unfit
from .stand_ins import element, leaves_of


def form_among(items: Any, *others: Any) -> Form | None:
    """The form of what is in a container of ints and floats, and of the others; None if there is no
    such number."""
    table = getattr(items, "table", None)
    kind = getattr(items if table is None else table, "kind", None)
    if kind is None or (kind.key is not None and (table is None or items.what != "values")):
        return None
    return joined_form(kind.value, *others)


def joined_form(form: Form | None, *others: Any) -> Form | None:
    """The form of elements of this form and the others; None without a number of both classes."""
    try:
        for other in others:
            form = form and form.joined(Form.of(other))
    except Unfit:
        return None
    return form if form is not None and form.is_mixed and not form.holds_containers else None


def apart(form: Form | None, x: Any) -> Any:
    """What a branch or loop carries of a value."""
    if form is None:
        return x
    return tuple(wrap(word, scalar=True) for word in leaves_of(form, x))


def together(form: Form | None, carried: Any) -> Any:
    """The value that was taken apart."""
    return carried if form is None else element(form, [*map(as_value, carried)])


def choose(test: Any, one: Callable[[], Any], other: Any, like: Form | None) -> Any:
    """`one() if test else other`, where `one()` is of the form `like`."""
    form = None if like is None or like.holds_containers else joined_form(like, other)
    return together(form, cond(test, lambda: apart(form, one()), lambda: apart(form, other)))
