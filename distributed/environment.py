"""Who started this process, and as which of how many: what the launcher left in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple


class Launch(NamedTuple):
    """What a launcher says: its kind ("mpi", "torchrun", "slurm", "alone"), rank and size, and for
    launchers without MPI where rank 0 listens."""

    kind: str
    rank: int = 0
    size: int = 1
    address: tuple[str, int] | None = None


_MPI = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", None),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
)
PORT = 29_500  # torchrun's


def launch(environment: Mapping[str, str] | None = None) -> Launch:
    """How this process was started.

    mpiexec of Open MPI, MPICH, Intel MPI and MVAPICH leaves the rank in variables of its own; torchrun
    leaves RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; srun leaves SLURM_PROCID and SLURM_NTASKS, and
    PMI variables where it starts MPI programs. ValueError where these make no sense.

    >>> from jitney.distributed.environment import launch
    >>> launch({"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"})
    Launch(kind='torchrun', rank=1, size=4, address=('node0', 29500))
    """
    env = os.environ if environment is None else environment
    for own, all_of_them in _MPI:
        if own in env:
            size = _int(env, all_of_them, 0) if all_of_them else 0
            return Launch("mpi", _int(env, own), size)
    if "RANK" in env and "WORLD_SIZE" in env:
        at = env.get("MASTER_ADDR", "127.0.0.1"), _int(env, "MASTER_PORT", PORT)
        found = Launch("torchrun", _int(env, "RANK"), _int(env, "WORLD_SIZE"), at)
    elif "SLURM_PROCID" in env and _int(env, "SLURM_NTASKS", 1) > 1:
        host = env.get("MASTER_ADDR") or _first_node(env)
        port = _int(env, "MASTER_PORT", PORT + _int(env, "SLURM_JOB_ID", 0) % 1000)
        found = Launch("slurm", _int(env, "SLURM_PROCID"), _int(env, "SLURM_NTASKS"), (host, port))
    else:
        return Launch("alone")
    if not 0 <= found.rank < found.size:
        raise ValueError(f"the launcher says rank {found.rank} of {found.size} processes")
    return found


def _int(env: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = env.get(name)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError:
        raise ValueError(f"the environment has {name}={text!r}, which is no number") from None


def _first_node(env: Mapping[str, str]) -> str:
    """The first of the nodes in `node[03-05,09],other1`."""
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_NODELIST") or "127.0.0.1"
    head, bracket, rest = nodes.partition("[")
    if not bracket or "," in head:
        return head.partition(",")[0]
    numbers = rest.partition("]")[0].replace(",", "-")
    return head + numbers.partition("-")[0]
