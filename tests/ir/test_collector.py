"""The garbage collector while modules are loaded."""

from __future__ import annotations

import gc

from jitney.ir.collector import loading


def test_what_is_loaded_is_old_at_once_and_what_is_frozen_stays_that() -> None:
    with loading():
        assert not gc.isenabled()
        made: list[object] = [[]]
    assert gc.isenabled()
    assert any(x is made for x in gc.get_objects(generation=2))
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with loading():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()
