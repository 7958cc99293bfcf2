"""What goes wrong between processes. Each names the ranks and the lines that it is about."""

from __future__ import annotations


class DistributedError(RuntimeError):
    """The processes of a group do not go on together. `ranks` are those at fault, as far as known.

    The group is broken from then on: each of its collectives raises. A job that is started again goes
    on from its last checkpoint.
    """

    def __init__(self, message: str, ranks: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.ranks = ranks


class RankError(DistributedError):
    """Another process failed, ended early, or is gone."""


class RankTimeoutError(DistributedError, TimeoutError):
    """Another process did not come to a collective in time."""


class MismatchError(DistributedError):
    """Processes came to different collectives, or with other shapes or dtypes (`init(debug=True)`)."""
