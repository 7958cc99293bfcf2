"""Code that is the same for every program: in haste for the first process, well made for the next."""

import ctypes
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from jitney.runtime.cache import disk
from jitney.runtime.native import engine, support

ANSWER = "define i64 @answer() { ret i64 42 }\n"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    found = disk.DiskCache(str(tmp_path / "cache"))
    monkeypatch.setattr(support, "disk_cache", lambda: found)
    return found


@pytest.fixture
def at_exit(monkeypatch):
    """What was asked for at the end of the process."""
    asked = []
    fake = SimpleNamespace(register=lambda *call: asked.append(call))
    monkeypatch.setattr(support, "atexit", fake)
    return asked


def load(texts):
    library = support.load_support("answer", lambda: texts.append(1) or ANSWER, ["answer"])
    assert library.address("answer")


def test_the_first_process_optimises_when_it_ends(cache, at_exit):
    texts = []
    load(texts)
    load(texts)
    assert len(texts) == 1  # the second found the draft
    (first,) = cache.entries()
    (finish, *arguments), _ = at_exit  # the second would do it where the first was killed
    finish(*arguments)
    (second,) = cache.entries()
    assert first.path != second.path  # which took its place
    assert len(texts) == 1  # written once
    load(texts)
    finish(*arguments)  # as another process would, which began before the code was there
    assert len(texts) == 1
    assert len(at_exit) == 2
    assert len(cache.entries()) == 1


def test_code_that_cannot_be_loaded_is_made_again(cache, at_exit, monkeypatch):
    texts = []
    load(texts)
    refused = []
    load_code = engine.load_code

    def refuse_once(*arguments):
        if not refused:
            refused.append(1)
            raise engine.NativeError("of another making")
        return load_code(*arguments)

    monkeypatch.setattr(support, "load_code", refuse_once)
    load(texts)
    assert len(texts) == 2


def test_without_a_cache_the_end_is_quick(at_exit, monkeypatch):
    monkeypatch.setattr(support, "disk_cache", lambda: disk.DiskCache(None))
    load([])
    ((finish, *arguments),) = at_exit
    monkeypatch.setattr(engine.Engine, "assemble", None)
    finish(*arguments)


def test_quick_code_does_the_same(cache):
    text = "define i64 @twice(i64 %x) {\n  %y = mul i64 %x, 2\n  ret i64 %y\n}\n"
    host = engine.host_engine()

    for quick in (False, True):
        library = engine.load_code(host.assemble(text, quick=quick), ["twice"])
        twice = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.address("twice"))
        assert twice(21) == 42


def test_the_caller_goes_on_while_llvm_compiles(monkeypatch):
    waiting = threading.Event()
    assemble = engine.Engine.assemble

    def slowly(self, text, quick):
        assert waiting.wait(10)
        return assemble(self, text, quick)

    monkeypatch.setattr(engine.Engine, "assemble", slowly)
    code = support._draft(ANSWER, waiting.set)
    assert engine.load_code(code, ["answer"]).address("answer")


def test_what_fails_on_the_other_thread_is_raised_here():
    with pytest.raises(engine.NativeError):
        support._draft("define i64 @answer() { ret }\n", lambda: None)


def test_what_fails_meanwhile_is_raised_when_the_other_thread_is_done():
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        support._draft(ANSWER, fail)
    assert not [t for t in threading.enumerate() if t.name == "jitney-support"]


def test_without_another_thread_it_is_compiled_here(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    code = support._draft(ANSWER, lambda: None)
    assert engine.load_code(code, ["answer"]).address("answer")


PROGRAM = """
import sys
import numpy as np, jitney as jt
f = jt.jit(lambda x: x * 2 + 1)
assert f(np.ones(3)).tolist() == [3, 3, 3]
assert f(np.ones(3)).tolist() == [3, 3, 3]
print("llvmlite" in sys.modules)
"""


def test_a_second_process_finds_the_good_code(tmp_path):
    environment = {"JITNEY_CACHE_DIR": str(tmp_path / "cache")}

    def run():
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip(), len(disk.DiskCache(environment["JITNEY_CACHE_DIR"]).entries())

    assert run()[0] == "True"
    assert run()[0] == "False"
