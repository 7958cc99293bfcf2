"""A short slice of the fuzzer (`tests/fuzz`), in child processes; other seeds by hand."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz import kind_of
from fuzz.compare import Case, judge
from fuzz.runner import findings

SLICE = {
    "programs": 35,
    "gradients": 12,
    "batches": 12,
    "lengths": 16,
    "sizes": 6,
    "networks": 3,
    "products": 8,
    "containers": 8,
    "ordinary": 6,
}
BAD = ("wrong", "kind", "crashed", "hung")


@pytest.mark.parametrize("kind", SLICE)
def test_random_programs(kind: str) -> None:
    found = list(findings(kind, range(SLICE[kind])))
    assert len(found) == SLICE[kind]
    assert [f for f in found if f.kind in BAD] == []
    assert sum(f.kind == "right" for f in found) > 0.9 * len(found)


def test_what_is_wrong_is_found() -> None:
    case = kind_of("programs")(0)
    assert judge(case).kind == "right"
    assert judge(case._replace(compiled=lambda *a: [r + 1 for r in case.plain(*a)])).kind == "wrong"
    assert judge(case._replace(compiled=lambda *a: 1 // 0)).kind == "wrong"


@pytest.mark.parametrize(
    ("want", "got"),
    [
        (0, np.int64(0)),
        (0.5, np.float64(0.5)),
        (True, np.True_),
        (np.float64(1), np.array(1.0)),
        ([1, 2], (1, 2)),
        ({1: 2, 3: 4}, {3: 4, 1: 2}),
        ({1, 2}, {np.int64(1), 2}),
    ],
)
def test_classes_and_orders_are_compared(want: object, got: object) -> None:
    assert judge(Case(lambda: want, lambda: want, [], "")).kind == "right"
    assert judge(Case(lambda: want, lambda: got, [], "")).kind == "wrong"


def test_what_rounding_decides_is_not_called_wrong() -> None:
    def noise(x: float) -> float:
        return (x - 1) * 1e12

    case = Case(noise, lambda x: noise(x) + 1.0, [1.0], "")
    assert judge(case).kind == "unclear"


def test_crashes_and_hangs_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """A child that dies or says nothing more is replaced by one that goes on with the next seed."""
    from fuzz import runner

    (tmp_path / "__main__.py").write_text(
        "import json, os, sys, time\n"
        "for seed in json.loads(sys.argv[-1]):\n"
        "    print(seed, flush=True)\n"
        "    if seed == 2: os.abort()\n"
        "    if seed == 4: time.sleep(60)\n"
        "    print(json.dumps(['right', '']), flush=True)\n"
    )
    monkeypatch.setattr(runner, "__file__", str(tmp_path / "runner.py"))
    monkeypatch.setattr(runner, "LIMIT", 1.0)
    found = sorted(findings("programs", range(6)))
    assert [f.kind for f in found] == ["right", "right", "crashed", "right", "hung", "right"]
