"""The garbage collector while modules are loaded."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import gc
from jitney.ir.collector import loading
with loading():
    made = [[]]
    rests = not gc.isenabled()
print(rests, gc.isenabled(), any(x is made for x in gc.get_objects(generation=2)))
gc.freeze()
frozen = gc.get_freeze_count()
with loading():
    pass
print(gc.get_freeze_count() == frozen)
"""


def test_what_is_loaded_is_old_at_once_and_what_is_frozen_stays_that() -> None:
    """In a process of its own: that of the tests has frozen what it imported."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True", "True"]
