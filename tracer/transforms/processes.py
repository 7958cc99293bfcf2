"""Processes as the members of an axis: collectives become effects of the program, in its order.

`named_axes` has what is called (`jt.psum(x, comm)`); this is how such a call reaches the graph, or,
where nothing is traced, the communicator itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.groups import GROUPS, Group
from ...ir.ops.collectives.records import COLLECTIVES
from ...ir.types import DTYPE_NAMES, dtype_name, is_supported
from ..core.effects import advance, order_token
from ..core.trace import current_trace
from ..core.tracers import as_value, wrap
from ..data.accept import refuse
from ..messages.source import user_line

Array = np.ndarray[Any, Any]


class Processes:
    """The axis whose members are the processes of a group, as this one of them sees it.

    label: what graphs call the group; `members` carries collectives out
    """

    def __init__(self, label: str, members: Group) -> None:
        self.label, self.members = label, members
        GROUPS[label] = members

    @property
    def rank(self) -> int:
        """The number of this process in the group."""
        return self.members.rank

    @property
    def size(self) -> int:
        """How many processes there are in the group."""
        return self.members.size

    def index(self) -> int:
        """The number of this process: a Python int, so programs of different ranks may differ."""
        return self.rank

    def exchange(self, name: str, x: Any, **attrs: Any) -> Any:
        """The collective `name`, in either form, of an array-like; NumPy arrays outside of tracing."""
        name = COLLECTIVES[name].name
        group: dict[str, Any] = {"group": self.label, "size": self.size}
        trace = current_trace()
        if trace is None:
            array = np.asarray(x)
            if not is_supported(array.dtype):
                refuse(x, f"dtype {array.dtype} in a collective")
            return COLLECTIVES[name].run(array, line=user_line(), **group, **attrs)[()]
        value, token = as_value(x), order_token()
        with trace.builder.at(user_line()):
            results = trace.builder.op(name, value, token, **group, **attrs)
        advance(results)
        return wrap(results[0])

    def message(self, name: str, x: Any = None, **attrs: Any) -> Any:
        """`send`, `receive` or `barrier`."""
        trace = current_trace()
        if trace is None:
            out = None
            if name == "receive":
                out = np.empty(attrs.pop("shape"), DTYPE_NAMES[attrs.pop("dtype")])
            given = None if x is None else np.ascontiguousarray(x).reshape(np.shape(x))
            self.members.collective(name, given, out, line=user_line(), **attrs)
            return None if out is None else out[()]
        values = [] if x is None else [as_value(x)]
        token = order_token()
        with trace.builder.at(user_line()):
            group: dict[str, Any] = {"group": self.label, "size": self.size}
            results = trace.builder.op(name, *values, token, **group, **attrs)
        advance(results)
        return wrap(results[0]) if name == "receive" else None


def named_dtype(dtype: Any) -> str:
    """The name of a dtype in graphs."""
    return dtype_name(np.dtype(dtype))
