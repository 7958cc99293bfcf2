"""`jt.distributed`: several processes, on one machine or many, that run one program.

    comm = jt.distributed.init()            # mpiexec -n 4 python program.py

    @jt.jit
    def mean_gradient(w, x, y):
        return comm.all_reduce(jt.grad(loss)(w, x, y), "mean")

MPI carries what is exchanged (`pip install "jitney[mpi]"`, and an MPI); launchers without MPI are served
by sockets. A collective that a process does not come to is an error on all others in the time that
`init(timeout=)` gives, and names it. `docs/guides/scaling.md` is the guide.

What does not live here: the ops (`ir.ops.collectives`), and the functions of named axes, which take
communicators too (`tracer.transforms.named_axes`).
"""

from .communicator import Communicator as Communicator
from .data_parallel import data_parallel as data_parallel
from .environment import launch as launch
from .errors import DistributedError as DistributedError
from .errors import MismatchError as MismatchError
from .errors import RankError as RankError
from .errors import RankTimeoutError as RankTimeoutError
from .sharding import Mesh as Mesh
from .sharding import P as P
from .sharding import mesh as mesh
from .starting import init as init

__all__ = [
    "Communicator",
    "DistributedError",
    "Mesh",
    "MismatchError",
    "P",
    "RankError",
    "RankTimeoutError",
    "data_parallel",
    "init",
    "launch",
    "mesh",
]
