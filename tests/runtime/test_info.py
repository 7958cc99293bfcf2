"""What `python -m jitney info` says, and Pythons without the GIL."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import jitney as jt
from jitney.__main__ import main
from jitney.runtime import info, trial
from jitney.runtime.cache import disk
from jitney.runtime.native.host import host_target
from jitney.runtime.native.image import PAGE, Image, load_image
from jitney.runtime.native.llvm import llvm
from jitney.runtime.threads import pool


def test_info_tells_the_facts() -> None:
    facts = info.facts()
    for name in ("jitney", "python", "numpy", "llvmlite", "cpu", "vectors", "threads",
                 "cache", "cuda"):  # fmt: skip
        assert facts[name]
        assert "unavailable" not in facts[name], facts[name]
    assert str(host_target().vector_bits) in facts["vectors"]
    assert facts["cpu"] in info.describe()


def test_info_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("broken")

    monkeypatch.setattr(pool, "get_threads", broken)
    assert info.facts()["threads"] == "unavailable (OSError: broken)"


def test_info_tells_whether_compiled_code_is_right(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = {"native": "", "through Python": ""}
    monkeypatch.setattr(trial, "_failure", failures.get)
    assert main(["info"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("jitney ") and "right" in said and "report" in said
    failures["native"] = "signal 6"
    assert "signal 6; called through Python: right" in info.describe_trial()
    failures["through Python"] = "status 1"
    assert "signal 6; called through Python: status 1" in info.describe_trial()


def test_info_tells_whether_the_cache_can_be_written_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JITNEY_CACHE_DIR", str(tmp_path / "cache"))
    cache = disk.disk_cache()
    assert "0 entries, 0 B; can be written to" in info.facts()["cache"]
    monkeypatch.setattr(cache, "writable", False)
    monkeypatch.setattr(cache, "reason", "cannot write")
    assert "; read only: cannot write" in info.facts()["cache"]


def test_without_a_gil_compiled_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also such as comes from disk; with the GIL switched on, it is called through Python."""
    f = jt.jit(lambda x: x + 1)
    monkeypatch.setattr(sys, "version", "3.14.0 free-threading build (main)")
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    for native in (llvm.__wrapped__, lambda: load_image(Image(b"", b"", PAGE, 0, {}, ()))):
        with pytest.raises(RuntimeError, match=r"needs the GIL.*PYTHON_GIL=1"):
            native()
    assert "without the GIL" in info.facts()["calls"]
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True)
    llvm.__wrapped__()
    np.testing.assert_array_equal(f(np.ones(3)), np.full(3, 2.0))
