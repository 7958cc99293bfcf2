"""Programs in processes of their own, which begin where NumPy and the tracer are imported already.

    run("import jitney as jt; print(jt.__version__)", JITNEY_CACHE="0")

Imports take 0.2 s of each new process; here one process per worker of pytest has made them, and forks
for each program. It has compiled nothing, read no setting, and imported neither code generator nor LLVM.
What is about starting itself starts a Python.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path


def run(code: str, *arguments: str, timeout: float = 100, **environment: str) -> str:
    """What a program prints on stdout; AssertionError with what it says on stderr if it fails."""
    server = _server()
    with tempfile.TemporaryDirectory() as folder:
        job = {
            "code": code,
            "arguments": ["-c", *arguments],
            "environment": {**os.environ, **environment},
            "folder": folder,
            "timeout": timeout,
        }
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        out, complaints = ((Path(folder) / name).read_text() for name in ("out", "err"))
    assert status == 0, f"status {status}: {complaints}"
    return out


@functools.lru_cache(maxsize=1)
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.terminate)
    return server


def serve() -> None:
    """Fork for each job that comes; a line with its exit status goes back."""
    import numpy  # noqa: F401

    import jitney as jt

    for name in ("jit", "grad", "vmap", "errors", "tree", "sin"):
        getattr(jt, name)
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if not child:
            _do(job)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _do(job: dict[str, object]) -> None:
    """The child: run the job's code as `python -c` would, and leave."""
    import signal

    status = 0
    folder = str(job["folder"])
    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.alarm(int(job["timeout"]))  # type: ignore[call-overload]
    os.environ.clear()
    os.environ.update(job["environment"])  # type: ignore[call-overload]
    sys.argv[:] = job["arguments"]  # type: ignore[index]
    space = {"__name__": "__main__", "__builtins__": __builtins__}
    try:
        exec(compile(str(job["code"]), "<string>", "exec", dont_inherit=True), space)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        atexit._run_exitfuncs()
    finally:
        os._exit(status)


if __name__ == "__main__":
    serve()
