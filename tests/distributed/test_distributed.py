"""`jt.distributed` on several processes: each test starts a program of `programs/`."""

from __future__ import annotations

import re
import time

import pytest
from launching import WAYS, launched


@pytest.mark.parametrize("way", WAYS)
def test_every_collective_in_every_place(way: str, all_cases: bool) -> None:
    count = 3 if all_cases else 2
    results = launched(way, "collectives.py", "all" if all_cases else "some", count=count)
    assert all(status == 0 for status, _ in results), "\n".join(said for _, said in results)
    assert sum(said.count("right") for _, said in results) == count


@pytest.mark.parametrize("way", WAYS)
def test_groups_that_break_say_why_on_every_process(way: str) -> None:
    results = launched(way, "faults.py", "groups")
    said = "\n".join(said for _, said in results)
    assert all(status == 0 for status, _ in results), said
    assert said.count("well") == 3, said


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["raise", "early", "kill"])
def test_a_process_that_ends_is_an_error_on_all_others(
    way: str, mode: str, all_cases: bool
) -> None:
    if mode != "raise" and not all_cases:
        pytest.skip("with --cases=all")
    start = time.monotonic()
    results = launched(way, "faults.py", mode)
    said = "\n".join(said for _, said in results)
    assert time.monotonic() - start < 60
    if mode != "early":
        assert any(status != 0 for status, _ in results), said
    if mode == "raise":
        # Where a process is slow it hears of that while it is in the exchange before.
        assert said.count("rank 1 failed: ValueError: a bad example") >= 2, said
    if mode == "early":
        for rank in (0, 2):
            assert re.search(f"heard by {rank}: .*rank 1 has ended", said), said
    if mode == "kill" and way == "tcp":
        assert said.count("RankError") >= 2, said
