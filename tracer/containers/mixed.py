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
from .elements.forms import Form
from .elements.varied import Unfit
from .stand_ins import element, leaves_of


def form_among(items: Any, *others: Any) -> Form | None:
    """The form of what is in a container of ints and floats, or of texts, and of the others; None if no
    branch or loop has to carry it in parts."""
    table = getattr(items, "table", None)
    kind = getattr(items if table is None else table, "kind", None)
    if kind is None:
        return None
    if kind.key is None:
        return joined_form(kind.value, *others)
    what = "keys" if table is None else items.what
    if what == "items" and kind.value is not None:
        pair = Form.pair(kind.key, kind.value)
        return pair if pair.is_varied and not pair.holds_containers else None
    if what == "keys" and not kind.key.is_varied:
        return None
    return joined_form(kind.key if what == "keys" else kind.value, *others)


def joined_form(form: Form | None, *others: Any) -> Form | None:
    """The form of elements of this form and the others; None without a number of both classes."""
    try:
        for other in others:
            form = form and form.joined(Form.of(other))
    except Unfit:
        return None
    if form is None or form.holds_containers:
        return None
    return form if form.is_mixed or form.is_varied else None


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
