"""The garbage collector while modules are loaded."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import gc, sys
from jitney.ir.collector import loading
with loading():
    sys.modules["made"], made = None, [[]]
    rests = not gc.isenabled()
print(rests, gc.isenabled(), any(x is made for x in gc.get_objects(generation=2)))
gc.freeze()
frozen = gc.get_freeze_count()
with loading():
    sys.modules["made too"] = None
print(gc.get_freeze_count() == frozen)
gc.unfreeze()
with loading():
    late = [[]]
print(any(x is late for x in gc.get_objects(generation=0)))
"""


def test_what_is_loaded_is_old_at_once_and_what_is_frozen_stays_that() -> None:
    """In a process of its own: that of the tests has frozen what it imported."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 5
