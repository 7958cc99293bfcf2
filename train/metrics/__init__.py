"""Metrics as states that add up: `jt.train.metrics`.

A metric is a small immutable tree of sums, with settings. What it has seen is in the tree: it goes
through `jt.jit`, loops and checkpoints as every tree does, and two of them are added by `+`. The metric
of a whole set is the sum of those of its batches, in any order, on any process.

    seen = metrics.Accuracy()
    for x, y, mask in batches:
        seen = seen.update(y, model(x), mask)  # in compiled code or out of it
    print(seen.result())

`weights` say how much each example counts: one for each, or for each of their first axes. A mask of
bool is weights, too, and what has no weight may hold anything, a label of -1 or NaN. On whole sets
results are scikit-learn's.
"""

from .classes import F1 as F1
from .classes import Confusion as Confusion
from .classes import MeanIoU as MeanIoU
from .classes import Precision as Precision
from .classes import Recall as Recall
from .curves import AUC as AUC
from .curves import average_precision as average_precision
from .curves import roc_auc as roc_auc
from .means import Accuracy as Accuracy
from .means import Mean as Mean
from .means import MeanSquaredError as MeanSquaredError
from .means import Perplexity as Perplexity
from .means import TopKAccuracy as TopKAccuracy
from .state import Metric as Metric
