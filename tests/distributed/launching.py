"""Programs on several processes: by an mpiexec that is there, or by sockets, which always are."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent / "programs"


def mpiexec() -> list[str] | None:
    """The command that starts processes under MPI; None where there is no MPI."""
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None or find_spec("mpi4py") is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
    own = ["--allow-run-as-root", "--oversubscribe"] if "Open" in said or "open" in said else []
    return [found, *own]


WAYS = ["tcp"] + (["mpi"] if mpiexec() else [])


def launched(
    way: str, program: str | Path, *args: str, count: int = 3, timeout: float = 120, **env: str
) -> list[tuple[int, str]]:
    """Exit status and output of each process (of the whole job, under MPI)."""
    path = HERE / program if isinstance(program, str) else program
    threads = {"JITNEY_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment = {**os.environ, "JITNEY_QUICK": "1", **threads, **env}
    command = [sys.executable, str(path), *args]
    with tempfile.TemporaryDirectory() as folder:
        started = []
        if way == "mpi":
            mpi = mpiexec()
            assert mpi is not None
            jobs = [([*mpi, "-n", str(count), *command], environment)]
        else:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = str(free.getsockname()[1])
            own = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            jobs = [(command, {**environment, **own, "RANK": str(r)}) for r in range(count)]
        for i, (job, variables) in enumerate(jobs):
            output = (Path(folder) / str(i)).open("w+")
            process = subprocess.Popen(job, env=variables, stdout=output, stderr=subprocess.STDOUT)
            started.append((process, output))
        results = []
        try:
            for process, output in started:
                status = process.wait(timeout)
                output.seek(0)
                results.append((status, output.read()))
        finally:
            for process, output in started:
                process.kill()
                output.close()
        return results
