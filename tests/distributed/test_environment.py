"""What launchers leave in the environment, and a process that is alone."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.distributed import environment, starting
from jitney.distributed.environment import Launch, launch

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
