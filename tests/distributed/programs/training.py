"""The example's training on several processes; with a third argument, process 0 is killed in a save."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import jitney as jt

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
import train_digits_mpi

folder, steps = sys.argv[1], int(sys.argv[2])
comm = jt.distributed.init(timeout=30)
if len(sys.argv) > 3 and comm.rank == 0:
    os.replace = lambda *a, **k: os.kill(os.getpid(), 9) if "0004" in str(a) else os.rename(*a)
losses = train_digits_mpi.main(steps, 32, True, folder, save_every=2)
print("losses", comm.rank, *(loss.hex() for loss in losses))
