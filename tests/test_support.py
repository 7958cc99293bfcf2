"""Code that is the same for every program: compiled on another thread while this one goes on."""

import threading

import pytest

from jitney.runtime import engine, support

ANSWER = "define i64 @answer() { ret i64 42 }\n"


def test_the_caller_goes_on_while_llvm_compiles(monkeypatch):
    waiting = threading.Event()
    assemble = engine.Engine.assemble

    def slowly(self, text):
        assert waiting.wait(10)
        return assemble(self, text)

    monkeypatch.setattr(engine.Engine, "assemble", slowly)
    code = support._assemble(ANSWER, waiting.set)
    assert engine.load_code(code, ["answer"]).address("answer")


def test_what_fails_on_the_other_thread_is_raised_here():
    with pytest.raises(engine.NativeError):
        support._assemble("define i64 @answer() { ret }\n", lambda: None)


def test_what_fails_meanwhile_is_raised_when_the_other_thread_is_done():
    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        support._assemble(ANSWER, fail)
    assert not [t for t in threading.enumerate() if t.name == "jitney-support"]


def test_without_another_thread_it_is_compiled_here(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    code = support._assemble(ANSWER, lambda: None)
    assert engine.load_code(code, ["answer"]).address("answer")
