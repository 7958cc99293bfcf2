"""Processes that do not go on together: groups break one after the other, or the job does."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

import jitney as jt

mode = sys.argv[1]
comm = jt.distributed.init(timeout=20)
R = comm.rank
reduce = jt.jit(lambda x: comm.all_reduce(x) + 1)
reduce(np.ones(3))


def group(timeout: float = 20, debug: bool = False) -> jt.distributed.Communicator:
    part = comm.split(0)
    part.members.timeout, part.members.debug = timeout, debug
    return part


def broken(what: str, kind: type, *words: str) -> None:
    """`call` raises on this process, with these words, and the group stays broken."""
    start = time.monotonic()
    try:
        CALLS[what](part)
    except kind as error:
        said = str(error)
        assert all(word in said for word in words), (what, R, said)
        assert isinstance(error, jt.distributed.DistributedError) and error.ranks == (1,), error
    else:
        raise AssertionError(f"rank {R}: {what} raised nothing")
    assert time.monotonic() - start < 10
    try:
        part.barrier()
    except jt.distributed.DistributedError:
        pass
    else:
        raise AssertionError("a broken group goes on")


x = np.ones(3)
CALLS = {
    "order": lambda g: g.barrier() if R == 1 else jt.jit(lambda x: g.all_reduce(x))(x),
    "shape": lambda g: jt.jit(lambda x: g.all_reduce(x))(np.ones(4 if R == 1 else 3)),
    "nan": lambda g: g.all_reduce(np.log(-x) if R == 1 else x),
    "hang": lambda g: time.sleep(1.5) if R == 1 else jt.jit(lambda x: g.all_reduce(x))(x),
    "large hang": lambda g: time.sleep(1.5) if R == 1 else g.all_reduce(np.ones(100_000)),
}
if mode == "groups":
    np.seterr(all="ignore")
    errors = jt.distributed
    part = group(debug=True)
    broken("order", errors.MismatchError, "all_reduce of float64[3]", "barrier", "faults.py")
    part = group(debug=True)
    broken("shape", errors.MismatchError, "float64[3]", "float64[4]", "faults.py")
    part = group(debug=True)
    broken("nan", errors.RankError, "rank 1 brings NaN")
    for what in ("hang", "large hang"):
        part = group(timeout=0.5)
        if R == 1:
            CALLS[what](part)
        else:
            broken(what, errors.DistributedError, "rank 1", "all_reduce", "faults.py")
    reduce(x)  # the other groups are well
    print("well", R)
elif mode == "raise":
    if R == 1:
        raise ValueError("a bad example")
    try:
        reduce(x)
    except jt.distributed.RankError as error:
        print(f"heard by {R}: {error}", flush=True)
        raise
elif mode == "early":
    if R != 1:
        try:
            reduce(x)
        except jt.distributed.RankError as error:
            print(f"heard by {R}: {error}", flush=True)
else:
    assert mode == "kill"
    if R == 1:
        os.kill(os.getpid(), 9)
    reduce(x)
