"""fork() while other threads are in the middle of something: neither process waits for ever."""

import os
import re
import subprocess
import sys
from textwrap import dedent

import fork_stress
import pytest
from test_project import ROOT, package_modules

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")

HEAD = """
import gc, importlib, os, sys, threading, time

def child(work):
    '''The exit status of a forked child that does `work`; "hangs" after half a minute.'''
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work() in (None, True) else 1)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(2)
    for _ in range(3000):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status >> 8
        time.sleep(0.01)
    os.kill(pid, 9)
    return "hangs"

inside, go_on = threading.Event(), threading.Event()
def in_a_thread(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert inside.wait(30)
    return thread
"""


def said(code: str, **environment: str) -> str:
    """What a program prints, and that it prints no complaint."""
    done = subprocess.run(
        [sys.executable, *fork_stress.QUIET, "-c", HEAD + dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_every_lock_is_renewed_in_a_child():
    for path in package_modules():
        # Libraries have public names only; what forks do to them is tested with each.
        library = path.relative_to(ROOT).parts[0] in ("data", "train", "distributed")
        if path != ROOT / "ir" / "forks.py" and not library:
            made = re.findall(r"(.{8})\bthreading\.(?:R?Lock|Condition|Event)\(", path.read_text())
            assert set(made) <= {"renewed("}, path


def test_a_child_calls_what_another_thread_was_compiling():
    code = """
    import numpy as np, jitney as jt
    main = threading.get_ident()
    @jt.jit
    def f(x):
        if threading.get_ident() != main:
            inside.set()
            go_on.wait()
        return x + 1
    thread = in_a_thread(lambda: f(np.ones(3)))
    print(child(lambda: f(np.ones(3))[0] == 2.0), child(lambda: os.urandom is urandom))
    go_on.set()
    thread.join()
    print(f(np.ones(3)), os.urandom is urandom)
    """
    assert said("urandom = os.urandom\n" + dedent(code)) == "0 0\n[2. 2. 2.] True"


def test_a_child_imports_what_another_thread_was_importing(tmp_path):
    """Twice: a module of somebody's, and one of ours that defines ops."""
    tmp_path.joinpath("slow.py").write_text(
        "import __main__ as m, threading\n"
        "if threading.get_ident() != m.main:\n    m.inside.set(); m.go_on.wait()\n"
        "value = 3\n"
    )
    code = """
    sys.path.insert(0, sys.argv[0] or PATH)
    import jitney as jt
    main = threading.get_ident()
    thread = in_a_thread(lambda: importlib.import_module("slow"))
    print(child(lambda: importlib.import_module("slow").value == 3))
    go_on.set()
    thread.join()
    print(sys.modules["slow"].value)

    inside.clear()
    go_on.clear()
    def pause(frame, event, argument):
        if frame.f_globals.get("__name__") == "jitney.ir.ops.elementwise.unary" and event == "line":
            if frame.f_lineno > 100 and frame.f_code.co_name == "<module>":
                inside.set()
                go_on.wait()
        return pause
    def first_call():
        sys.settrace(pause)
        jt.jit(np.sin)(np.ones(3))
    import numpy as np
    thread = in_a_thread(first_call)
    print(child(lambda: jt.jit(np.cos)(np.zeros(3))[0] == 1.0))
    """
    text = code.replace("sys.argv[0] or PATH", repr(str(tmp_path)))
    # Nothing is remembered: else what another test has compiled is found, and no ops are imported.
    assert said(text, JITNEY_CACHE="0") == "0\n3\n0"


def test_a_child_collects_garbage_whoever_had_switched_that_off():
    code = """
    from jitney.ir.collector import resting_collector
    def rests():
        with resting_collector():
            inside.set()
            go_on.wait()
    thread = in_a_thread(rests)
    print(gc.isenabled(), child(gc.isenabled))
    go_on.set()
    thread.join()
    with resting_collector():
        print(gc.isenabled(), child(gc.isenabled))
    gc.disable()
    print(child(gc.isenabled))
    """
    assert said(code) == "False 0\nFalse 1\n1"


def test_fork_waits_until_others_have_left_llvm():
    """Not for their Python code: whoever waits in it, for a lock of somebody's, does not matter."""
    code = """
    import jitney as jt, numpy as np
    import llvmlite.binding.ffi as ffi
    def in_llvm():
        with ffi.lib._lock:
            inside.set()
            time.sleep(0.2)
            go_on.set()
    jt.config.cache = False
    jt.jit(np.sin)(np.ones(3))
    thread = in_a_thread(in_llvm)
    def compiles():
        return go_on.is_set() and jt.jit(np.cos)(np.zeros(3))[0] == 1.0
    print(child(compiles), child(compiles))
    thread.join()
    """
    assert said(code) == "0 0"


def test_handlers_of_others_run_while_arrays_are_made():
    """Those that were registered before ours run last before the fork, and may let threads run."""
    code = """
    import logging
    def lets_threads_run():
        if jt:
            thread = threading.Thread(target=makes_arrays)
            thread.start()
            thread.join()
    jt = None
    os.register_at_fork(before=lets_threads_run, after_in_parent=lets_threads_run)
    import jitney as jt, numpy as np
    double = jt.jit(lambda x: 2 * x)
    big = np.ones(1 << 18)
    def makes_arrays():
        assert double(big)[-1] == 2.0
    makes_arrays()
    print(*[child(makes_arrays) for _ in range(5)])
    """
    assert said(code) == "0 0 0 0 0"


def test_handlers_that_are_registered_during_a_fork():
    """What would undo something is called, and what it would undo was not."""
    code = """
    def imports():
        def work():
            importlib.import_module("jitney.runtime.native.engine").llvm()
            importlib.import_module("jitney.runtime.memory.recycling").recycler()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    os.register_at_fork(before=imports)
    def works():
        import jitney as jt, numpy as np
        return jt.jit(lambda x: 2 * x)(np.ones(1 << 18))[-1] == 2.0
    print(child(works), child(works), works())
    from jitney.runtime.native.llvm import lock
    print(lock._is_owned())
    """
    assert said(code) == "0 0 True\nFalse"


def test_an_import_that_was_interrupted_can_be_repeated():
    """By Ctrl-C, say, in the first call; and what a child finds half imported is imported anew."""
    code = """
    import random, numpy as np, llvmlite.binding, jitney
    root = os.path.dirname(jitney.__file__)
    def first_call():
        import jitney as jt
        return jt.jit(lambda x: np.sort(x) + jt.grad(lambda v: jt.sum(v * v))(x))(np.ones(2)).tolist()
    def forget():
        for name in [name for name in sys.modules if name.partition(".")[0] == "jitney"]:
            del sys.modules[name]
    def modules_only(frame, event, argument):
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root):
            return each_line
    def each_line(frame, event, argument):
        global left
        left -= event == "line"
        if left == 0:
            raise KeyboardInterrupt(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return each_line
    def interrupted(lines):
        global left
        forget()
        left = lines
        sys.settrace(modules_only)
        try:
            first_call()
        except KeyboardInterrupt as error:
            return error
        finally:
            sys.settrace(None)
    assert interrupted(-1) is None
    total, chosen = -left, random.Random(0)
    for _ in range(2):
        where = interrupted(chosen.randrange(1, total))
        assert first_call() == [3.0, 3.0], where
    print(total > 1000)
    """
    assert said(code) == "True"


@pytest.mark.parametrize("seed", [2, 11])  # busy threads and resting ones, logging first or last
def test_forks_under_load(seed):
    assert not fork_stress.run_round(seed, 18)
