"""Random programs, compiled and compared with what plain Python and NumPy give.

    python tests/fuzz programs --count 1000         small programs: dtypes, views, in-place, control flow
    python tests/fuzz gradients --count 1000        their derivatives;  batches: under `jt.vmap`
    python tests/fuzz lengths --count 1000          slices with traced bounds, masks, elements, places
    python tests/fuzz sizes --count 100           first axes of any length: in-place, donation
    python tests/fuzz networks --count 100          networks of real sizes, with gradients
    python tests/fuzz products --count 100          programs of batched products, of real sizes
    python tests/fuzz containers --count 1000       lists, dicts, sets, heaps that grow in compiled loops
    python tests/fuzz ordinary --count 1000         ordinary Python: loops over elements, classes
    python tests/fuzz programs --seed 17 --show     one program, its text and what becomes of it

Programs run in child processes, so that one that crashes or hangs is counted like one that is wrong. A
seed gives the same program everywhere. `tests/e2e/test_fuzz.py` has a short slice of each kind.

    runner      child processes, time-outs, counts
    compare     when two results are the same, and when a program is too ill-conditioned to say
    programs    statements drawn one after the other, each tried with NumPy first
    lengths     its statements on lengths, elements and places
    sizes       programs called with one size of a batch after the other
    containers  statements about containers, with what is raised and what is left of arguments
    ordinary/   functions, classes and their arguments, as people write them who prototype kernels
    networks, products      whole programs drawn from a few forms
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

KINDS = {
    "programs": "programs",
    "gradients": "programs",
    "batches": "programs",
    "lengths": "lengths",
    "sizes": "sizes",
    "containers": "containers",
    "networks": "networks",
    "products": "products",
    "ordinary": "ordinary",
}


def kind_of(kind: str) -> Callable[[int], Any]:
    """The function that makes a program of a kind from a seed."""
    module = import_module(f".{KINDS[kind]}", __package__)
    return getattr(module, kind)
