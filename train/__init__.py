"""`jt.train`: checkpoints, metrics, and a loop over data with hooks.

This room uses public names only.
"""

from . import metrics as metrics
from .checkpoint_file import CheckpointError as CheckpointError
from .checkpoints import describe as describe
from .checkpoints import latest as latest
from .checkpoints import save as save
from .checkpoints import steps as steps
from .checkpoints import wait as wait
from .filling import Report as Report
from .restoring import restore as restore
from .restoring import restore_partial as restore_partial

__all__ = [
    "CheckpointError",
    "Report",
    "describe",
    "latest",
    "metrics",
    "restore",
    "restore_partial",
    "save",
    "steps",
    "wait",
]
