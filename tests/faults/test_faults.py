"""The planted faults still fit the code; `.ci/run faults` sees that they are caught."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import FAULTS
from planted import Drift, Fault, planted

import jitney

ROOT = Path(jitney.__file__).resolve().parent


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_faults_fit_the_tree(fault: Fault) -> None:
    text = planted(fault, ROOT)
    compile(text, fault.file, "exec")
    path, _, name = fault.test.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8")


def test_there_are_thirty_with_names_of_their_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 30


def test_a_fault_that_no_longer_fits_says_so() -> None:
    with pytest.raises(Drift, match="0 times in ir/types.py"):
        planted(FAULTS[0]._replace(file="ir/types.py", old="no such line"), ROOT)
