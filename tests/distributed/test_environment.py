"""What launchers leave in the environment, and a process that is alone."""

from __future__ import annotations

import builtins
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.distributed import environment, starting
from jitney.distributed.communicator import Members
from jitney.distributed.environment import Launch, launch
from jitney.distributed.hub import Hub
from jitney.ir.ops.collectives.records import COLLECTIVES

CASES: dict[str, tuple[dict[str, str], Launch]] = {
    "nobody": ({}, Launch("alone")),
    "open mpi": (
        {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"},
        Launch("mpi", 2, 4),
    ),
    "mpich": ({"PMI_RANK": "1", "PMI_SIZE": "3"}, Launch("mpi", 1, 3)),
    "mpi by srun": (
        {"PMIX_RANK": "1", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"},
        Launch("mpi", 1, 0),
    ),
    "torchrun": (
        {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "7"},
        Launch("torchrun", 0, 2, ("a", 7)),
    ),
    "slurm": (
        {
            "SLURM_PROCID": "3",
            "SLURM_NTASKS": "4",
            "SLURM_NODELIST": "n[03-05,9]",
            "SLURM_JOB_ID": "12",
        },
        Launch("slurm", 3, 4, ("n03", environment.PORT + 12)),
    ),
    "slurm nodes": (
        {
            "SLURM_PROCID": "0",
            "SLURM_NTASKS": "2",
            "SLURM_NODELIST": "a1,b[1-2]",
            "MASTER_PORT": "9",
        },
        Launch("slurm", 0, 2, ("a1", 9)),
    ),
    "slurm alone": ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, Launch("alone")),
}


@pytest.mark.parametrize("name", CASES)
def test_launchers(name: str) -> None:
    given, want = CASES[name]
    assert launch(given) == want


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 4 of 4"):
        launch({"RANK": "4", "WORLD_SIZE": "4"})
    with pytest.raises(ValueError, match="RANK='x'"):
        launch({"RANK": "x", "WORLD_SIZE": "4"})
    with pytest.raises(jt.errors.SettingError, match="backend='nccl'"):
        starting.init("nccl")


def test_alone() -> None:
    comm = jt.distributed.init("alone")
    assert jt.distributed.init() is comm and (comm.rank, comm.size) == (0, 1)
    x = np.arange(6.0).reshape(1, 6)

    @jt.jit
    def all_of_them(x: Any) -> Any:
        comm.barrier()
        y = comm.all_to_all(comm.broadcast(comm.ppermute(x, [(0, 0)])))
        return comm.reduce_scatter(y) + comm.all_reduce(x, "max")[0], comm.all_gather(x)

    y, rows = all_of_them(x)
    np.testing.assert_array_equal(y, 2 * x[0])
    np.testing.assert_array_equal(rows, x[None])
    np.testing.assert_array_equal(
        jt.grad(lambda x: all_of_them(x)[0].sum())(x), 2 * np.ones((1, 6))
    )
    with pytest.raises(jt.errors.SettingError, match="rank 0 of 1 sends"):
        comm.send(x, 0)
    with pytest.raises(jt.errors.UnsupportedFunctionError, match="sum, mean, max and min"):
        comm.all_reduce(x, "prod")


def test_without_mpi_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "mpi4py":
            raise ImportError("No module named 'mpi4py'")
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(jt.errors.SettingError, match=r'pip install "jitney\[mpi\]"'):
        starting._mpi(Launch("mpi", 0, 2))


def test_programs_that_exchange_are_found_on_disk(tmp_path: Path) -> None:
    """A second process compiles nothing: what native code calls lies in the record."""
    program = tmp_path / "p.py"
    program.write_text(
        "import numpy as np, jitney as jt\n"
        "comm = jt.distributed.init()\n"
        "print(jt.jit(lambda x: comm.all_reduce(x) * 2)(np.ones(3)))\n"
    )
    cache = tmp_path / "cache"
    env = {**os.environ, "JITNEY_CACHE_DIR": str(cache)}
    stored = []
    for _ in range(2):
        command = [sys.executable, str(program)]
        said = subprocess.run(command, env=env, capture_output=True, text=True)
        assert (said.stderr, said.stdout) == ("", "[2. 2. 2.]\n")
        stored.append({p.name for p in cache.rglob("*.jo")})
    assert len(stored[0]) > 1 and stored[0] == stored[1]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def together(size: int, work: Callable[[Members], Any], **settings: Any) -> list[Any]:
    """What members that are threads of this process give, or raise."""
    port, results = free_port(), [None] * size
    settings = {"timeout": 20.0, "debug": False} | settings

    def one(rank: int) -> None:
        try:
            hub = Hub(rank, size, ("127.0.0.1", port), 20.0)
            results[rank] = work(Members(hub, **settings))
        except Exception as error:
            results[rank] = error  # type: ignore[call-overload]

    threads = [threading.Thread(target=one, args=(r,)) for r in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


@pytest.mark.parametrize("name", sorted({c.name for c in COLLECTIVES.values()}))
def test_sockets_do_what_records_say(name: str) -> None:
    n, record = 3, COLLECTIVES[name]
    attrs = {"kind": "max", "perm": ((0, 2), (1, 0)), "root": 1}
    attrs = {a: attrs[a] for a in record.attrs}
    x = np.random.default_rng(0).normal(size=(n, n, 2))
    want = record.together(list(x), size=n, **attrs)

    def work(members: Members) -> Any:
        out = np.empty_like(want[members.rank])
        for _ in range(3):  # the same again
            members.collective(name, x[members.rank], out, line="here", **attrs)
        return out

    for got, rows in zip(together(n, work), want, strict=True):
        np.testing.assert_array_equal(got, rows)


def test_shapes_that_differ_are_an_error_on_all() -> None:
    def work(members: Members) -> Any:
        x = np.ones(3 + members.rank)
        members.collective("all_reduce", x, np.empty_like(x), line="here", kind="sum")

    for error in together(2, work):
        assert isinstance(error, jt.distributed.DistributedError)
        assert "all_reduce of different shapes" in str(error)
    for rank, error in enumerate(together(2, work, debug=True)):
        assert isinstance(error, jt.distributed.MismatchError), rank
        assert "float64[3]" in str(error) and "float64[4]" in str(error)


def test_who_does_not_come_is_named() -> None:
    with pytest.raises(TimeoutError, match="rank 1 found nobody listening"):
        Hub(1, 2, ("127.0.0.1", free_port()), 0.2)
    members = Members(Hub(0, 2, ("127.0.0.1", free_port()), 1.0), 0.3, False)
    for _ in range(2):  # and it stays broken
        with pytest.raises(jt.distributed.RankTimeoutError, match="no answer from rank 1"):
            members.collective("barrier", None, None, line="here")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
def test_a_forked_child_is_no_member() -> None:
    comm = jt.distributed.init("alone")
    child = os.fork()
    if child == 0:
        try:
            comm.all_reduce(np.ones(2))
        except jt.distributed.DistributedError as error:
            os._exit(0 if "was forked" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
